"""Messages as chat hands them over, the numbered pieces that they are cut into, and the windows of pieces that are read:
adding messages, and taking them back. Synchronous, one transaction each."""

import hashlib
import hmac
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from apps.core.db.prepared import prepared, prepared_update
from apps.core.db.writing import insert_all, once, users_of
from apps.core.purging.trace import Hits, Trace
from apps.core.quotes import own_words, split_quotes
from apps.core.text import chunk_text, estimate_tokens
from apps.memory.models import CaptureWindow, Trust, WindowState
from apps.memory.trust import spoken

WINDOW_TOKENS = 500
OVERLAP_TOKENS = 100
SEGMENT_TOKENS = 100
"""A message is cut into pieces of at most so many tokens: what the model cites, and what two windows share."""

LONGEST = timedelta(minutes=5)
"""A window that is not full is read after IZZY_CAPTURE_WAIT without a word, or this time, however lively the conversation."""
FINGERPRINT_TOKENS = 60
"""Windows with fewer new tokens have no fingerprint: that a few words come again does not mean the same talk does."""

UNREAD = (WindowState.WAITING, WindowState.GAVE_UP)

NO_WORDS = {"segments": [], "shown": [], "error": ""}
"""Values of a window once its words are not needed."""
EMPTIED = {**NO_WORDS, "gate_reason": "", "dropped": []}
"""Values of a window that nobody may read any more: neither its words nor what was thought of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """One message: `text` is what people read of it, never tool output, system text or notes that Izzy put beside it.

    `role` is user or assistant, `speaker` the name shown, `trust` how far the speaker's own words are trusted (quoted
    parts of them are found here). `shown` are the notes put beside the turn, as (note id or None, text).
    """

    message_id: UUID
    role: str
    speaker: str
    text: str
    said_at: datetime
    position: int = 0
    trust: Trust = Trust.USER
    shown: Sequence[tuple[UUID | None, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A piece of a message. `seen`: it stands in the window before too; `quoted`: the speaker repeats others' words."""

    message: UUID
    role: str
    speaker: str
    trust: Trust
    quoted: bool
    seen: bool
    said_at: datetime
    tokens: int
    text: str
    whole: bool = False  # of the speaker's own words, and every sentence in it begins and ends there

    def to_json(self) -> dict[str, Any]:
        plain = {
            "message": str(self.message),
            "trust": str(self.trust),
            "said_at": self.said_at.isoformat(),
        }
        return asdict(self) | plain


def segments_of(message: Utterance) -> list[Segment]:
    """The pieces of a message in their order; what it quotes is untrusted whoever quotes it."""
    return [
        Segment(
            message=message.message_id,
            role=message.role,
            speaker=message.speaker,
            trust=Trust.UNTRUSTED if quoted else message.trust,
            quoted=quoted,
            seen=False,
            said_at=message.said_at,
            tokens=tokens,
            text=piece,
            whole=whole,
        )
        for piece, tokens, quoted, whole in once(pieces_of, message.text, message.role == "user")
    ]


def pieces_of(text: str, by_user: bool) -> list[tuple[str, int, bool, bool]]:
    """(piece, its tokens, whether it is quoted, whether it is whole) in their order. Takes a while for a long text."""
    parts = once(split_quotes, text, by_user)
    own = spoken(own_words(text)) if by_user else frozenset()
    return [
        (piece, estimate_tokens(piece), quoted, by_user and not quoted and spoken(piece) <= own)
        for part, quoted in parts
        for piece in chunk_text(part, size=SEGMENT_TOKENS, overlap=0)
    ]


def cut(start: Sequence[Segment], fresh: Iterable[Segment]) -> list[list[Segment]]:
    """The segments of windows that go on from `start` (those of one still open, or an overlap) with what is new.

    All but the last are full. Each but the first begins with the end of the one before, marked as seen.
    """
    windows = [list(start)]
    for segment in fresh:
        last = windows[-1]
        tokens = sum(one.tokens for one in last) + segment.tokens
        if tokens > WINDOW_TOKENS and not all(one.seen for one in last):
            last = overlap(last)
            windows.append(last)
        last.append(segment)
    return [window for window in windows if not all(one.seen for one in window)]


def overlap(segments: Sequence[Segment]) -> list[Segment]:
    """The last segments of about OVERLAP_TOKENS together, as the next window shows them again."""
    kept: list[Segment] = []
    total = 0
    for segment in reversed(segments):
        total += segment.tokens
        if total > OVERLAP_TOKENS and kept:
            break
        kept.append(replace(segment, seen=True))
    return kept[::-1]


