"""New notes, one or many, which of them wait for the user's review, and the one place that turns notes into documents of the
search index."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.accounts.models import Review
from apps.accounts.selectors import preferences_for
from apps.core.db.writing import insert_all, precompute, writing_for
from apps.core.errors import InvalidInput, IzzyError, TooLarge
from apps.memory.models import (
    Kind,
    Memory,
    MemoryRevision,
    OccasionsBy,
    OccasionsWait,
    Proposal,
    ReviewReason,
    Status,
    Tier,
    Trust,
)
from apps.memory.notes.selectors import current_cycle
from apps.memory.occasions.table import occasions_by_rule
from apps.search.documents import Document, Facet, Label, Source
from apps.search.selectors import labels_of
from apps.search.services import documents_index, documents_prepare, documents_remove
from apps.search.text.analysis import detect_language

from .fields import BULK_LIMIT, TIER_DEFAULTS, clean_changes, folded
from .history import MAX_FORMER, SEARCHABLE, Span, spans_of
from .revisions import BY_USER, Change

INHERITED = ("tier", "kind", "importance", "tags", "category")
"""Fields a proposed text takes from its note, where nothing else is said."""


@transaction.atomic
def memory_create(
    *,
    user_id: UUID,
    content: object,
    change: Change = BY_USER,
    key: UUID | None = None,
    **fields: object,
) -> Memory:
    """A new note with these fields of `MemoryInput`, searchable when this returns. Long-term unless `tier` says otherwise. `key` is
    its id, which no note may have."""
    draft = clean_changes({"content": content, **fields})
    return notes_store(user_id, [draft | ({"id": key} if key else {})], change)[0]


def memory_bulk_create(
    *, user_id: UUID, drafts: Sequence[Mapping[str, object]], change: Change = BY_USER
) -> list[Memory]:
    """Up to 1,000 notes at once, all or none; searchable when this returns.

    The error of one draft carries its place in the list as `extra.index`.
    """
    if not drafts:
        raise InvalidInput("There is no note in the list.", code="empty_list")
    if len(drafts) > BULK_LIMIT:
        raise TooLarge(f"At most {BULK_LIMIT:,} notes at once.", code="too_many", limit=BULK_LIMIT)
    cleaned = []
    for index, draft in enumerate(drafts):
        try:
            if not isinstance(draft, Mapping):
                raise InvalidInput("A note must be an object with content.", code="wrong_type")
            cleaned.append(clean_changes({"content": None, **draft}))
        except IzzyError as error:
            error.extra["index"] = index
            raise
    with precompute():
        # Reading them takes ten times as long as writing them, and would hold up all other writers.
        language = preferences_for(user_id).language
        for draft in cleaned:
            typed = bool(draft.get("occasions")) and change.by_hand
            draft |= occasions_made(draft, typed=typed, trust=change.trust, language=language)
        texts = [draft["content"] for draft in cleaned]
        phrases = [phrase for draft in cleaned for phrase in draft["occasions"]]
        documents_prepare(user_id=user_id, texts=texts, occasions=phrases)
        with transaction.atomic():
            return notes_store(user_id, cleaned, change)


def notes_store(user_id: UUID, drafts: Sequence[dict[str, Any]], change: Change) -> list[Memory]:
    """Write notes made of cleaned values, and make them searchable, inside the caller's transaction."""
    now, cycle = timezone.now(), current_cycle(user_id)
    language = preferences_for(user_id).language
    notes = []
    for draft in drafts:
        priority, decay_rate = TIER_DEFAULTS[Tier(draft.get("tier", Tier.LONG_TERM))]
        values = {"priority": priority, "decay_rate": decay_rate, "tags": [], **draft}
        if "occasions_wait" not in values:  # many notes have them before the transaction begins
            typed = bool(values.get("occasions")) and change.by_hand
            values |= occasions_made(values, typed=typed, trust=change.trust, language=language)
        notes.append(
            Memory(
                user_id=user_id,
                origin=change.actor,
                trust=change.trust,
                source_conversation_id=change.conversation_id,
                source_message_id=change.message_id,
                priority_cycle=cycle,
                created_at=now,
                updated_at=now,
                **values,
                **folded(values),
            )
        )
    insert_all(notes)
    shown = [documents_of(note) for note in notes if note.status in SEARCHABLE]
    documents_index(user_id=user_id, documents=list(chain.from_iterable(shown)), are_new=True)
    return notes


