"""The chat's pages and the fragments of its sidebar."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from pytest_django import Settings

from apps.accounts.models import User
from apps.builder.builds.messages import message_add
from apps.builder.models import Build, Kind, MessageType
from apps.capabilities.catalog.versions import capability_begin
from apps.chat.conversations import selectors as finding
from apps.chat.conversations.handover import messages_index
from apps.chat.conversations.ingest import messages_ingest
from apps.chat.conversations.services import (
    conversation_create,
    conversation_delete,
    conversation_rename,
)
from apps.chat.models import Conversation, Message
from apps.memory.models import Memory
from apps.memory.notes.creation import memory_create

SCHEMA = {"type": "object", "properties": {}}
SignIn = Callable[[User], Client]
HTMX = {"HX-Request": "true"}


@pytest.fixture
def browser(alice: User, sign_in: SignIn) -> Client:
    return sign_in(alice)


def make(user: User, title: str, **values: Any) -> Conversation:
    return conversation_create(user_id=user.id, title=title, **values)


def speak(conversation: Conversation, text: str) -> Message:
    return Message.objects.create(
        user_id=conversation.user_id,
        conversation=conversation,
        position=1,
        role="user",
        text=text,
        speaker="user",
    )


def test_the_empty_chat_says_what_is_missing_offline(browser: Client, settings: Settings) -> None:
    page = browser.get("/")
    assert page.status_code == 200
    assert "ANTHROPIC_API_KEY" in page.content.decode()
    settings.ANTHROPIC_BASE_URL = "http://127.0.0.1:9"
    assert "ANTHROPIC_API_KEY" not in browser.get("/").content.decode()


def test_a_conversation_is_painted_from_its_snapshot(alice: User, browser: Client) -> None:
    place = make(alice, "Plans")
    speak(place, "Hello <script>alert(1)</script>")
    page = browser.get(f"/c/{place.id}/")
    assert (
        page.context["snapshot"]["messages"][0]["html"]
        == "<p>Hello &lt;script&gt;alert(1)&lt;/script&gt;</p>"
    )
    assert b"<script>alert(1)" not in page.content
    assert page.context["active_id"] == str(place.id)


def test_the_news_change_with_the_sidebar_and_name_the_users_own_questions_alone(
    alice: User, bob: User, browser: Client
) -> None:
    def stamp() -> str:
        return str(browser.get("/news/").json()["stamp"])

    stamps = [stamp()]
    make(bob, "Not hers")
    assert stamp() == stamps[0]
    place = make(alice, "Plans")
    stamps.append(stamp())
    conversation_rename(user_id=alice.id, conversation_id=place.id, title="Other plans")
    stamps.append(stamp())
    assert len(set(stamps)) == 3
    conversation_delete(user_id=alice.id, conversation_id=place.id)
    assert stamp() == stamps[0]

    for user, name in ((alice, "dice_roller"), (bob, "coin_flipper")):
        tool = capability_begin(user_id=user.id, name=name, description="Rolls.", input_schema=SCHEMA)
        build = Build.objects.create(user_id=user.id, capability=tool, name=name, kind=Kind.NEW)
        with transaction.atomic():
            for seconds, text in ((60, "How many?"), (0, "Too late?")):
                payload = {"kind": "answer", "text": text, "seconds": seconds}
                message_add(build=build, type=MessageType.QUESTION, payload=payload)
    [asked] = browser.get("/news/").json()["asks"]
    assert (asked["name"], asked["text"]) == ("dice_roller", "How many?")
    assert 0 < asked["seconds"] <= 60

    for user in (alice, bob):
        memory_create(user_id=user.id, content="Bees")
        Memory.objects.for_user(user).update(status="pending")
    assert browser.get("/news/").json()["review"] == 1


def test_signing_in_is_needed() -> None:
    for path in ("/", "/conversations/", "/c/01890000-0000-7000-8000-000000000000/"):
        response = Client().get(path)
        assert response.status_code == 302
        assert "sign-in" in response["location"] or "setup" in response["location"]


@pytest.mark.parametrize("wrong", ["01890000-0000-7000-8000-000000000000", "nonsense", "%00", "é"])
def test_unknown_conversations_are_not_found(browser: Client, wrong: str) -> None:
    assert browser.get(f"/c/{wrong}/").status_code == 404
    assert browser.get(f"/c/{wrong}/rename/").status_code == 404
    assert browser.post(f"/c/{wrong}/delete/").status_code == 404


def test_the_list_comes_in_pages(alice: User, browser: Client) -> None:
    for number in range(41):
        make(alice, f"Number {number:02}")
    first = browser.get("/conversations/", headers=HTMX)
    assert (len(first.context["conversations"]), first.context["has_more"]) == (40, True)
    assert first.context["conversations"][0].title == "Number 40"
    second = browser.get("/conversations/?page=2", headers=HTMX)
    assert ([row.title for row in second.context["conversations"]], second.context["has_more"]) == (
        ["Number 00"],
        False,
    )


def test_every_page_comes_with_the_list(alice: User, bob: User, browser: Client) -> None:
    for number in range(41):
        make(alice, f"Plan {number}")
    make(bob, "Bob's plan")
    for path in ("/memory/files/?page=2", "/settings/", "/memory/browse/?q=tea"):
        page = browser.get(path).content.decode()
        assert page.count("data-conversation-row=") == 40, path
        assert "/conversations/?q=&amp;page=2" in page, (
            "the way to the rest, whatever the page itself is asked for"
        )
        assert "Bob" not in page


@pytest.mark.parametrize("page", ["0", "-1", "x", "9" * 50, "²", ""])
def test_a_strange_page_number_is_taken_for_the_first_or_an_empty_one(
    browser: Client, page: str
) -> None:
    assert browser.get("/conversations/", {"page": page}, headers=HTMX).status_code == 200


def test_search_finds_titles_words_and_what_was_said(alice: User, browser: Client) -> None:
    boiler, plans = make(alice, "Heating"), make(alice, "Plans for May")
    make(alice, "Nothing of note")
    speak(boiler, "The boiler makes a strange noise at night")

    def found(query: str) -> list[str]:
        return [
            row.title
            for row in browser.get("/conversations/", {"q": query}, headers=HTMX).context[
                "conversations"
            ]
        ]

    assert found("boiler") == ["Heating"]
    assert found("boil") == ["Heating"]
    assert found("plans") == [plans.title]
    assert found("submarine") == []
    said = (
        browser.get("/conversations/", {"q": "strange noise"}, headers=HTMX)
        .context["conversations"][0]
        .said
    )
    assert "strange noise" in said.text


def test_search_finds_old_conversations_by_the_words_and_new_ones_by_any_signs(
    alice: User, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "RECENT_CONVERSATIONS", 1)
    monkeypatch.setattr(finding, "_best_passages", lambda *given: {})
    for title, text in (("Old", "The boiler makes a strange noise"), ("Newest", "Heidelberg in May")):
        messages_index([speak(make(alice, title), text)])
    speak(make(alice, "Secret", use_memory=False), "An Albatross")
    Conversation.objects.for_user(alice).filter(title="Secret").update(updated_at="2020-01-01T00:00:00Z")

    def found(query: str) -> list[str]:
        return [
            row.title
            for row in browser.get("/conversations/", {"q": query}, headers=HTMX).context[
                "conversations"
            ]
        ]

    assert [found(query) for query in ("boil", "STRANGE  noi", "delberg", "batros")] == [
        ["Old"],
        ["Old"],
        ["Newest"],
        ["Secret"],
    ]


def test_search_leaves_ingested_conversations_out(alice: User, browser: Client) -> None:
    messages_ingest(
        user_id=alice.id, session="s", messages=[{"role": "user", "content": "The boiler is loud"}]
    )
    assert browser.get("/conversations/", {"q": "boiler"}, headers=HTMX).context["conversations"] == []


@pytest.mark.parametrize(
    "query",
    [
        "\x00",
        "\ud800".encode("utf-16", "surrogatepass").decode("latin-1"),
        "%",
        "_",
        '"',
        "'",
        "x" * 5000,
    ],
)
def test_strange_queries_break_nothing(browser: Client, query: str) -> None:
    assert browser.get("/conversations/", {"q": query}, headers=HTMX).status_code == 200


def test_renaming_gives_the_row_back(alice: User, browser: Client) -> None:
    place = make(alice, "Old")
    form = browser.get(f"/c/{place.id}/rename/")
    assert 'value="Old"' in form.content.decode()
    row = browser.post(f"/c/{place.id}/rename/", {"title": "  New   name "})
    assert "New name" in row.content.decode()
    place.refresh_from_db()
    assert (place.title, place.title_by_user) == ("New name", True)


@pytest.mark.parametrize("title", ["", "   ", "x" * 201, "a\x00"])
def test_a_bad_title_gives_the_form_back(alice: User, browser: Client, title: str) -> None:
    place = make(alice, "Old")
    response = browser.post(f"/c/{place.id}/rename/", {"title": title})
    assert response.status_code == 422
    assert response.context["error"]
    place.refresh_from_db()
    assert place.title == "Old"


def test_deleting_the_conversation_one_looks_at_leads_to_an_empty_chat(
    alice: User, browser: Client
) -> None:
    here, there = make(alice, "Here"), make(alice, "There")
    current = {"HX-Request": "true", "HX-Current-URL": f"http://testserver/c/{here.id}/"}
    assert "HX-Redirect" not in browser.post(f"/c/{there.id}/delete/", headers=current)
    assert browser.post(f"/c/{here.id}/delete/", headers=current)["HX-Redirect"] == "/"
    assert not Conversation.objects.for_user(alice).exists()


def test_changes_need_post_and_a_token(alice: User) -> None:
    place = make(alice, "Here")
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(alice)
    assert strict.get(f"/c/{place.id}/delete/").status_code == 200  # which asks first
    assert strict.post(f"/c/{place.id}/delete/").status_code == 403
    assert Conversation.objects.for_user(alice).exists()


def test_superusers_look_at_the_rows_in_the_admin(admin: User, alice: User, sign_in: SignIn) -> None:
    speak(make(alice, "Plans"), "Hello there")
    browser = sign_in(admin)
    for name in ("conversation", "message", "turn", "turnevent"):
        page = browser.get(f"/admin/chat/{name}/", {"q": "a"})
        assert page.status_code == 200, name
    assert sign_in(alice).get("/admin/chat/message/").status_code in {302, 403}