@transaction.atomic(savepoint=False)
def windows_add(
    *,
    user_id: UUID,
    conversation_id: UUID,
    messages: Sequence[Utterance],
    preceding: Sequence[Utterance] = (),
    at_once: bool = False,
    tainted: bool | None = None,
) -> int:
    """Adds messages to the conversation's windows; returns how many windows they are in.

    `preceding` are the messages before them (the overlap of a first window is taken from their end). What does
    not fill a window waits for more: IZZY_CAPTURE_WAIT after the last words, LONGEST after the first, or not at all with
    `at_once`. Call it once per message, in the transaction that notes that it was.
    `tainted` says whether untrusted content was read in the conversation that `messages` do not hold; None: as its windows say.
    """
    fresh = [segment for message in messages for segment in segments_of(message)]
    if not fresh:
        return 0
    now = timezone.now()
    opened = _newest_window.first(user_id, conversation_id)
    if opened and (
        opened.state != WindowState.WAITING
        or opened.full
        or opened.attempts
        or opened.delays
        or opened.gate
    ):
        opened = None  # it takes in no more: it is full, or somebody has begun to read it
    start = stored_segments(opened) if opened else []
    if preceding and not opened:
        start = overlap([segment for message in preceding for segment in segments_of(message)])
    cuts = cut(start, fresh)
    untrusted = conversation_tainted(user_id, conversation_id) if tainted is None else tainted
    quiet = timedelta(seconds=0 if at_once else settings.IZZY_CAPTURE_WAIT)
    made = []
    for index, part in enumerate(cuts):
        untrusted = untrusted or any(segment.trust == Trust.UNTRUSTED for segment in part)
        window = (
            opened
            if opened and index == 0
            else CaptureWindow(user_id=user_id, conversation_id=conversation_id)
        )
        window.full = index < len(cuts) - 1
        window.tainted = untrusted
        window.due_at = now if window.full else min(now + quiet, window.created_at + LONGEST)
        _fill(window, part, messages)
        if window is opened:
            window.save()
        else:
            made.append(window)
    insert_all(made)
    return len(cuts)


def windows_hasten(*, user_id: UUID, conversation_id: UUID) -> int:
    """The conversation's windows that wait for more words are read now; returns how many. What waits because reading it failed
    keeps its time."""
    rows = _quiet(user_id, timezone.now()).filter(conversation_id=conversation_id)
    return rows.update(due_at=timezone.now())


@prepared_update
def windows_hasten_others(
    user_id: UUID, other_than: UUID, now: datetime
) -> tuple[QuerySet[CaptureWindow], dict[str, Any]]:
    """The same of all conversations but one."""
    return _quiet(user_id, now).exclude(conversation_id=other_than), {"due_at": now}


def _quiet(user_id: UUID, now: datetime) -> QuerySet[CaptureWindow]:
    """The windows that wait for more words."""
    rows = CaptureWindow.objects.for_user(user_id).filter(state=WindowState.WAITING, due_at__gt=now)
    return rows.filter(attempts=0, delays=0)


def taint_note(*, user_id: UUID, conversation_id: UUID) -> None:
    """Remembers that untrusted words came up in a conversation of which nothing is captured now."""
    CaptureWindow.objects.create(
        user_id=user_id,
        conversation_id=conversation_id,
        tainted=True,
        full=True,
        state=WindowState.WITHDRAWN,
    )


def conversation_tainted(user_id: UUID, conversation_id: UUID) -> bool:
    """Whether untrusted words were quoted in the conversation so far: what the assistant says after may repeat them."""
    return bool(_tainted(user_id, conversation_id))


def conversations_tainted(user_id: UUID, conversation_ids: Collection[UUID]) -> set[UUID]:
    """The same for several at once: those in which they were."""
    return set(_tainted_among(user_id, list(conversation_ids)))


@prepared
def _tainted_among(user_id: UUID, conversation_ids: list[UUID]) -> QuerySet[CaptureWindow, UUID]:
    rows = CaptureWindow.objects.for_user(user_id).filter(
        conversation_id__among=conversation_ids, tainted=True
    )
    return rows.order_by().values_list("conversation_id", flat=True).distinct()


@prepared
def _tainted(user_id: UUID, conversation_id: UUID) -> QuerySet[CaptureWindow, UUID]:
    rows = CaptureWindow.objects.for_user(user_id).filter(conversation_id=conversation_id, tainted=True)
    return rows.values_list("pk", flat=True)[:1]


def messages_waiting(
    *, user_id: UUID, conversation_id: UUID, message_ids: Collection[UUID]
) -> set[UUID]:
    """Those of the messages that stand in windows which nobody has read yet."""
    asked = set(message_ids)
    windows = CaptureWindow.objects.for_user(user_id).filter(
        conversation_id=conversation_id, state__in=UNREAD
    )
    segments = [segment for window in windows for segment in stored_segments(window)]
    return {each.message for each in segments if not each.seen and each.message in asked}


@transaction.atomic
def windows_withdraw(*, user_id: UUID, conversation_id: UUID, message_ids: Collection[UUID]) -> int:
    """Takes replaced messages out of the windows that wait; returns how many windows changed.

    A window of which nothing new remains is withdrawn. What is being read at this moment is not applied.
    """
    gone = set(message_ids)
    waiting = CaptureWindow.objects.for_user(user_id).filter(
        conversation_id=conversation_id, state__in=UNREAD
    )
    changed = 0
    for window in waiting.select_for_update():
        kept = [segment for segment in stored_segments(window) if segment.message not in gone]
        if len(kept) < len(window.segments):
            _fill(window, kept)
            window.save()
            changed += 1
    return changed


