"""A conversation is deleted with or without the memories that came from it, and both come back."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from apps.chat.conversations.services import conversation_create
from apps.chat.models import Conversation
from apps.chat.turns.services import message_send
from apps.memory.models import Memory, MemoryRevision, Origin, Trust
from apps.memory.notes.changes import memory_delete
from apps.memory.notes.creation import memory_create
from apps.memory.notes.revisions import Change
from apps.search.selectors import search

HTMX = {"HX-Request": "true"}
SignIn = Callable[[User], Client]


@pytest.fixture
def browser(alice: User, sign_in: SignIn) -> Client:
    return sign_in(alice)


def talk(user: User, title: str = "Plans", notes: tuple[str, ...] = ()) -> Conversation:
    made = conversation_create(user_id=user.pk, title=title)
    for text in notes:
        change = Change(actor=Origin.USER, trust=Trust.USER, conversation_id=made.pk)
        memory_create(user_id=user.pk, content=text, change=change)
    return made


def kept(user: User) -> set[str]:
    return set(Memory.objects.owned_by(user.pk).values_list("content", flat=True))


def delete(client: Client, place: Conversation, **given: Any) -> str:
    return client.post(f"/c/{place.pk}/delete/", given, headers=HTMX).content.decode()


def test_what_a_deletion_would_take_is_shown_before(alice: User, browser: Client) -> None:
    place = talk(alice, notes=("<b>Figs</b> are fine.", "Pears are not."))
    talk(alice, "Other", notes=("Plums are dear.",))
    for headers in (HTMX, {}):
        shown = browser.get(f"/c/{place.pk}/delete/", headers=headers).content.decode()
        assert "Delete the 2 memories" in shown
        assert "&lt;b&gt;Figs&lt;/b&gt; are fine." in shown
        assert "Plums" not in shown
    assert "No memory came from it" in browser.get(f"/c/{talk(alice).pk}/delete/").content.decode()


def test_memories_stay_unless_they_are_ticked(alice: User, browser: Client) -> None:
    place = talk(alice, notes=("Figs are fine.",))
    assert "1 memory" not in delete(browser, place)
    assert kept(alice) == {"Figs are fine."}


def test_undo_brings_back_the_conversation_and_what_went_with_it_alone(
    alice: User, bob: User, browser: Client, sign_in: SignIn
) -> None:
    place = talk(alice, notes=("Figs are fine.", "Pears are not.", "Plums are dear."))
    talk(alice, "Other", notes=("Nuts are hard.",))
    plums = Memory.objects.owned_by(alice.pk).get(content="Plums are dear.")
    memory_delete(user_id=alice.pk, memory_id=plums.pk)
    assert "and 2 memories" in delete(browser, place, memories="yes")
    assert kept(alice) == {"Nuts are hard."}
    assert [hit.text for hit in search(alice.pk, "figs pears")] == ["Nuts are hard."]
    page = browser.get(f"/c/{place.pk}/")
    assert page.status_code == 404
    assert "the 2 memories that went with it" in page.content.decode()
    assert sign_in(bob).post(f"/c/{place.pk}/restore/").status_code == 404
    assert browser.post(f"/c/{place.pk}/restore/").status_code == 302
    assert kept(alice) == {"Figs are fine.", "Pears are not.", "Nuts are hard."}
    assert search(alice.pk, "figs")[0].text == "Figs are fine."
    assert browser.get(f"/c/{place.pk}/").status_code == 200


def test_who_looks_at_it_hears_on_the_next_page_what_went_with_it(alice: User, browser: Client) -> None:
    place = talk(alice, notes=("Figs are fine.",))
    here = HTMX | {"HX-Current-URL": f"http://testserver/c/{place.pk}/"}
    answer = browser.post(f"/c/{place.pk}/delete/", {"memories": "yes"}, headers=here)
    assert answer["HX-Redirect"] == "/"
    assert "Deleted “<bdi>Plans</bdi>” and 1 memory." in browser.get("/").content.decode()
    other = talk(alice, notes=("Pears are not.",))
    assert browser.post(f"/c/{other.pk}/delete/", {"memories": "yes"})["Location"] == "/"
    assert kept(alice) == set()


def test_a_program_says_whether_the_memories_go(alice: User, api: Callable[[User], Client]) -> None:
    program = api(alice)
    stays, goes = talk(alice, notes=("Figs are fine.",)), talk(alice, notes=("Pears are not.",))
    assert program.get(f"/api/v1/conversations/{goes.pk}/").json()["memories"] == 1
    listed = program.get(f"/api/v1/memories/?conversation={goes.pk}").json()["results"]
    assert [row["content"] for row in listed] == ["Pears are not."]
    assert program.delete(f"/api/v1/conversations/{goes.pk}/?memories=perhaps").status_code == 400
    assert program.delete(f"/api/v1/conversations/{stays.pk}/").status_code == 204
    assert program.delete(f"/api/v1/conversations/{goes.pk}/?memories=true").status_code == 204
    assert kept(alice) == {"Figs are fine."}
    assert MemoryRevision.objects.for_user(alice).get(action="deleted").actor == "api"
    back = f"/api/v1/memories/{listed[0]['id']}/restore/"
    assert program.post(back, {}, content_type="application/json").status_code == 200


def test_the_list_of_memories_shows_those_of_one_conversation(
    alice: User, bob: User, browser: Client
) -> None:
    place = talk(alice, notes=("Figs are fine.",))
    talk(alice, "Other", notes=("Pears are not.",))
    talk(bob, notes=("Plums are dear.",))
    url = reverse("memory:list")
    shown = browser.get(f"{url}?conversation={place.pk}")
    assert [row.text for row in shown.context["rows"]] == ["Figs are fine."]
    assert browser.get(f"{url}?conversation=nonsense").status_code == 200


def test_an_archived_conversation_comes_back_when_its_user_writes_in_it(
    alice: User, browser: Client
) -> None:
    place = talk(alice)
    Conversation.objects.for_user(alice).update(archived=True)
    assert browser.get(f"/c/{place.pk}/").context["snapshot"]["archived"] is True
    message_send(user_id=alice.pk, text="Hello again", conversation=str(place.pk))
    place.refresh_from_db()
    assert place.archived is False
