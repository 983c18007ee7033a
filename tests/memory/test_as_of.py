"""Asking for another time finds what was held true then, in the words of then."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.core.db.pool import in_db
from apps.memory.models import Memory, MemoryRevision, Origin, Trust
from apps.memory.notes.as_of import texts_at as former_texts
from apps.memory.notes.changes import memories_erase, memory_delete, memory_update
from apps.memory.notes.joining import memory_supersede
from apps.memory.notes.revisions import Change
from apps.memory.notes.selectors import NoteFilter, memories_list
from apps.memory.notes.undoing import memory_restore, memory_undo
from apps.memory.similarity import NOTES
from apps.search.models import Passage
from apps.search.selectors import search
from tests.memory.conftest import MakeNote, found_texts
from tests.tools import Tools

pytestmark = pytest.mark.django_db(transaction=True)

DAY = timedelta(days=1)


def texts_at(user: User, query: str, moment: datetime) -> list[str]:
    from dataclasses import replace

    return [hit.text for hit in search(user.pk, query, top_k=10, scope=replace(NOTES, as_of=moment))]


def aged(note: Memory, days: int) -> Memory:
    """The note as if it had been made so many days ago, its changes so far a day apart after that."""
    made = timezone.now() - days * DAY
    Memory.objects.unscoped().filter(pk=note.pk).update(created_at=made)
    for row in MemoryRevision.objects.unscoped().filter(memory=note).order_by("version"):
        MemoryRevision.objects.unscoped().filter(pk=row.pk).update(created_at=made + row.version * DAY)
    from apps.memory.notes.creation import notes_reindex

    fresh = Memory.objects.unscoped().get(pk=note.pk)
    notes_reindex(note.user_id, [fresh])
    return fresh


def moved(user: User, note: MakeNote) -> Memory:
    """A note made ten days ago, edited in place nine and eight days ago."""
    made = note(user, "The user lives in Lisbon.")
    for text in ("The user lives in Madrid.", "The user lives in Oslo."):
        memory_update(user_id=user.pk, memory_id=made.pk, content=text)
    return aged(made, 10)


def test_a_note_that_was_edited_is_found_by_its_former_words(alice: User, note: MakeNote) -> None:
    moved(alice, note)
    now = timezone.now()
    assert texts_at(alice, "Lisbon", now - 9.5 * DAY) == ["The user lives in Lisbon."]
    assert texts_at(alice, "Madrid", now - 8.5 * DAY) == ["The user lives in Madrid."]
    assert texts_at(alice, "Where does the user live?", now - 5 * DAY) == ["The user lives in Oslo."]
    assert texts_at(alice, "live", now - 11 * DAY) == []


def test_its_present_words_are_not_found_before_they_were_written(alice: User, note: MakeNote) -> None:
    note(alice, "The user plays chess.")
    moved(alice, note)
    assert "The user lives in Oslo." not in texts_at(alice, "Oslo", timezone.now() - 9.5 * DAY)


def test_an_ordinary_search_knows_nothing_of_former_words(alice: User, note: MakeNote) -> None:
    plain = note(alice, "The user lives in Oslo.")
    alone = search(alice.pk, "Lisbon Oslo", scope=NOTES)[0]
    memory_delete(user_id=alice.pk, memory_id=plain.pk)
    moved(alice, note)
    hits = search(alice.pk, "Lisbon Oslo", scope=NOTES)
    assert [hit.text for hit in hits] == ["The user lives in Oslo."]
    assert hits[0].score == alone.score


def test_undoing_an_edit_is_a_change_like_others(alice: User, note: MakeNote) -> None:
    made = note(alice, "The user lives in Lisbon.")
    memory_update(user_id=alice.pk, memory_id=made.pk, content="The user lives in Oslo.")
    memory_undo(user_id=alice.pk, memory_id=made.pk, version=1)
    aged(made, 10)
    assert texts_at(alice, "Oslo", timezone.now() - 8.5 * DAY) == ["The user lives in Oslo."]
    assert found_texts(alice, "Lisbon") == ["The user lives in Lisbon."]


def test_a_deleted_note_takes_its_former_words_along_and_brings_them_back(
    alice: User, note: MakeNote
) -> None:
    made = moved(alice, note)
    memory_delete(user_id=alice.pk, memory_id=made.pk)
    assert texts_at(alice, "Lisbon", timezone.now() - 9.5 * DAY) == []
    assert not Passage.objects.filter(user=alice).exists()
    memory_restore(user_id=alice.pk, memory_id=made.pk)
    assert texts_at(alice, "Lisbon", timezone.now() - 9.5 * DAY) == ["The user lives in Lisbon."]
    memories_erase(user_id=alice.pk, memory_ids=[made.pk])
    assert not Passage.objects.filter(user=alice).exists()


def test_a_text_is_not_found_in_the_time_before_it_was_accepted(alice: User, note: MakeNote) -> None:
    made = note(alice, "The user lives in Lisbon.", status="pending")
    memory_update(
        user_id=alice.pk, memory_id=made.pk, content="The user lives in Oslo.", status="active"
    )
    aged(made, 10)
    assert texts_at(alice, "Lisbon", timezone.now() - 9.5 * DAY) == []
    assert texts_at(alice, "Oslo", timezone.now()) == ["The user lives in Oslo."]


def test_a_new_text_may_hold_from_another_time_than_that_of_the_edit(
    alice: User, note: MakeNote
) -> None:
    made = note(alice, "The user lives in Lisbon.")
    Memory.objects.unscoped().filter(pk=made.pk).update(created_at=timezone.now() - 100 * DAY)
    since = timezone.now() - 30 * DAY
    memory_update(
        user_id=alice.pk, memory_id=made.pk, content="The user lives in Oslo.", valid_from=since
    )
    assert texts_at(alice, "lives", timezone.now() - 40 * DAY) == ["The user lives in Lisbon."]
    assert texts_at(alice, "lives", timezone.now() - 20 * DAY) == ["The user lives in Oslo."]


def test_another_persons_former_words_stay_theirs(alice: User, bob: User, note: MakeNote) -> None:
    moved(alice, note)
    moved(bob, note)
    assert texts_at(alice, "Lisbon", timezone.now() - 9.5 * DAY) == ["The user lives in Lisbon."]
    memories_erase(user_id=bob.pk, memory_ids=Memory.objects.for_user(bob).values_list("pk", flat=True))
    assert texts_at(alice, "Lisbon", timezone.now() - 9.5 * DAY) == ["The user lives in Lisbon."]


def test_the_rest_interface_answers_with_the_words_of_the_time(
    alice: User, note: MakeNote, client: Client
) -> None:
    made = moved(alice, note)
    client.force_login(alice)

    def asked(moment: Any) -> list[dict[str, Any]]:
        body = {"query": "Lisbon", "as_of": moment.isoformat(), "sources": ["memory"]}
        answer = client.post("/api/v1/search/", body, content_type="application/json")
        return list(answer.json()["results"])

    (hit,) = asked(timezone.now() - 9.5 * DAY)
    assert (hit["text"], hit["id"]) == ("The user lives in Lisbon.", str(made.pk))
    assert asked(timezone.now() - 20 * DAY) == []


async def test_the_tool_answers_with_the_words_of_the_time(alice: User, note: MakeNote) -> None:
    await in_db(moved, alice, note)
    tools = Tools(user_id=alice.pk)
    moment = (timezone.now() - 9.5 * DAY).isoformat()
    found = await tools.call("memory_search", query="Lisbon", as_of=moment)
    assert [hit["text"] for hit in found] == ["The user lives in Lisbon."]


def test_a_superseded_note_is_found_as_of_its_time(alice: User, note: MakeNote) -> None:
    old = note(alice, "The user lives in Lisbon.")
    Memory.objects.unscoped().filter(pk=old.pk).update(created_at=timezone.now() - 100 * DAY)
    since = timezone.now() - 30 * DAY
    memory_supersede(
        user_id=alice.pk,
        memory_id=old.pk,
        content="The user lives in Oslo.",
        change=Change(actor=Origin.USER, trust=Trust.USER),
        valid_from=since,
    )
    assert texts_at(alice, "lives", timezone.now() - 40 * DAY) == ["The user lives in Lisbon."]
    assert texts_at(alice, "lives", timezone.now() - 20 * DAY) == ["The user lives in Oslo."]
    assert found_texts(alice, "lives") == ["The user lives in Oslo."]


def test_the_list_shows_what_held_then(alice: User, note: MakeNote, client: Client) -> None:
    moved(alice, note)
    note(alice, "The user plays chess.")
    old = aged(note(alice, "The user works in a bakery."), 10)
    memory_supersede(user_id=alice.pk, memory_id=old.pk, content="The user works in a bookshop.")
    client.force_login(alice)

    def listed(moment: datetime) -> list[str]:
        answer = client.get(
            "/api/v1/memories/", {"as_of": moment.isoformat(), "ordering": "-created_at"}
        )
        return sorted(row["content"] for row in answer.json()["results"])

    assert listed(timezone.now() - 9.5 * DAY) == [
        "The user lives in Lisbon.",
        "The user works in a bakery.",
    ]
    assert listed(timezone.now() - 20 * DAY) == []
    assert client.get("/api/v1/memories/", {"as_of": "soon"}).status_code == 400


def listed_at(user: User, moment: datetime, **wanted: str) -> list[str]:
    """The texts that a list shows as of a moment."""
    rows = list(memories_list(user.pk, NoteFilter(as_of=moment, **wanted)))
    former = former_texts(user.pk, [row.pk for row in rows], moment)
    return sorted(former.get(row.pk, row.content) for row in rows)


def test_the_list_shows_a_note_whose_text_holds_from_the_change_on(alice: User, note: MakeNote) -> None:
    made = aged(note(alice, "The user lives in Lisbon."), 10)
    memory_update(
        user_id=alice.pk, memory_id=made.pk, content="The user lives in Oslo.", valid_from=timezone.now()
    )
    assert listed_at(alice, timezone.now() - 5 * DAY) == ["The user lives in Lisbon."]
    assert listed_at(alice, timezone.now() - 11 * DAY) == []
    assert listed_at(alice, timezone.now()) == ["The user lives in Oslo."]


def test_the_list_looks_for_words_in_what_was_said_then(alice: User, note: MakeNote) -> None:
    moved(alice, note)
    aged(note(alice, "The user grew up in Oslo."), 10)
    then = timezone.now() - 9.5 * DAY
    assert listed_at(alice, then, q="LISBON") == ["The user lives in Lisbon."]
    assert listed_at(alice, then, q="oslo") == ["The user grew up in Oslo."]
    assert listed_at(alice, timezone.now(), q="lives oslo") == ["The user lives in Oslo."]


def test_a_text_that_had_expired_before_it_was_changed_held_until_then(
    alice: User, note: MakeNote
) -> None:
    end = timezone.now() - 5 * DAY
    made = aged(note(alice, "The user lives in Lisbon.", valid_to=end), 10)
    memory_update(user_id=alice.pk, memory_id=made.pk, content="The user lives in Oslo.", valid_to=None)
    for moment, texts in (
        (end - DAY, ["The user lives in Lisbon."]),
        (end + DAY, []),
        (timezone.now(), ["The user lives in Oslo."]),
    ):
        assert texts_at(alice, "lives", moment) == texts
        assert listed_at(alice, moment) == texts


def test_a_text_changed_before_it_holds_is_not_found_before_it_does(alice: User, note: MakeNote) -> None:
    later = timezone.now() + DAY
    made = note(alice, "The user lives in Lisbon.", valid_from=later)
    memory_update(user_id=alice.pk, memory_id=made.pk, content="The user lives in Oslo.")
    assert texts_at(alice, "lives", timezone.now()) == []
    assert texts_at(alice, "lives", later + DAY) == ["The user lives in Oslo."]
    memory_update(
        user_id=alice.pk, memory_id=made.pk, content="The user lives in Rome.", valid_from=None
    )
    assert texts_at(alice, "lives", timezone.now()) == ["The user lives in Rome."]
