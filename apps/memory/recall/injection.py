"""Automatic injection: which notes a chat turn brings up by itself, within a token budget, or none at all."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils import timezone

from apps.accounts.selectors import user_time_zone
from apps.core.db.writing import precompute
from apps.core.ids import parse_id
from apps.core.text import estimate_tokens
from apps.memory.models import CaptureWindow, Status, Trust, UsedIn, WindowState
from apps.memory.notes.selectors import memories_by_id, note_texts, standing_notes
from apps.memory.notes.uses import uses_record
from apps.memory.similarity import NOTES
from apps.search.documents import Hit, Scope, Source
from apps.search.proactive.recall import recall

from .about_user import asks_about_user, notes_about_user
from .block import (
    NOTE_TOKENS,
    Item,
    Surfaced,
    SurfacedNote,
    SurfacedWords,
    composed_in,
    dated,
    fits,
    lasts,
    line_of,
    shortened,
)

STANDING_TOKENS = 300  # for the lines of standing notes, as many as they hold whole
STANDING_NOTES = 20
STANDING_REASON = "Stands before every conversation."
THRESHOLD = 0.45
RECENT_TEXTS = 3
CANDIDATES = 40
NEWEST_WINDOWS = 20  # that nobody has read
KNOWN_WINDOWS = 10_000  # of which a process remembers whose messages they hold, about 1 KB each
NIL = UUID(int=0)
LEAST_RELEVANCE = THRESHOLD * 3 / 5  # needed even by a note of importance 5

FRESH = timedelta(days=7)
OLD = timedelta(days=90)


def surface(
    user_id: UUID,
    recent_texts: Sequence[str],
    *,
    exclude_ids: Collection[UUID] = (),
    conversation_id: UUID | None = None,
    message_id: UUID | None = None,
    now: datetime | None = None,
) -> Surfaced:
    """The notes worth bringing up before answering; nothing rather than noise.

    `recent_texts` are the conversation's newest messages, oldest first; the last three count, those before the newest
    as far as it leans on them. Standing notes come first, whatever it says. `exclude_ids` are the notes that this
    conversation has been shown, and messages: what others than `conversation_id` hold unread is brought up too. Records that
    what it returns was brought up beside the message `message_id`, so call it once per turn, inside `in_db`.
    """
    now = now or timezone.now()
    with precompute():  # both look for the same
        standing, items = worth_bringing_up(user_id, recent_texts, exclude_ids=exclude_ids, now=now)
        if conversation_id is not None:
            items += unread_words(
                user_id, recent_texts, exclude_ids=exclude_ids, other_than=conversation_id
            )
    if not items and not standing:
        return Surfaced()
    here = now.astimezone(user_time_zone(user_id))
    surfaced = composed_in(user_id, conversation_id, items, first=standing, now=here)
    uses_record(
        user_id=user_id,
        used_in=UsedIn.SURFACED,
        reasons=reasons_of(surfaced),
        question=recent_texts[-1] if recent_texts else "",
        conversation_id=conversation_id,
        message_id=message_id,
    )
    return surfaced


def worth_bringing_up(
    user_id: UUID,
    recent_texts: Sequence[str],
    *,
    exclude_ids: Collection[UUID],
    now: datetime,
    explain: bool = True,
) -> tuple[list[SurfacedNote], list[Item]]:
    """The standing notes, and the others worth bringing up; see `surface`. Records nothing, and says why
    only where asked to `explain`."""
    talk = recent_texts[-RECENT_TEXTS:]
    room, standing = STANDING_TOKENS, []
    for note in standing_notes(user_id, now=now, limit=STANDING_NOTES):
        text = shortened(note.content, NOTE_TOKENS)
        item = SurfacedNote(note, text, 1.0, reason=STANDING_REASON, handle="n999")
        cost = estimate_tokens(f"\n{line_of(item, now)}")
        if cost > room:
            continue
        room -= cost
        if note.pk not in exclude_ids:
            standing.append(replace(item, handle=""))
    scope = replace(NOTES, exclude_ids=frozenset([*exclude_ids, *(item.id for item in standing)]))
    items: list[SurfacedNote] = []
    if talk and asks_about_user(talk[-1]):
        items = notes_about_user(user_id, now=now, exclude_ids=scope.exclude_ids)
    elif hits := recall(
        user_id, talk, top_k=CANDIDATES, scope=scope, least=LEAST_RELEVANCE, explain=explain
    ):
        items = _relevant(user_id, hits, now)
    found = dated(user_id, [*standing, *items])
    return found[: len(standing)], [*found[len(standing) :]]


def unread_words(
    user_id: UUID,
    recent_texts: Sequence[str],
    *,
    exclude_ids: Collection[UUID],
    other_than: UUID | None,
    explain: bool = True,
) -> list[Item]:
    """The user's words in other conversations that nobody has read for notes yet, where it is worth bringing up."""
    unread = unread_scope(user_id, other_than=other_than, exclude_ids=exclude_ids)
    if unread is None:
        return []
    talk = recent_texts[-RECENT_TEXTS:]
    hits = recall(user_id, talk, top_k=NEWEST_WINDOWS, scope=unread, least=THRESHOLD, explain=explain)
    return [SurfacedWords(hit, shortened(hit.text, NOTE_TOKENS), hit.score) for hit in hits]


