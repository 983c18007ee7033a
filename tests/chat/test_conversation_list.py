"""Conversations that are pinned, archived, found and gone: the list beside every page, the page of all of them, and REST."""

import json
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.chat.conversations.selectors import conversations_page, conversations_search
from apps.chat.conversations.services import (
    conversation_change,
    conversation_create,
    conversation_delete,
    conversation_hide,
)
from apps.chat.models import Conversation, Message
from apps.chat.templatetags.conversation_groups import marked
from apps.memory.transfer.exporting import export_lines

HTMX = {"HX-Request": "true"}
SignIn = Callable[[User], Client]


@pytest.fixture
def browser(alice: User, sign_in: SignIn) -> Client:
    return sign_in(alice)


def make(user: User, title: str, **marks: Any) -> Conversation:
    place = conversation_create(user_id=user.pk, title=title)
    return conversation_change(user_id=user.pk, conversation_id=place.pk, **marks) if marks else place


def say(place: Conversation, text: str) -> Message:
    return Message.objects.create(
        user_id=place.user_id, conversation=place, position=1, role="user", text=text, speaker="user"
    )


def change(client: Client, place: Conversation, body: dict[str, Any]) -> Any:
    path = f"/api/v1/conversations/{place.pk}/"
    return client.patch(path, body, content_type="application/json")


def titles(rows: Any) -> list[str]:
    return [row.title for row in rows]


def test_pinned_conversations_stand_first_and_archived_ones_nowhere(
    alice: User, browser: Client
) -> None:
    make(alice, "Old", pinned=True)
    for title in ("Middle", "New"):
        make(alice, title)
    make(alice, "Away", pinned=True, archived=True)
    assert titles(conversations_page(alice.pk)[0]) == ["Old", "New", "Middle"]
    sidebar = browser.get("/conversations/", headers=HTMX).content.decode()
    assert 'data-group="Pinned"' in sidebar
    assert "?show=archived" in sidebar
    assert "Away" not in sidebar


def test_a_change_says_what_it_is_and_leaves_the_order_by_time_alone(
    alice: User, browser: Client
) -> None:
    place = make(alice, "Plans")
    answer = change(browser, place, {"pinned": True, "title": "Other plans"})
    assert answer.status_code == 200
    assert (answer.json()["pinned"], answer.json()["archived"]) == (True, False)
    assert answer.json()["title"] == "Other plans"
    assert Conversation.objects.unscoped().get(pk=place.pk).updated_at == place.updated_at
    assert change(browser, place, {"archived": True}).json()["pinned"] is True
    assert change(browser, place, {"archived": False, "pinned": False}).json()["archived"] is False


@pytest.mark.parametrize("body", [{"pinned": None}, {"pinned": "maybe"}, {"archived": 3}, {"title": ""}])
def test_a_wrong_change_is_refused_and_changes_nothing(
    alice: User, browser: Client, body: dict[str, Any]
) -> None:
    place = make(alice, "Plans", pinned=True)
    assert change(browser, place, body).status_code == 400
    place.refresh_from_db()
    assert (place.title, place.pinned, place.archived) == ("Plans", True, False)


def test_nobody_pins_or_archives_what_is_somebody_elses(
    alice: User, bob: User, browser: Client, sign_in: SignIn
) -> None:
    place = make(alice, "Plans")
    for body in ({"pinned": True}, {"archived": True}):
        assert change(sign_in(bob), place, body).status_code == 404
    place.refresh_from_db()
    assert (place.pinned, place.archived) == (False, False)
    make(bob, "Bob's", archived=True)
    for path in ("/conversations/", "/conversations/?show=archived", "/conversations/?q=bob"):
        assert "Bob" not in browser.get(path).content.decode()


def test_a_program_lists_all_or_those_it_asks_for(alice: User, browser: Client) -> None:
    make(alice, "Plain")
    make(alice, "Pinned", pinned=True)
    make(alice, "Archived", archived=True)

    def listed(query: str) -> list[str]:
        rows = browser.get(f"/api/v1/conversations/{query}").json()["results"]
        return [row["title"] for row in rows]

    assert listed("") == ["Archived", "Pinned", "Plain"]
    assert listed("?archived=true") == ["Archived"]
    assert listed("?archived=false&pinned=false") == ["Plain"]
    assert listed("?q=pin&archived=false") == ["Pinned"]
    assert listed("?q=archived&archived=false") == []


def test_an_export_has_the_marks(
    alice: User,
) -> None:
    make(alice, "Plans", pinned=True)
    make(alice, "Old", archived=True)
    rows = [json.loads(line) for line in b"".join(export_lines(alice.pk)).splitlines()]
    marks = {
        row["title"]: (row["pinned"], row["archived"]) for row in rows if row["type"] == "conversation"
    }
    assert marks == {"Plans": (True, False), "Old": (False, True)}


