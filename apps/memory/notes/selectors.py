"""Reads of a user's notes: single ones, lists, links, history, figures. Synchronous: from async code call through
`apps.core.db.pool.in_db`."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Count, F, FloatField, Q, QuerySet, Value
from django.db.models.functions import Cast, Greatest

from apps.core.db.prepared import prepared
from apps.core.errors import InvalidInput, NotFound
from apps.core.http.shapes import clean_time
from apps.core.text import clean_text, fold
from apps.memory.models import (
    PRIORITY_FLOOR,
    STANDING,
    Kind,
    Memory,
    MemoryEdge,
    MemoryRevision,
    MemoryUse,
    Origin,
    Relation,
    Status,
    Tier,
    Trust,
    is_gone,
)

from .as_of import texts_held
from .fields import clean_category, clean_tag
from .history import SEARCHABLE, Version, versions_kept
from .revisions import note_state


def current_cycle(user_id: UUID) -> int:
    """How many chat turns the user has had."""
    key = Memory._meta.pk.get_db_prep_value(user_id, connection)
    with connection.cursor() as cursor:  # every save asks for it, and the ORM takes ten times as long
        cursor.execute("SELECT cycle FROM memory_decaycycle WHERE user_id = %s", [key])
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def present_priority(cycle: int) -> Greatest:
    """SQL for the priority at a cycle: max(0, priority - decay_rate x (cycle - cycle it was written at))."""
    passed = Cast(Value(cycle) - F("priority_cycle"), FloatField())
    return Greatest(Value(0.0), F("priority") - F("decay_rate") * passed, output_field=FloatField())


def with_present_priority(user_id: UUID, notes: QuerySet[Memory]) -> QuerySet[Memory]:
    """The notes, each with the priority it has now as `priority_now` (read it as `present`)."""
    return notes.annotate(priority_now=present_priority(current_cycle(user_id)))


def memory_get(user_id: UUID, memory_id: UUID, *, lock: bool = False) -> Memory:
    """The note; unless locked for a change with `present`.

    Raises NotFound for an id that is unknown, deleted or somebody else's.
    """
    notes = Memory.objects.owned_by(user_id).filter(pk=memory_id)
    note = (notes.select_for_update() if lock else with_present_priority(user_id, notes)).first()
    if note is None:
        raise NotFound("There is no note with this id.")
    return note


_ANY_STANDING = "SELECT 1 FROM memory_memory WHERE user_id = %s AND category = %s AND status = %s AND deleted_at IS NULL LIMIT 1"


def standing_notes(user_id: UUID, *, now: datetime, limit: int) -> list[Memory]:
    """The user's active notes of the category STANDING that hold now, most important and newest first, each with
    `present`; none that repeats what others said."""
    key = Memory._meta.pk.get_db_prep_value(user_id, connection)
    with connection.cursor() as cursor:  # before each message, and most people have none
        cursor.execute(_ANY_STANDING, [key, STANDING, Status.ACTIVE])
        if cursor.fetchone() is None:
            return []
    notes = Memory.objects.for_user(user_id).filter(category=STANDING, status=Status.ACTIVE)
    notes = with_present_priority(user_id, notes.filter(holds_at(now)).exclude(trust=Trust.UNTRUSTED))
    return list(notes.order_by("-importance", "-created_at", "-pk")[:limit])


def memories_by_id(user_id: UUID, memory_ids: Collection[UUID]) -> dict[UUID, Memory]:
    """The user's notes among these ids, each with `present`."""
    return {note.pk: note for note in _among(user_id, list(memory_ids), current_cycle(user_id))}


@prepared
def _among(user_id: UUID, memory_ids: list[UUID], cycle: int) -> QuerySet[Memory]:
    notes = Memory.objects.owned_by(user_id).filter(pk__among=memory_ids)
    return notes.annotate(priority_now=present_priority(cycle)).order_by()


@prepared
def note_texts(user_id: UUID, memory_ids: list[UUID]) -> QuerySet[Memory, tuple[UUID, str]]:
    """Id and text of the user's notes among these ids, without the deleted ones."""
    notes = Memory.objects.owned_by(user_id).filter(pk__among=memory_ids)
    return notes.exclude(status=Status.DELETED).order_by().values_list("pk", "content")


