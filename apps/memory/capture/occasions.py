"""The occasions of notes, in the background: a model is asked for those of several notes at once, and what would come up always
is left out.

A note is due by its row (`occasions_wait`, `occasions_due`): a worker that is killed leaves it so, and it is asked about again.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Min, QuerySet
from django.utils import timezone

from apps.accounts.selectors import preferences_for
from apps.agent.model.client import ModelError, current_endpoint, model_for
from apps.core.db.pool import in_db
from apps.core.db.prepared import prepared
from apps.core.db.writing import users_of
from apps.core.jobs.fair import users_by_turns
from apps.core.jobs.leases import LeaseLost
from apps.memory.models import CaptureLease, Memory, OccasionsBy, OccasionsWait, Status, Trust
from apps.memory.notes.creation import notes_reindex
from apps.memory.occasions.phrases import MAX_OCCASION_CHARS, MAX_OCCASIONS, usable_occasions
from apps.memory.prompts import forced_input, model_answer
from apps.search.selectors import said_often

from . import leases
from .selectors import OCCASIONS, day_of, is_spent

logger = logging.getLogger(__name__)

CHECK_EVERY = timedelta(seconds=5)
CHECKED_AT_ONCE = 100
NOTES_AT_ONCE = 12
NOTE_CHARS = 600
BUDGET_SHARE = 0.5
"""Share of the day's tokens from which on notes wait for tomorrow: what is left is for reading conversations."""
ANSWER_SECONDS = 90.0
TOKENS_EACH, TOKENS_BESIDE = 150, 200
"""Tokens of an answer for each note, and beside them."""
SERVER_DELAY = timedelta(minutes=10)
"""So long a user's notes wait after a fault of the model's server; those of the table serve them meanwhile."""
SHOWN = (Status.ACTIVE, Status.PENDING)
"""Notes that anybody sees: the others wait until they come back."""

GIVE: dict[str, Any] = {
    "name": "give_occasions",
    "description": "Say of each note when it matters.",
    "input_schema": {
        "type": "object",
        "properties": {
            "notes": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "number": {"type": "integer"},
                        "occasions": {
                            "type": "array",
                            "maxItems": MAX_OCCASIONS,
                            "items": {"type": "string", "maxLength": MAX_OCCASION_CHARS},
                        },
                    },
                    "required": ["number", "occasions"],
                },
            }
        },
        "required": ["notes"],
    },
}


def occasions_check() -> int:
    """The sweep: of the occasions that were not looked at yet, leave out those that would come up always; how many notes."""
    waiting = Memory.objects.unscoped().filter(occasions_wait=OccasionsWait.CHECK)
    done = 0
    for user_id, _ in users_of(waiting):
        while count := _check_some(user_id):
            done += count
    return done


def _check_some(user_id: UUID) -> int:
    """Looks at the next CHECKED_AT_ONCE notes; those of the table are given to the model afterwards."""
    waiting = Memory.objects.for_user(user_id).filter(occasions_wait=OccasionsWait.CHECK)
    seen = list(waiting.order_by("pk")[:CHECKED_AT_ONCE])
    often = said_often(user_id, {phrase for note in seen for phrase in note.occasions})
    with transaction.atomic():
        locked = waiting.select_for_update().filter(pk__in=[note.pk for note in seen])
        notes = list(locked)
        for note in notes:
            by_model = note.occasions_by == OccasionsBy.MODEL
            note.occasions_wait = OccasionsWait.NONE if by_model else OccasionsWait.MODEL
        _keep(user_id, [(note, _rare(note.occasions, often), note.occasions_by) for note in notes])
    return len(seen)


def _rare(phrases: Sequence[str], often: set[str]) -> list[str]:
    return [phrase for phrase in phrases if phrase not in often]


def _keep(user_id: UUID, notes: Sequence[tuple[Memory, list[str], str]]) -> None:
    """Gives locked notes these occasions, made by whom is said beside; it is no version of its own, and no news."""
    changed = []
    for note, phrases, by in notes:
        if phrases != note.occasions:
            changed.append(note)
        note.occasions = phrases
        note.occasions_by = by if phrases or by == OccasionsBy.MODEL else OccasionsBy.NONE
        note.save(
            update_fields=[
                *("occasions", "occasions_by"),
                *("occasions_wait", "occasions_due", "occasions_tries"),
            ]
        )
    notes_reindex(user_id, changed)


def users_due(now: datetime, *, limit: int = leases.USERS_AT_ONCE) -> list[UUID]:
    """Users with a note that a model may be asked about and nobody who remembers for them, those first who have waited
    longest."""
    return _users_due(now)[:limit]


@prepared
def _users_due(now: datetime) -> QuerySet[Memory, UUID]:
    held = CaptureLease.objects.exclude(CaptureLease.lease_free()).values("user_id")
    rows = _due(Memory.objects.unscoped(), now).exclude(user_id__in=held)
    by_user = rows.order_by().values("user_id").annotate(first=Min("occasions_due"))
    return by_user.order_by("first", "user_id").values_list("user_id", flat=True)[: leases.USERS_AT_ONCE]


def _due(notes: QuerySet[Memory], now: datetime) -> QuerySet[Memory]:
    return notes.filter(occasions_wait=OccasionsWait.MODEL, occasions_due__lte=now, status__in=SHOWN)


async def notes_asked() -> None:
    """Asks a model about all notes that are due, of all users, until a window of a conversation is due; nothing without a
    model. Users take turns."""

    async def due() -> dict[UUID, UUID]:
        now = timezone.now()
        if await in_db(leases.users_due, now, limit=1):
            return {}
        return {user_id: user_id for user_id in await in_db(users_due, now)}

    if not (await in_db(current_endpoint)).is_offline:
        await users_by_turns(due, user_asked)