def test_all_conversations_are_a_page_with_the_archived_ones_behind_a_tab(
    alice: User, browser: Client
) -> None:
    for number in range(41):
        make(alice, f"Number {number:02}")
    make(alice, "Away", archived=True)
    first = browser.get("/conversations/")
    assert "<h1>Conversations</h1>" in first.content.decode()
    assert len(first.context["listed"]) == 40
    assert titles(browser.get("/conversations/?page=2").context["listed"]) == ["Number 00"]
    assert titles(browser.get("/conversations/?show=archived").context["listed"]) == ["Away"]
    part = browser.get("/conversations/?show=archived", headers=HTMX).content.decode()
    assert "Away" in part
    assert "<html" not in part


def test_a_search_shows_the_words_and_leads_to_the_message(alice: User, browser: Client) -> None:
    place = make(alice, "Heating", archived=True)
    said = say(place, "Since May the <b>boiler</b> makes a strange noise")
    page = browser.get("/conversations/", {"q": "strange noise"}).content.decode()
    assert "makes a <mark>strange noise</mark>" in page
    assert "&lt;b&gt;boiler&lt;/b&gt;" in page
    assert f'href="/c/{place.pk}/#message-{said.pk}"' in page
    beside = browser.get("/conversations/", {"q": "strange noise"}, headers=HTMX).content.decode()
    assert f'href="/c/{place.pk}/#message-{said.pk}"' in beside


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Ärzte in Wien", "ärzte"),
        ("Поездка в Москву", "поездка"),
        ("ΑΘΗΝΑ trip", "αθηνα"),
        (unicodedata.normalize("NFD", "Café plans"), "CAFÉ"),
        ("Plain 100% title", "% TITLE"),
    ],
)
def test_a_search_finds_words_in_whatever_case_and_script(alice: User, text: str, query: str) -> None:
    titled, other = make(alice, text), make(alice, "Another one")
    said = make(alice, "Without memory")
    Conversation.objects.for_user(alice).filter(pk=said.pk).update(use_memory=False, last_position=1)
    say(said, f"Of this: {text}, and more")
    assert [row.pk for row, _ in conversations_search(alice.pk, query)] == [titled.pk, said.pk]
    assert other.pk not in {row.pk for row, _ in conversations_search(alice.pk, query[:3])}


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("strange noise", "Since May the boiler makes a <mark>strange noise</mark>, see the manual"),
        ("**boiler**", "Since May the <mark>**boiler**</mark> makes"),
    ],
)
def test_what_a_search_shows_has_no_signs_of_markdown(
    alice: User, browser: Client, query: str, shown: str
) -> None:
    text = "Since May the **boiler** makes a strange noise, see [the manual](https://example.org/m)"
    say(make(alice, "Heating"), text)
    assert shown in browser.get("/conversations/", {"q": query}).content.decode()


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        ("A boiler", "boil", "A <mark>boil</mark>er"),
        ("The boilers are loud", "loud boiler", "The <mark>boilers</mark> are <mark>loud</mark>"),
        ("the <b>", "<b>", "the <mark>&lt;b&gt;</mark>"),
        ("nothing of it", "xyz", "nothing of it"),
        ("a <i>", "(", "a &lt;i&gt;"),
        ("", "x", ""),
    ],
)
def test_what_was_searched_for_is_marked_and_nothing_else_is_markup(
    text: str, query: str, shown: str
) -> None:
    assert str(marked(text, query)) == shown


def test_a_conversation_that_was_deleted_leaves_a_page_that_says_so(
    alice: User, bob: User, browser: Client, sign_in: SignIn
) -> None:
    hidden, gone = make(alice, "Just now"), make(alice, "Long ago")
    conversation_hide(user_id=alice.pk, conversation_id=hidden.pk)
    conversation_delete(user_id=alice.pk, conversation_id=gone.pk)
    page = browser.get(f"/c/{hidden.pk}/")
    assert page.status_code == 404
    assert "You deleted “<bdi>Just now</bdi>” a moment ago" in page.content.decode()
    other = sign_in(bob).get(f"/c/{hidden.pk}/")
    assert other.status_code == 404
    assert "Just now" not in other.content.decode()
    assert "This conversation is not here" in browser.get(f"/c/{gone.pk}/").content.decode()
    assert browser.post(f"/c/{hidden.pk}/restore/").status_code == 302
    assert browser.get(f"/c/{hidden.pk}/").status_code == 200


def test_one_conversation_is_saved_as_markdown_from_its_menu(alice: User, browser: Client) -> None:
    place = make(alice, "Heating")
    say(place, "The boiler is loud")
    menu = browser.get("/conversations/", headers=HTMX).content.decode()
    path = f"/settings/data/export/?format=markdown&conversation={place.pk}"
    assert path.replace("&", "&amp;") in menu
    answer = browser.get(path)
    assert b"The boiler is loud" in answer.getvalue()