MAX_QUERY_CHARS = 1000
MAX_QUERY_WORDS = 20

ORDERINGS = {
    "created_at": "created_at",
    "updated_at": "updated_at",
    "importance": "importance",
    "priority": "priority_now",
    "last_accessed": "last_accessed",
    "access_count": "access_count",
    "use_count": "use_count",
}
"""Public name of an order -> what it sorts by; a leading minus turns it round."""

_CHOICES: dict[str, tuple[str, tuple[str, ...]]] = {
    "tier": ("tier", tuple(Tier.values)),
    "kind": ("kind", tuple(Kind.values)),
    "status": ("status", tuple(Status.values)),
    "source": ("origin", tuple(Origin.values)),
    "trust": ("trust", tuple(Trust.values)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteFilter:
    """Filter of a list. An empty value does not limit; without a status all but deleted notes are shown.

    `q` are words that all must occur in the text or the tags; `source` is an `Origin`; `conversation` is the one that it was made from; `since` and `until` limit when notes were
    saved (from, and before). `status` `deleted` shows what can still be restored. `as_of` shows the notes that held at that time instead, whatever has become of
    them but deletion and archiving; what they said then is `texts_at`, in which `q` is looked for.
    """

    q: str = ""
    tier: str = ""
    kind: str = ""
    tag: str = ""
    category: str = ""
    status: str = ""
    source: str = ""
    trust: str = ""
    conversation: UUID | str = ""
    since: datetime | str = ""
    until: datetime | str = ""
    as_of: datetime | str = ""
    ordering: str = "-created_at"


def memories_list(user_id: UUID, wanted: NoteFilter) -> QuerySet[Memory]:
    """The notes that fit, each with `present`. Raises InvalidInput for a value that no note can have."""
    notes, then = Memory.objects.for_user(user_id), dict[UUID, str]()
    if wanted.as_of:
        moment = clean_time(wanted.as_of, field="as_of")
        then = texts_held(user_id, moment)
        held = holds_at(moment, created_at__lte=moment) & ~Q(pk__among=list(then))
        held |= Q(pk__among=[key for key, text in then.items() if text])
        notes = notes.filter(held, status__in=SEARCHABLE)
    elif wanted.status == Status.DELETED:
        notes = Memory.objects.restorable(user_id)
    for name, (column, allowed) in _CHOICES.items():
        value = getattr(wanted, name)
        if value and value not in allowed:
            raise InvalidInput(f"{name} must be one of {', '.join(allowed)}.", field=name)
        if value:
            notes = notes.filter(**{column: value})
    if wanted.conversation:
        notes = notes.filter(source_conversation_id=wanted.conversation)
    if wanted.since:
        notes = notes.filter(created_at__gte=clean_time(wanted.since, field="since"))
    if wanted.until:
        notes = notes.filter(created_at__lt=clean_time(wanted.until, field="until"))
    if wanted.category:
        notes = notes.filter(category=clean_category(wanted.category))
    if wanted.tag:
        notes = notes.filter(has_tag(clean_tag(wanted.tag)))
    words = clean_text(wanted.q, field="q", max_chars=MAX_QUERY_CHARS, allow_empty=True).split()
    for word in map(fold, words[:MAX_QUERY_WORDS]):
        notes = notes.filter(_says(word, then) | Q(folded_tags__contains=word))
    return _ordered(with_present_priority(user_id, notes), wanted.ordering)


def _says(word: str, then: Mapping[UUID, str]) -> Q:
    """Notes with a folded word in their text; those in `then` in the text that they have there."""
    now = Q(folded_content__contains=word)
    if not then:
        return now
    other = Q(pk__among=[key for key, text in then.items() if word in fold(text)])
    return (now & ~Q(pk__among=list(then))) | other


def holds_at(moment: datetime | Value, **begun: Any) -> Q:
    """Notes that hold at a moment: from their `valid_from`, or where they have none from the moment that `begun` asks for."""
    held = Q(valid_to=None) | Q(valid_to__gt=moment)
    return (Q(valid_from__lte=moment) | Q(valid_from=None, **begun)) & held


def has_tag(tag: str, path: str = "") -> Q:
    """Notes with a tag, however it is written; `path` leads to them from another table."""
    return Q(**{f"{path}folded_tags__contains": f"\n{fold(tag)}\n"})


def _ordered(notes: QuerySet[Memory], ordering: str) -> QuerySet[Memory]:
    name = ordering.removeprefix("-")
    if name not in ORDERINGS:
        raise InvalidInput(f"ordering must be one of {', '.join(ORDERINGS)}.", field="ordering")
    column = F(ORDERINGS[name])
    order: Any = (
        column.desc(nulls_last=True) if ordering.startswith("-") else column.asc(nulls_last=True)
    )
    return notes.order_by(order, "-pk")


MAX_DEPTH = 5
NOT_DELETED = tuple(status for status in Status if status != Status.DELETED)

MAX_STEPS = 10_000
"""Links of one level that are followed at most, the strongest first."""


@dataclass(frozen=True, slots=True)
class RelatedNote:
    """A note near another: `depth` links away, reached by a link with this relation and weight from `via_id`."""

    note: Memory
    depth: int
    relation: str
    weight: float
    via_id: UUID


class _Link(NamedTuple):
    """A link from `via_id` to a note."""

    note_id: UUID
    created_at: datetime
    relation: str
    weight: float
    via_id: UUID


def related_notes(
    user_id: UUID,
    memory_id: UUID,
    *,
    depth: int = 2,
    limit: int = 200,
    statuses: Collection[str] = NOT_DELETED,
) -> list[RelatedNote]:
    """The notes within `depth` (1 to MAX_DEPTH) links of a note, in either direction, nearest first.

    Level by level, one query each, until there are `limit`; the links of what is reached are looked at and no
    others. A note of another status, such as a deleted one, is neither shown nor passed through; a cycle ends where it
    began.
    """
    start = memory_get(user_id, memory_id).pk
    seen, level, reached = {start}, {start}, list[tuple[int, _Link]]()
    for away in range(1, min(max(depth, 1), MAX_DEPTH) + 1):
        best: dict[UUID, _Link] = {}
        for link in _links(user_id, level, statuses):
            if link.note_id not in seen:
                best[link.note_id] = min(
                    link,
                    best.get(link.note_id, link),
                    key=lambda one: (-one.weight, one.relation, one.via_id),
                )
        order = sorted(
            best.values(), key=lambda one: (-one.weight, -one.created_at.timestamp(), one.note_id)
        )
        reached += [(away, link) for link in order]
        level = set(best)
        seen |= level
        if not level or len(reached) >= limit:
            break
    nearest = reached[: max(limit, 1)]
    notes = memories_by_id(user_id, [link.note_id for _, link in nearest])
    return [
        RelatedNote(notes[link.note_id], away, link.relation, link.weight, link.via_id)
        for away, link in nearest
        if link.note_id in notes
    ]


def _links(user_id: UUID, level: Collection[UUID], statuses: Collection[str]) -> Iterator[_Link]:
    """The links between these notes and others of these statuses."""
    edges = MemoryEdge.objects.owned_by(user_id).filter(Q(source_id__in=level) | Q(target_id__in=level))
    ends = [
        f"{end}__{column}" for end in ("source", "target") for column in ("id", "created_at", "status")
    ]
    rows = edges.order_by("-weight").values_list("relation", "weight", *ends)[:MAX_STEPS]
    for relation, weight, *both in rows:
        for (via_id, *_), (note_id, created_at, status) in ((both[:3], both[3:]), (both[3:], both[:3])):
            if via_id in level and status in statuses:
                yield _Link(note_id, created_at, relation, weight, via_id)


def links_of(user_id: UUID, memory_id: UUID) -> QuerySet[MemoryEdge]:
    """The links that start or end at a note, oldest first, to notes that are not deleted."""
    return links_at(memory_get(user_id, memory_id))


def links_at(note: Memory) -> QuerySet[MemoryEdge]:
    """The same of a note that was read already."""
    edges = MemoryEdge.objects.owned_by(note.user_id).filter(Q(source_id=note.pk) | Q(target_id=note.pk))
    seen = edges.exclude(source__status="deleted").exclude(target__status="deleted")
    return seen.select_related("source", "target").order_by("created_at", "pk")


def open_contradictions(user_id: UUID, *, of: Collection[UUID] | None = None) -> QuerySet[MemoryEdge]:
    """The links between two active notes that say they contradict each other, oldest first; or only those of some."""
    edges = MemoryEdge.objects.for_user(user_id).filter(
        relation=Relation.CONTRADICTS, source__status=Status.ACTIVE, target__status=Status.ACTIVE
    )
    if of is not None:
        edges = edges.filter(Q(source_id__in=of) | Q(target_id__in=of))
    return edges.select_related("source", "target").order_by("created_at", "pk")


def note_kept(user_id: UUID, memory_id: UUID) -> Memory:
    """The note with `present`, also one that was deleted and can be restored. Raises NotFound."""
    notes = Memory.objects.with_deleted(user_id).filter(pk=memory_id).select_related("superseded_by")
    note = with_present_priority(user_id, notes).first()
    if note is None or is_gone(note.deleted_at):
        raise NotFound("There is no note with this id.")
    return note


def note_history(user_id: UUID, memory_id: UUID) -> list[Version]:
    """The versions of a note that are kept, newest first."""
    return versions_of_note(memory_get(user_id, memory_id))


def versions_of_note(
    note: Memory, *, cycle: int | None = None, newest: int | None = None
) -> list[Version]:
    """The same of a note that was read already, deleted or not; with `newest` no more than so many."""
    rows = MemoryRevision.objects.owned_by(note.user_id).filter(memory_id=note.pk).order_by("-version")
    kept = list(rows[:newest])[::-1]  # one more than asked for: a version names the change that made it
    now = current_cycle(note.user_id) if cycle is None else cycle
    states = [*(row.state for row in kept), note_state(note, now)]
    return versions_kept(note, kept, states, created="Saved")[:newest]


def note_uses(user_id: UUID, memory_id: UUID) -> QuerySet[MemoryUse]:
    """The newest times that a note came up, newest first."""
    return MemoryUse.objects.owned_by(user_id).filter(memory_id=memory_id).order_by("-id")


def tag_counts(user_id: UUID) -> tuple[dict[str, int], dict[str, int]]:
    """How many active notes have each tag, as it is written most, and each category; the commonest first.

    One pass over all active notes, put together by the database.
    """
    notes = Memory.objects.for_user(user_id).filter(status=Status.ACTIVE).order_by()
    spellings: dict[str, Counter[str]] = {}
    for tags, count in notes.exclude(tags=[]).values_list("tags").annotate(count=Count("pk")):
        for tag in tags:
            spellings.setdefault(fold(tag), Counter())[tag] += count
    total = {seen.most_common(1)[0][0]: seen.total() for seen in spellings.values()}
    categories = notes.exclude(category="").values_list("category").annotate(count=Count("pk"))
    return commonest(total), commonest(dict(categories))


def commonest(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts in their order, the highest first, equal ones by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0].casefold())))


def memory_stats(user_id: UUID) -> dict[str, Any]:
    """Counts of notes: in all, by status, tier, kind and source; faded, never used, links, and the decay cycle."""
    cycle = current_cycle(user_id)
    fields = {"by_status": "status", "by_tier": "tier", "by_kind": "kind", "by_source": "origin"}
    notes = Memory.objects.for_user(user_id).annotate(priority_now=present_priority(cycle))
    sums = {
        "total": Count("pk"),
        "faded": Count("pk", filter=Q(priority_now__lt=PRIORITY_FLOOR)),
        "never_used": Count("pk", filter=Q(access_count=0)),
    }
    totals = dict.fromkeys(sums, 0)
    counts = {name: Counter[str]() for name in fields}
    for group in notes.order_by().values(*fields.values()).annotate(**sums):  # one pass of the rows
        for name in sums:
            totals[name] += group[name]
        for name, field in fields.items():
            counts[name][group[field]] += group["total"]
    return {
        **totals,
        "deleted": Memory.objects.restorable(user_id).count(),
        "links": MemoryEdge.objects.for_user(user_id).count(),
        "cycle": cycle,
        **{name: commonest(count) for name, count in counts.items()},
    }
