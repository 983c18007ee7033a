"""Surfacing in sessions of other programs: notes are chosen as in a chat turn, in an element of its own, without short names."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from apps.accounts.selectors import preferences_for, user_time_zone
from apps.core.db.writing import precompute
from apps.core.ids import parse_id
from apps.core.text import estimate_tokens
from apps.gateway.models import ClientSession
from apps.memory.models import Status, Trust, UsedIn
from apps.memory.notes.selectors import memories_by_id
from apps.memory.notes.uses import uses_record
from apps.memory.recall.block import (
    BUDGET_TOKENS,
    NOTE_TOKENS,
    Item,
    Surfaced,
    SurfacedNote,
    SurfacedWords,
    compose,
    dated,
    shortened,
)
from apps.memory.recall.injection import (
    reasons_of,
    still_shown,
    unread_words,
    worth_bringing_up,
)
from apps.search.index.cache import index_ready

OPENING, CLOSING = "<izzy-memories>", "</izzy-memories>"
ELEMENT_TOKENS = estimate_tokens(f"{OPENING}\n\n{CLOSING}")
MOST_SHOWN = 500
"""The number of entries that are kept of what a session has been shown, the newest."""
RECENT, NEWEST = timedelta(days=3), 200
"""Sessions that tell whose indexes are loaded when a server starts: how old they may be, and how many are looked at."""
_TAG = re.compile(r"</?\s*izzy-memories\s*>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Block:
    """An addition to a program's context: `text` of at most BUDGET_TOKENS estimated tokens, "" when nothing is relevant.

    `shown` has an entry `{id, text}` (words of a conversation: with `source`; what is not to be trusted: with `untrusted`) for
    each line, in their order. `reasons` say why, by note.
    """

    text: str = ""
    tokens: int = 0
    shown: tuple[dict[str, Any], ...] = ()
    reasons: Mapping[UUID, str] = field(default_factory=dict)


def block_for(
    user_id: UUID,
    recent_texts: Sequence[str],
    *,
    shown: Iterable[Mapping[str, Any]] = (),
    texts: Mapping[UUID, str] | None = None,
    conversation_id: UUID | None = None,
    record: bool = True,
    use_memory: bool | None = None,
) -> Block:
    """The notes to bring up beside those that `shown` has; empty for users who switched memory off: `use_memory`, where that is known.

    `texts` are those of the notes in `shown`, where they have been read already. `conversation_id` is where the session's own
    words are kept. Without `record` the notes do not count as brought up.
    """
    if use_memory is None:
        use_memory = preferences_for(user_id).use_memory
    if not use_memory:
        return Block()
    now, known = timezone.now(), _known(user_id, list(shown), texts)
    with precompute():  # both look for the same
        standing, items = worth_bringing_up(
            user_id, recent_texts, exclude_ids=known, now=now, explain=False
        )
        items += unread_words(
            user_id, recent_texts, exclude_ids=known, other_than=conversation_id, explain=False
        )
    here = now.astimezone(user_time_zone(user_id))
    surfaced = compose(items, standing, now=here, budget=BUDGET_TOKENS - ELEMENT_TOKENS)
    if record:
        uses_record(
            used_in=UsedIn.SURFACED,
            user_id=user_id,
            reasons=reasons_of(surfaced),
            question=recent_texts[-1] if recent_texts else "",
            conversation_id=conversation_id,
        )
    return _framed(surfaced)


def block_again(user_id: UUID, shown: Sequence[Mapping[str, Any]]) -> Block:
    """The standing notes, and those that a session was shown before its program forgot them, as they read now: the newest shown
    first. They do not count as brought up once more."""
    if not preferences_for(user_id).use_memory:
        return Block()
    now = timezone.now()
    standing, _ = worth_bringing_up(user_id, [], exclude_ids=(), now=now)
    first = {item.id for item in standing}
    ids = list(dict.fromkeys(parse_id(item["id"]) for item in shown if "source" not in item))
    notes = memories_by_id(user_id, ids)
    again = [
        SurfacedNote(note, shortened(note.content, NOTE_TOKENS), score=place / len(ids))
        for place, note in enumerate(map(notes.get, ids), 1)
        if note is not None and note.status == Status.ACTIVE and note.pk not in first
    ]
    here = now.astimezone(user_time_zone(user_id))
    lines = compose(dated(user_id, again), standing, now=here, budget=BUDGET_TOKENS - ELEMENT_TOKENS)
    return _framed(lines)


def _known(
    user_id: UUID, shown: list[Mapping[str, Any]], texts: Mapping[UUID, str] | None
) -> Collection[UUID]:
    words = {parse_id(item["id"]) for item in shown if "source" in item}
    notes = [item for item in shown if "source" not in item]
    return (still_shown(user_id, notes, texts) if notes else set()) | words


def _framed(surfaced: Surfaced) -> Block:
    """The block in its element, which nothing that stands in it can end early."""
    if not surfaced.text:
        return Block()
    text = f"{OPENING}\n{_TAG.sub('', surfaced.text).strip()}\n{CLOSING}"
    shown = tuple(
        {"id": str(item.id), "text": item.text}
        | ({"source": "conversation"} if isinstance(item, SurfacedWords) else {})
        | ({"untrusted": True} if _is_untrusted(item) else {})
        for item in surfaced.items
    )
    return Block(text, estimate_tokens(text), shown, reasons_of(surfaced))


def _is_untrusted(item: Item) -> bool:
    return isinstance(item, SurfacedNote) and item.note.trust == Trust.UNTRUSTED


def shown_notes(shown: Iterable[Mapping[str, Any]]) -> list[tuple[UUID | None, str]]:
    """The notes among what was shown, as capture takes them: what repeats one is nothing new."""
    return [(parse_id(item["id"]), str(item["text"])) for item in shown if "source" not in item]


def holds_untrusted(shown: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a note that is not to be trusted is among what was shown: what is answered then is not to be either."""
    return any("untrusted" in item for item in shown)


def indexes_warm_up() -> None:
    """Loads the indexes of those who used other programs last: their next message has little time to wait for it."""
    rows = ClientSession.objects.unscoped().filter(updated_at__gt=timezone.now() - RECENT)
    newest = rows.order_by("-updated_at").values_list("user_id", flat=True)[:NEWEST]
    for user_id in dict.fromkeys(newest):
        index_ready(user_id)
