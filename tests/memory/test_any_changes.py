"""Search after any changes to notes, in any order, finds those that hold, and no others."""

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.core.errors import IzzyError
from apps.memory.models import Memory, Origin, Status, Trust
from apps.memory.notes.changes import memory_archive, memory_delete, memory_update
from apps.memory.notes.creation import memory_create
from apps.memory.notes.joining import memory_merge, memory_supersede, superseded_due
from apps.memory.notes.review import review_accept, review_merge, review_reject
from apps.memory.notes.revisions import Change
from apps.memory.notes.selectors import note_history
from apps.memory.notes.undoing import memory_restore, memory_undo
from tests.memory.conftest import found

pytestmark = pytest.mark.django_db

WORDS = ("tea", "cake", "jam", "milk", "bread", "rice", "soup", "salt")
BY_PAGE = Change(actor=Origin.ASSISTANT, trust=Trust.UNTRUSTED)
DAY = timedelta(days=1)
STEPS = 40


def anything(chance: random.Random, user: User, step: int) -> Callable[[], Any]:
    """One of the things that may happen to the user's notes."""
    who: dict[str, Any] = {"user_id": user.pk}
    text = f"The user likes {chance.choice(WORDS)} and {chance.choice(WORDS)} {step}."
    keys = list(Memory.objects.with_deleted(user.pk).values_list("pk", flat=True))
    if not keys:
        return lambda: memory_create(**who, content=text)
    one, two = chance.choice(keys), chance.choice(keys)
    start = chance.choice([None, timezone.now() + DAY, timezone.now() - DAY])
    return chance.choice(
        [
            lambda: memory_create(**who, content=text),
            lambda: memory_update(**who, memory_id=one, content=text),
            lambda: memory_update(**who, memory_id=one, content=text, change=BY_PAGE),
            lambda: memory_update(**who, memory_id=one, valid_from=start),
            lambda: memory_delete(**who, memory_id=one),
            lambda: memory_archive(**who, memory_id=one),
            lambda: memory_restore(**who, memory_id=one),
            lambda: memory_undo(**who, memory_id=one, version=chance.randint(1, 4)),
            lambda: memory_merge(**who, into_id=one, from_ids=[two], content=text),
            lambda: memory_supersede(**who, memory_id=one, content=text, valid_from=start),
            lambda: review_accept(**who, memory_id=one),
            lambda: review_merge(**who, memory_id=one, into_id=two),
            lambda: review_reject(**who, memory_id=one),
            superseded_due,
        ]
    )


@pytest.mark.parametrize("seed", range(5))
def test_search_finds_what_holds(alice: User, seed: int) -> None:
    chance = random.Random(seed)
    for step in range(STEPS):
        try:
            anything(chance, alice, step)()
        except IzzyError:
            continue
    now, held = timezone.now(), set()
    for note in Memory.objects.for_user(alice):
        assert note_history(alice.pk, note.pk)[0].content == note.content
        begun = note.valid_from is None or note.valid_from <= now
        if note.status == Status.ACTIVE and begun and (note.valid_to is None or note.valid_to > now):
            held.add(note.pk)
    assert set(found(alice, "The user likes")) == held