@transaction.atomic
def conversation_withdraw(*, user_id: UUID, conversation_id: UUID) -> int:
    """Nothing of a deleted conversation is read any more, and no word of it is kept; returns how many waited."""
    windows = CaptureWindow.objects.for_user(user_id).filter(conversation_id=conversation_id)
    waited = _withdraw(windows)
    windows.update(**EMPTIED, fingerprint="")
    return waited


def withdrawn_messages(*, user_id: UUID, conversation_id: UUID, since: datetime) -> list[UUID]:
    """The messages of the windows that were withdrawn since a time, read by nobody."""
    windows = CaptureWindow.objects.for_user(user_id).filter(conversation_id=conversation_id)
    gone = windows.filter(state=WindowState.WITHDRAWN, done_at__gte=since)
    return [UUID(key) for keys in gone.values_list("message_ids", flat=True) for key in keys]


def user_withdraw(*, user_id: UUID) -> int:
    """The user does not want Izzy to remember by itself: what waits is dropped; returns how many windows did."""
    return _withdraw(CaptureWindow.objects.for_user(user_id))


def _withdraw(windows: QuerySet[CaptureWindow]) -> int:
    return windows.filter(state__in=UNREAD).update(
        state=WindowState.WITHDRAWN, version=F("version") + 1, done_at=timezone.now(), **EMPTIED
    )


def windows_retry(*, user_id: UUID | None = None) -> int:
    """Windows that were given up wait again, with a clean slate; of all users where none is named."""
    rows = CaptureWindow.objects.for_user(user_id) if user_id else CaptureWindow.objects.unscoped()
    anew = {
        "state": WindowState.WAITING,
        "attempts": 0,
        "delays": 0,
        "due_at": timezone.now(),
        "error": "",
        "error_code": "",
        "done_at": None,
    }
    given_up = rows.filter(state=WindowState.GAVE_UP)
    return sum(own.update(**anew) for _, own in users_of(given_up))


@transaction.atomic
def windows_scrub(trace: Trace, hits: Hits) -> None:
    """Empties every text column of the windows that belong to the notes or messages that are purged.

    A window that waits loses the segments of these messages alone; one that made such a note has none left.
    """
    gone = {str(value) for value in (*trace.ids, *trace.messages)}
    rows = CaptureWindow.objects.for_user(trace.user_id)
    ids = rows.values_list("pk", "memory_ids", "message_ids").iterator()
    concerned = [pk for pk, notes, messages in ids if not gone.isdisjoint([*notes, *messages])]
    for window in rows.filter(pk__in=concerned).select_for_update():
        window.gate_reason, window.dropped, window.error = "", [], ""
        if window.state in UNREAD:
            _fill(window, [one for one in stored_segments(window) if str(one.message) not in gone])
        window.save()


@prepared
def _newest_window(user_id: UUID, conversation_id: UUID) -> QuerySet[CaptureWindow]:
    rows = CaptureWindow.objects.for_user(user_id).filter(conversation_id=conversation_id)
    return rows.order_by("-id").select_for_update()[:1]


def stored_segments(window: CaptureWindow) -> list[Segment]:
    """The segments that a window holds, back from JSON."""
    found = []
    for value in window.segments:
        message, said_at = UUID(value["message"]), datetime.fromisoformat(value["said_at"])
        parsed = {"message": message, "trust": Trust(value["trust"]), "said_at": said_at}
        found.append(Segment(**(value | parsed)))
    return found


def _fill(
    window: CaptureWindow, segments: Sequence[Segment], messages: Sequence[Utterance] = ()
) -> None:
    """Gives a window its segments; one of which nothing new remains is withdrawn. The caller saves it."""
    window.segments = [segment.to_json() for segment in segments]
    window.message_ids = list(dict.fromkeys(str(segment.message) for segment in segments))
    window.tokens = sum(segment.tokens for segment in segments)
    window.version += 1
    window.fingerprint = ""
    fresh = [segment for segment in segments if not segment.seen]
    if sum(segment.tokens for segment in fresh) >= FINGERPRINT_TOKENS:
        # A keyed hash of who said what, which cannot be turned back into words without the server's key.
        words = "\x1e".join(
            f"{segment.role}\x1f{segment.trust}\x1f{' '.join(segment.text.split())}" for segment in fresh
        )
        key = f"{settings.SECRET_KEY}:capture:{window.user_id}".encode()
        window.fingerprint = hmac.new(key, words.encode(), hashlib.sha256).hexdigest()
    shown = {(entry["id"], entry["text"]): entry for entry in window.shown}
    for message in messages:
        if str(message.message_id) in window.message_ids:
            for note_id, text in message.shown:
                entry = {"id": str(note_id) if note_id else None, "text": text}
                shown[(entry["id"], text)] = entry
    window.shown = list(shown.values())
    if not fresh:
        window.state, window.done_at = WindowState.WITHDRAWN, timezone.now()
        for name, value in EMPTIED.items():
            setattr(window, name, value)
