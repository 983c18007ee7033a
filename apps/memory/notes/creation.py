"""New notes, one or many, and which of them wait for the user's review."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.accounts.models import Review
from apps.accounts.selectors import preferences_for
from apps.core.db.writing import insert_all, precompute
from apps.core.errors import InvalidInput, IzzyError, TooLarge
from apps.memory.models import (
    Kind,
    Memory,
    OccasionsBy,
    OccasionsWait,
    Proposal,
    ReviewReason,
    Status,
    Tier,
    Trust,
)
from apps.memory.models.base import folded
from apps.memory.notes.selectors import current_cycle
from apps.memory.occasions.table import occasions_by_rule
from apps.search.services import documents_index, documents_prepare
from apps.search.text.analysis import detect_language

from .fields import BULK_LIMIT, TIER_DEFAULTS, clean_changes
from .history import SEARCHABLE
from .indexing import documents_of
from .revisions import BY_USER, Change

INHERITED = ("tier", "kind", "importance", "tags", "category")
"""Fields a proposed text takes from its note, where nothing else is said."""


@transaction.atomic
def memory_create(
    *, user_id: UUID, content: object, change: Change = BY_USER, **fields: object
) -> Memory:
    """A new note with these fields of `MemoryInput`, searchable when this returns. Long-term unless `tier` says otherwise."""
    return notes_store(user_id, [clean_changes({"content": content, **fields})], change)[0]


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
            draft |= occasions_made(draft, typed=typed, trust=change.words, language=language)
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
            values |= occasions_made(values, typed=typed, trust=change.words, language=language)
        notes.append(
            Memory(
                user_id=user_id,
                origin=change.actor,
                trust=change.words,
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
    """A new note that the user did not write by hand: active, or pending where it has to be reviewed."""
    status, reason = status_for(user_id=user_id, trust=change.words, sensitive=change.sensitive)
    values = clean_changes({"content": content, **fields, "status": status})
    if status == Status.PENDING:
        values |= {"review_reason": reason, "proposed_action": Proposal.ADD}
    return notes_store(user_id, [values], change)[0]


def proposal_instead(
    note: Memory, action: Proposal, values: Mapping[str, Any], change: Change
) -> Memory | None:
    """The pending note that proposes `values` for `note`, where the user has to see the change first; else None.

    `values` are cleaned. The same proposal, made again, is not made twice.
    """
    status, reason = status_for(user_id=note.user_id, trust=change.words, sensitive=change.sensitive)
    if status != Status.PENDING:
        return None
    wanted = {"content": note.content} | {name: getattr(note, name) for name in INHERITED} | dict(values)
    same = Memory.objects.for_user(note.user_id).filter(
        status=Status.PENDING, proposed_action=action, proposed_target=note, content=wanted["content"]
    )
    if (known := same.first()) is not None:
        return known
    proposed = {
        **{name: wanted[name] for name in ("content", *INHERITED)},
        **{name: wanted[name] for name in ("valid_from", "valid_to", "occasions") if name in wanted},
        "status": Status.PENDING,
        "review_reason": reason,
        "proposed_action": action,
        "proposed_target": note,
        "proposed_fields": sorted(values),
    }
    return notes_store(note.user_id, [proposed], change)[0]
