"""Several notes at once, as the memories page does it."""

from collections.abc import Callable

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.core.errors import InvalidInput, NotFound, TooLarge
from apps.memory.models import Memory
from apps.memory.services import memory_create, memory_delete
from apps.memory.services.ticked import MAX_TICKED, memories_archive, memories_delete, memories_tag

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
    assert "2 memories deleted." in page
    assert states(alice) == {"Likes tea.": "deleted", "Has a cat.": "deleted", "Rows on Fridays.": "active"}


def test_ticked_notes_are_put_away(browser: Client, alice: User, three: list[Memory]) -> None:
    assert "1 memory put away." in post(browser, "archive", three[:1])
    assert states(alice)["Likes tea."] == "archived"


def test_a_tag_is_added_to_those_that_have_others(browser: Client, alice: User, three: list[Memory]) -> None:
    assert "2 memories tagged “home”." in post(browser, "tag", three[1:], tag=" home ")
    tags = dict(Memory.objects.for_user(alice).values_list("content", "tags"))
    assert tags == {"Likes tea.": ["old"], "Has a cat.": ["old", "home"], "Rows on Fridays.": ["old", "home"]}
    post(browser, "tag", three[1:], tag="home")
    assert Memory.objects.for_user(alice).get(pk=three[1].pk).tags == ["old", "home"]


def test_ticked_notes_lead_to_the_form_that_merges_them(browser: Client, three: list[Memory]) -> None:
    assert "What the one memory says" in post(browser, "merge", three[:2])


def test_all_or_none(alice: User, three: list[Memory]) -> None:
    memory_delete(user_id=alice.pk, memory_id=three[2].pk)
    with pytest.raises(NotFound):
        memories_delete(user_id=alice.pk, memory_ids=[note.pk for note in three])
    with pytest.raises(NotFound):
        memories_archive(user_id=alice.pk, memory_ids=[note.pk for note in three])
    assert states(alice) == {"Likes tea.": "active", "Has a cat.": "active", "Rows on Fridays.": "deleted"}


def test_somebody_elses_note_is_not_there(bob: User, alice: User, three: list[Memory]) -> None:
    with pytest.raises(NotFound):
        memories_tag(user_id=bob.pk, memory_ids=[three[0].pk], tag="mine")
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
        memories_tag(user_id=alice.pk, memory_ids=[three[0].pk], tag="a\x00b")
    with pytest.raises(TooLarge):
        memories_delete(user_id=alice.pk, memory_ids=[three[0].pk] * (MAX_TICKED + 1))