def occasions_made(
    values: Mapping[str, Any], *, typed: bool, trust: Trust, language: str
) -> dict[str, Any]:
    """The occasions of a note with these cleaned values: those among them, else those of the table of kinds; whose they are
    (`typed`: the user's, unless it is among the values), and what the worker has to do for them.

    What comes with a text that repeats others' words counts for nothing, or it could have itself brought up always.
    """
    phrases, text = values.get("occasions") or [], values["content"]
    by = values.get("occasions_by") or (OccasionsBy.USER if typed else OccasionsBy.MODEL)
    if by != OccasionsBy.USER and (not phrases or trust == Trust.UNTRUSTED):
        tags, kind = values.get("tags", ()), str(values.get("kind", Kind.GENERAL))
        phrases = occasions_by_rule(text, tags, kind, language or detect_language(text))
        by = OccasionsBy.RULES if phrases else OccasionsBy.NONE
    wait = OccasionsWait.CHECK if phrases else OccasionsWait.MODEL
    return {
        "occasions": phrases,
        "occasions_by": by,
        "occasions_wait": OccasionsWait.NONE if by == OccasionsBy.USER else wait,
        "occasions_due": timezone.now(),
        "occasions_tries": 0,
    }


def status_for(*, user_id: UUID, trust: Trust, sensitive: bool = False) -> tuple[Status, str]:
    """The status that a note gets which the user did not write by hand, and the `ReviewReason` ("": none).

    What repeats untrusted words waits whatever the user prefers.
    """
    if trust == Trust.UNTRUSTED:
        return Status.PENDING, str(ReviewReason.UNTRUSTED)
    wanted = preferences_for(user_id).review
    if sensitive and wanted != Review.NOTHING:
        return Status.PENDING, str(ReviewReason.SENSITIVE)
    if wanted == Review.EVERYTHING:
        return Status.PENDING, str(ReviewReason.EVERYTHING)
    return Status.ACTIVE, ""


@transaction.atomic
def memory_submit(*, user_id: UUID, content: str, change: Change, **fields: object) -> Memory:
    """A new note that the user did not write by hand: active, or pending where it has to be reviewed. One that waits already as
    it is to be is that one."""
    status, reason = status_for(user_id=user_id, trust=change.trust, sensitive=change.sensitive)
    values = clean_changes({"content": content, **fields, "status": status})
    if status == Status.PENDING:
        values |= {"review_reason": reason, "proposed_action": Proposal.ADD}
        for known in Memory.objects.for_user(user_id).filter(
            status=Status.PENDING, content=values["content"]
        ):
            if all(getattr(known, name) == value for name, value in values.items()):
                return known
    return notes_store(user_id, [values], change)[0]


def proposal_instead(
    note: Memory, action: Proposal, values: Mapping[str, Any], change: Change
) -> Memory | None:
    """The pending note that proposes `values` for `note`, where the user has to see the change first; else None.

    `values` are cleaned. The same proposal, made again, is not made twice: the same text, or where that is left as it is the
    same labels.
    """
    status, reason = status_for(user_id=note.user_id, trust=change.trust, sensitive=change.sensitive)
    if status != Status.PENDING:
        return None
    wanted = {"content": note.content} | {name: getattr(note, name) for name in INHERITED} | dict(values)
    same = Memory.objects.for_user(note.user_id).filter(
        status=Status.PENDING, proposed_action=action, proposed_target=note, content=wanted["content"]
    )
    sorts_only = wanted["content"] == note.content
    labels = {name: values[name] for name in INHERITED if sorts_only and name in values}
    kept = {"content"} if sorts_only and action == Proposal.UPDATE else set()
    for known in same:
        offered = {name: getattr(known, name) for name in labels if name in known.proposed_fields}
        if offered == labels:
            return known
    proposed = {
        **{name: wanted[name] for name in ("content", *INHERITED)},
        **{name: wanted[name] for name in ("valid_from", "valid_to", "occasions") if name in wanted},
        "status": Status.PENDING,
        "review_reason": reason,
        "proposed_action": action,
        "proposed_target": note,
        "proposed_fields": sorted(values.keys() - kept),
    }
    return notes_store(note.user_id, [proposed], change)[0]