async def user_asked(user_id: UUID) -> None:
    """Asks about the next of a user's notes that are due, in one call."""
    async with leases.user_held(user_id) as held:
        notes = await in_db(notes_next, user_id) if held else []
        if not notes:
            return
        try:
            given = await _answered(user_id, notes)
            await in_db(occasions_store, user_id, notes, given)
        except ModelError as error:
            logger.info("%d notes got no occasions: %s", len(notes), error.code)
            server = error.code in leases.SERVER_FAULTS
            await in_db(notes_failed, user_id, notes, server=server)
        except LeaseLost:
            raise
        except Exception:  # one note that cannot be asked about must not keep the others waiting
            logger.exception("%d notes got no occasions", len(notes))
            await in_db(notes_failed, user_id, notes)


@transaction.atomic
def notes_next(user_id: UUID) -> list[Memory]:
    """The notes that go into the next call, the newest first; empty where none is due, where Izzy is not to remember by itself,
    and where no more is to be spent today.

    A note that repeats others' words goes alone, so that it has no part in what is said of others, and so does one that
    failed before. Raises LeaseLost.
    """
    CaptureLease.lease_extend(user_id)
    now = timezone.now()
    due = _due(Memory.objects.for_user(user_id), now)
    if not preferences_for(user_id).capture or is_spent(user_id, now, BUDGET_SHARE):
        due.update(occasions_due=day_of(user_id, now)[1])
        return []
    notes = list(due.order_by("occasions_tries", "-pk")[:NOTES_AT_ONCE])
    alone = [note for note in notes if note.trust == Trust.UNTRUSTED or note.occasions_tries]
    return [note for note in notes if note not in alone] or alone[:1]


async def _answered(user_id: UUID, notes: Sequence[Memory]) -> dict[UUID, list[str]]:
    """By note the phrases that a model gives, those of which something can be made. Raises ModelError."""
    language = (await in_db(preferences_for, user_id)).language
    wanted = f"the language with the code {language}" if language else "the language of the note"
    lines = [
        f"[{number}] {' '.join(note.content[:NOTE_CHARS].split())}"
        for number, note in enumerate(notes, 1)
    ]
    response = await model_answer(
        "\n".join([f"Write the phrases in {wanted}.", "", "<notes>", *lines, "</notes>"]),
        user_id=user_id,
        purpose=OCCASIONS,
        system="occasions",
        model=model_for("fast"),
        max_tokens=TOKENS_EACH * len(notes) + TOKENS_BESIDE,
        seconds=ANSWER_SECONDS,
        tool=GIVE,
    )
    if response.stop_reason == "refusal":
        raise ModelError("refusal", "The model declined to read these notes.")
    return _by_note(forced_input(response, GIVE["name"]), notes)


def _by_note(given: Any, notes: Sequence[Memory]) -> dict[UUID, list[str]]:
    """The phrases that an answer gives for each note; small models leave out what is around the list, and write numbers as text."""
    if isinstance(given, dict):
        given = given.get("notes", given.get("items", [given]))
    found: dict[UUID, list[str]] = {}
    for entry in given if isinstance(given, list) else []:
        number = str(entry.get("number")) if isinstance(entry, dict) else ""
        phrases = entry.get("occasions") if isinstance(entry, dict) else None
        if number.isdecimal() and 1 <= int(number[:6]) <= len(notes) and isinstance(phrases, list):
            found.setdefault(notes[int(number[:6]) - 1].pk, usable_occasions(phrases))
    return found


def occasions_store(user_id: UUID, asked: Sequence[Memory], given: Mapping[UUID, list[str]]) -> None:
    """Writes what was said of notes, as far as they still read as they did and still wait for it; of those about which nothing
    was said it is asked again. Raises LeaseLost."""
    often = said_often(user_id, {phrase for phrases in given.values() for phrase in phrases})
    with transaction.atomic():
        CaptureLease.lease_extend(user_id)
        kept = []
        for note in _unchanged(user_id, asked):
            if note.pk in given:
                phrases = _rare(given[note.pk], often)
                note.occasions_wait = OccasionsWait.NONE
                by = OccasionsBy.MODEL if phrases else note.occasions_by
                kept.append((note, phrases or note.occasions, by))
        _keep(user_id, kept)
        notes_failed(user_id, [note for note in asked if note.pk not in given])


@transaction.atomic
def notes_failed(user_id: UUID, asked: Sequence[Memory], *, server: bool = False) -> None:
    """Has notes wait for their next try, each alone, or give them up; after the server's fault all of the user's wait.
    Raises LeaseLost."""
    CaptureLease.lease_extend(user_id)
    now = timezone.now()
    if server:
        _due(Memory.objects.for_user(user_id), now).update(occasions_due=now + SERVER_DELAY)
        return
    for note in _unchanged(user_id, asked):
        note.occasions_tries += 1
        note.occasions_due = now + leases.RETRY_DELAYS[min(note.occasions_tries, 4) - 1]
        if note.occasions_tries >= leases.MAX_ATTEMPTS:
            note.occasions_wait = OccasionsWait.NONE
        note.save(update_fields=["occasions_wait", "occasions_due", "occasions_tries"])


def _unchanged(user_id: UUID, asked: Sequence[Memory]) -> list[Memory]:
    """Those of the notes, locked, that still wait for a model and read as they did."""
    texts = {note.pk: note.content for note in asked}
    waiting = Memory.objects.for_user(user_id).filter(occasions_wait=OccasionsWait.MODEL, pk__in=texts)
    return [note for note in waiting.select_for_update() if note.content == texts[note.pk]]
