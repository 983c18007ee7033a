"""Several notes at once, as the memories page does it."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.core.errors import InvalidInput, NotFound, TooLarge
from apps.memory.models import Memory
from apps.memory.notes.changes import memory_archive, memory_delete, memory_update
from apps.memory.notes.creation import memory_create
from apps.memory.notes.joining import MAX_MERGED, memory_supersede
from apps.memory.notes.undoing import MAX_AT_ONCE, bulk_change, memory_tag
from apps.memory.similarity import NOTES
from apps.search.selectors import search

pytestmark = pytest.mark.django_db


@pytest.fixture
def three(alice: User) -> list[Memory]:
    texts = ("Likes tea.", "Has a cat.", "Rows on Fridays.")
    return [memory_create(user_id=alice.pk, content=text, tags=["old"]) for text in texts]


@pytest.fixture
def browser(alice: User, sign_in: Callable[[User], Client]) -> Client:
    return sign_in(alice)


def states(user: User) -> dict[str, str]:
    return dict(Memory.objects.with_deleted(user.pk).values_list("content", "status"))


def post(browser: Client, do: str, notes: list[Memory], **more: str) -> str:
    data = {"do": do, "notes": [str(note.pk) for note in notes], **more}
    return browser.post("/memory/ticked/", data, follow=True).content.decode()


def test_ticked_notes_are_deleted_and_the_others_stay(
    browser: Client, alice: User, three: list[Memory]
) -> None:
    page = post(browser, "delete", three[:2])
    assert "Deleted “<bdi>Likes tea.</bdi>” and “<bdi>Has a cat.</bdi>”." in page
    assert states(alice) == {
        "Likes tea.": "deleted",
        "Has a cat.": "deleted",
        "Rows on Fridays.": "active",
    }


def test_ticked_notes_are_put_away(browser: Client, alice: User, three: list[Memory]) -> None:
    assert "Archived “<bdi>Likes tea.</bdi>”." in post(browser, "archive", three[:1])
    assert states(alice)["Likes tea."] == "archived"


def test_a_tag_is_added_to_those_that_have_others(
    browser: Client, alice: User, three: list[Memory]
) -> None:
    assert (
        "Tagged “<bdi>home</bdi>”: “<bdi>Has a cat.</bdi>” and “<bdi>Rows on Fridays.</bdi>”."
        in post(browser, "tag", three[1:], tag=" home ")
    )
    tags = dict(Memory.objects.for_user(alice).values_list("content", "tags"))
    assert tags == {
        "Likes tea.": ["old"],
        "Has a cat.": ["old", "home"],
        "Rows on Fridays.": ["old", "home"],
    }
    post(browser, "tag", three[1:], tag="home")
    assert Memory.objects.for_user(alice).get(pk=three[1].pk).tags == ["old", "home"]


def test_ticked_notes_lead_to_the_form_that_merges_them(browser: Client, three: list[Memory]) -> None:
    assert "What the one memory says" in post(browser, "merge", three[:2])


def undo(browser: Client, page: str) -> str:
    """Presses the Undo that a page offers."""
    steps = re.findall(r'name="step" value="([^"]+)"', page)
    return browser.post("/memory/take-back/", {"step": steps}, follow=True).content.decode()


@pytest.mark.parametrize("do", ["delete", "archive", "tag"])
def test_what_was_done_to_many_is_undone_in_one_go(
    do: str, browser: Client, alice: User, three: list[Memory]
) -> None:
    page = post(browser, do, three, tag="home")
    assert "3 memories: “<bdi>Likes tea.</bdi>”, “<bdi>Has a cat.</bdi>” and 1 more" in page
    assert "Undone." in undo(browser, page)
    assert set(states(alice).values()) == {"active"}
    assert all(note.tags == ["old"] for note in Memory.objects.for_user(alice))
    found = search(alice.pk, "a cat", scope=NOTES)
    assert [hit.text for hit in found][:1] == ["Has a cat."]


@pytest.mark.parametrize("days", [0, 30])
def test_undoing_a_tag_leaves_alone_what_replaced_the_note_or_is_to(
    browser: Client, alice: User, three: list[Memory], days: int
) -> None:
    ahead: dict[str, Any] = {"valid_from": timezone.now() + timedelta(days=days)} if days else {}
    memory_supersede(user_id=alice.pk, memory_id=three[0].pk, content="Something else.", **ahead)
    rows = Memory.everything.order_by("pk")
    before = list(rows.values("pk", "status", "superseded_by", "valid_to", "tags"))
    page = post(browser, "tag", three[:1], tag="home")
    assert rows[0].tags == ["old", "home"]
    undo(browser, page)
    assert list(rows.values("pk", "status", "superseded_by", "valid_to", "tags")) == before


@pytest.mark.parametrize(("do", "state"), [("archive", "archived"), ("delete", "deleted")])
def test_what_was_put_away_is_brought_back_by_the_dozen(
    do: str, state: str, browser: Client, alice: User, three: list[Memory]
) -> None:
    post(browser, do, three)
    shown = browser.get(f"/memory/browse/?status={state}").content.decode()
    assert shown.count('name="notes"') == 3
    assert "Bring back</button>" in shown
    page = post(browser, "restore", three[:2], back=f"status={state}")
    assert "Brought back “<bdi>Likes tea.</bdi>” and “<bdi>Has a cat.</bdi>”." in page
    assert sorted(states(alice).values()) == sorted(["active", "active", state])
    undo(browser, page)
    assert set(states(alice).values()) == {state}


def test_the_list_keeps_its_filters(browser: Client, three: list[Memory]) -> None:
    data = {"do": "tag", "notes": [str(three[0].pk)], "tag": "x", "back": "tag=old&ordering=created_at"}
    answer = browser.post("/memory/ticked/", data)
    assert answer["Location"] == "/memory/browse/?tag=old&ordering=created_at"


def test_more_notes_than_one_merge_takes_in_are_told_of(browser: Client, alice: User) -> None:
    many = [memory_create(user_id=alice.pk, content=f"Tree {n}.") for n in range(MAX_MERGED + 2)]
    assert "At most 20 memories can be merged at once" in post(browser, "merge", many)


def test_a_merge_is_undone(browser: Client, alice: User, three: list[Memory]) -> None:
    data = {"notes": [str(note.pk) for note in three[:2]], "content": "Likes tea and has a cat."}
    page = browser.post("/memory/merge/", data, follow=True).content.decode()
    assert "Merged into one: “<bdi>Likes tea.</bdi>” and “<bdi>Has a cat.</bdi>”." in page
    assert states(alice)["Likes tea and has a cat."] == "active"
    undo(browser, page)
    assert states(alice) == {
        "Likes tea.": "active",
        "Has a cat.": "active",
        "Rows on Fridays.": "active",
    }


def test_what_was_changed_since_is_not_undone_with_the_others(
    browser: Client, alice: User, three: list[Memory]
) -> None:
    page = post(browser, "tag", three, tag="home")
    memory_update(user_id=alice.pk, memory_id=three[1].pk, content="Has two cats.")
    assert "It was changed since" in undo(browser, page)
    assert all(note.tags == ["old", "home"] for note in Memory.objects.for_user(alice))


def test_nobody_undoes_what_another_did(
    browser: Client, bob: User, alice: User, three: list[Memory], sign_in: Callable[[User], Client]
) -> None:
    page = post(browser, "delete", three)
    assert "no longer there" in undo(sign_in(bob), page)
    assert set(states(alice).values()) == {"deleted"}


@pytest.mark.parametrize(
    "steps",
    [
        [],
        ["undo"],
        ["undo x 1 1"],
        ["explode 1 2 3"],
        ["undo 1 a 1"],
        ["delete\x00 1 1 1"],
        ["undo 1 1 1"] * 501,
    ],
)
def test_what_is_no_step_is_told(steps: list[str], browser: Client, three: list[Memory]) -> None:
    answer = browser.post("/memory/take-back/", {"step": steps}, follow=True)
    assert answer.status_code == 200
    assert "notice-danger" in answer.content.decode()


def test_all_or_none(alice: User, three: list[Memory]) -> None:
    memory_delete(user_id=alice.pk, memory_id=three[2].pk)
    with pytest.raises(NotFound):
        bulk_change(memory_delete, user_id=alice.pk, memory_ids=[note.pk for note in three])
    with pytest.raises(NotFound):
        bulk_change(memory_archive, user_id=alice.pk, memory_ids=[note.pk for note in three])
    assert states(alice) == {
        "Likes tea.": "active",
        "Has a cat.": "active",
        "Rows on Fridays.": "deleted",
    }


def test_somebody_elses_note_is_not_there(bob: User, alice: User, three: list[Memory]) -> None:
    with pytest.raises(NotFound):
        bulk_change(memory_tag, user_id=bob.pk, memory_ids=[three[0].pk], tag="mine")
    assert Memory.objects.for_user(alice).get(pk=three[0].pk).tags == ["old"]


@pytest.mark.parametrize(
    ("do", "said"),
    [
        ("tag", "Write the tag"),
        ("delete", "Tick some memories first."),
        ("explode", "Choose what to do"),
        ("", "Choose what to do"),
    ],
)
def test_nothing_ticked_and_nothing_to_do_are_told(browser: Client, do: str, said: str) -> None:
    assert said in post(browser, do, [])


def test_a_note_that_is_gone_is_told(browser: Client, alice: User, three: list[Memory]) -> None:
    memory_delete(user_id=alice.pk, memory_id=three[0].pk)
    assert "one of these memories is no longer there" in post(browser, "archive", three)


def test_what_is_no_tag_and_too_many_at_once_are_refused(alice: User, three: list[Memory]) -> None:
    with pytest.raises(InvalidInput):
        bulk_change(memory_tag, user_id=alice.pk, memory_ids=[three[0].pk], tag="a\x00b")
    with pytest.raises(TooLarge):
        bulk_change(memory_delete, user_id=alice.pk, memory_ids=[three[0].pk] * (MAX_AT_ONCE + 1))