INDEXED_FIELDS = frozenset(
    {"content", "status", "tags", "category", "occasions", "valid_from", "valid_to"}
)
"""A change of one of these needs `notes_reindex`."""
BATCH = 100


def notes_reindex(user_id: UUID, notes: Sequence[Memory]) -> None:
    """Bring the search index in step with changed notes, inside the caller's transaction.

    What they said before stays findable as of its time.
    """
    hidden = [note.pk for note in notes if note.status not in SEARCHABLE]
    if hidden:
        documents_remove(user_id=user_id, source=Source.MEMORY, source_ids=hidden)
    documents: list[Document] = []
    for note in notes:
        if note.status in SEARCHABLE:
            documents += documents_with_past(note, _revisions(note))
    documents_index(user_id=user_id, documents=documents)


def documents_with_past(note: Memory, revisions: Sequence[MemoryRevision]) -> list[Document]:
    """A note as search has it, with what it said before by its revisions, which are in the order of their versions."""
    *former, present = spans_of(note, revisions)
    past = [_past(note, span) for span in former[-MAX_FORMER:] if span.shown and span.end]
    return [*documents_of(note, present), *past]


def notes_catch_up() -> int:
    """Index again the notes, of whoever, whose tags or category search does not know; returns how many.

    In transactions of BATCH notes, from the oldest on; it may be ended and begun again at any time.
    """
    done, last = 0, None
    labelled = Memory.objects.unscoped().filter(status__in=SEARCHABLE).exclude(tags=[], category="")
    while True:
        notes = labelled if last is None else labelled.filter(pk__gt=last)
        batch = list(notes.order_by("pk")[:BATCH])
        if not batch:
            return done
        last = batch[-1].pk
        for user_id in {note.user_id for note in batch}:
            with writing_for(user_id):
                done += _catch_up(user_id, [note.pk for note in batch if note.user_id == user_id])


@transaction.atomic
def _catch_up(user_id: UUID, memory_ids: Sequence[UUID]) -> int:
    notes = list(Memory.objects.owned_by(user_id).select_for_update().filter(pk__in=memory_ids))
    known = labels_of(user_id, Source.MEMORY, memory_ids)
    behind = [note for note in notes if known.get(note.pk, ()) != labels_for(note.tags, note.category)]
    if behind:
        notes_reindex(user_id, behind)
    return len(behind)


def labels_for(tags: Sequence[str], category: str) -> tuple[Label, ...]:
    """Search labels of a note beside its text."""
    labels = [Label("tag", tag) for tag in tags]
    return (*labels, Label("category", category)) if category else tuple(labels)


def _revisions(note: Memory) -> list[MemoryRevision]:
    kept = MemoryRevision.objects.for_user(note.user_id).filter(memory_id=note.pk)
    return list(kept.order_by("version"))


def documents_of(note: Memory, span: Span | None = None) -> list[Document]:
    """A note as search has it: its text, and when it matters; `span` is its present one, where it has had others."""
    text = Document(
        source=Source.MEMORY,
        source_id=note.pk,
        text=note.content,
        happened_at=note.created_at,
        # Not when it was made, where it is about no other time: a clock that ran ahead would hide it until then.
        valid_from=span.start if span else note.valid_from,
        valid_to=note.valid_to,
        labels=labels_for(note.tags, note.category),
    )
    if not note.occasions:
        return [text]
    return [
        text,
        replace(text, text="\n".join(note.occasions), labels=(), facet=Facet.OCCASIONS),
    ]


def _past(note: Memory, span: Span) -> Document:
    """A former text. It stands alone: what the note says now does not support it in ranking."""
    return Document(
        source=Source.MEMORY,
        source_id=note.pk,
        text=span.text,
        happened_at=note.created_at,
        session=f"{note.pk}/{span.start.isoformat()}",
        valid_from=span.start,
        valid_to=span.end,
        past=True,
        labels=labels_for(span.tags, span.category),
    )