def reasons_of(surfaced: Surfaced) -> dict[UUID, str]:
    """By note that was brought up, the sentence that says why."""
    return {item.id: item.reason for item in surfaced.items if isinstance(item, SurfacedNote)}


def still_shown(
    user_id: UUID, items: Iterable[Mapping[str, Any]], texts: Mapping[UUID, str] | None = None
) -> set[UUID]:
    """The notes among a conversation's surfaced items (`SurfacedNote.to_json`) that read as they did when shown.

    One that was changed since may be brought up again: the conversation holds its old text. `texts` are those of these
    notes by their ids, where they have been read already.
    """
    shown: dict[UUID, list[str]] = {}
    for item in items:
        shown.setdefault(parse_id(item["id"]), []).append(str(item["text"]))
    if not shown:
        return set()
    if texts is None:
        texts = dict(note_texts(user_id, list(shown)))
    return {
        pk
        for pk, before in shown.items()
        # The note's text, or a part of one of its passages.
        if (content := texts.get(pk)) is not None
        and any(
            text == content or ("…" in {text[:1], text[-1:]} and text.strip("…") in content)
            for text in before
        )
    }


_UNREAD = (
    "SELECT id, version, segments FROM memory_capturewindow WHERE user_id = %s AND state IN (%s, %s) "
    "AND conversation_id <> %s ORDER BY id DESC LIMIT %s"
)


def unread_scope(
    user_id: UUID, *, other_than: UUID | None, exclude_ids: Collection[UUID] = ()
) -> Scope | None:
    """Limits a search to the user's own messages in the newest windows that nobody has read, of all conversations but one;
    None where there are none. A message that quotes others is left out."""
    user, conversation = (
        CaptureWindow._meta.pk.get_db_prep_value(one, connection) for one in (user_id, other_than or NIL)
    )
    states = [WindowState.WAITING, WindowState.GAVE_UP]
    with connection.cursor() as cursor:  # before each message: the ORM takes ten times as long
        cursor.execute(_UNREAD, [user, *states, conversation, NEWEST_WINDOWS])
        found = [_messages_of(*row) for row in cursor.fetchall()]
    own = (
        frozenset[UUID]()
        .union(*(said for said, _ in found))
        .difference(*(others for _, others in found))
    )
    sources = frozenset({Source.CONVERSATION})
    return Scope(sources=sources, only_ids=own, exclude_ids=exclude_ids) if own else None


_messages: dict[tuple[object, int, int], tuple[frozenset[UUID], frozenset[UUID]]] = {}


def _messages_of(
    window_id: object, version: int, segments: str
) -> tuple[frozenset[UUID], frozenset[UUID]]:
    """Of a window the messages that are said in it for the first time, and those with words of others. Read once for each
    version: to parse 20 windows takes longer than to fetch them."""
    if (found := _messages.get((window_id, version, len(segments)))) is None:
        parsed = json.loads(segments)
        found = (
            frozenset(UUID(one["message"]) for one in parsed if not one["seen"]),
            frozenset(UUID(one["message"]) for one in parsed if one["trust"] != Trust.USER),
        )
        if len(_messages) >= KNOWN_WINDOWS:
            _messages.clear()
        _messages[window_id, version, len(segments)] = found
    return found


def final_score(relevance: float, importance: int, age: timedelta) -> float:
    """relevance x importance/3 x recency: the score that decides what is brought up."""
    return relevance * importance / 3 * recency(age)


def recency(age: timedelta) -> float:
    """1.0 for what is at most 7 days old, falling evenly to 0.5 at 90 days and staying there."""
    passed = (age - FRESH) / (OLD - FRESH)
    return 1.0 - 0.5 * min(max(passed, 0.0), 1.0)


def _relevant(user_id: UUID, hits: Sequence[Hit], now: datetime) -> list[SurfacedNote]:
    """The hits over the threshold, however far they have faded."""
    notes = memories_by_id(user_id, [hit.source_id for hit in hits])
    found: list[SurfacedNote] = []
    for hit in hits:
        note = notes.get(hit.source_id)
        if note is None or note.status != Status.ACTIVE:
            continue
        # What lasts does not age; other notes do since they were last changed or read.
        read = max(note.updated_at, note.last_accessed or note.updated_at)
        age = timedelta() if lasts(note) else now - read
        score = final_score(hit.score, note.importance, age)
        if score > THRESHOLD:
            text = note.content
            if not fits(text, NOTE_TOKENS):
                text = shortened(hit.text, NOTE_TOKENS)
                text = text if text.endswith("…") else f"…{text}"  # the last of its passages, and short
            found.append(SurfacedNote(note, text, score, reason=hit.reason, parts=hit.parts))
    return found
