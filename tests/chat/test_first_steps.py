"""An empty chat: how far the set-up has come, and suggestions from what the user has."""

import pytest
from django.test import Client

from apps.accounts.models import Preferences, User
from apps.accounts.services import token_create
from apps.chat.first_steps import first_steps, suggestions
from apps.chat.models import Conversation
from apps.core.backups import backup_made
from apps.memory.models import Status
from apps.memory.notes.creation import memory_create
from tests.capabilities.making import make

pytestmark = pytest.mark.django_db


def titles(user: User, *, done: bool) -> set[str]:
    return {step.title for step in first_steps(user) if step.done == done}


def test_a_user_sees_what_is_theirs_to_do(alice: User) -> None:
    assert titles(alice, done=False) == {
        "A first memory", "A first conversation", "A program that shares your memory",
    }  # fmt: skip
    memory_create(user_id=alice.pk, content="I keep bees")
    assert titles(alice, done=True) == {"A first memory"}


def test_a_superuser_sees_the_instance_too(admin: User) -> None:
    before = titles(admin, done=False)
    assert {"A language model", "A finer search", "A search engine", "A backup"} <= before
    backup_made()
    assert before - titles(admin, done=False) == {"A backup"}


def test_all_done_is_nothing_to_show(alice: User) -> None:
    memory_create(user_id=alice.pk, content="I keep bees")
    Conversation.objects.create(user=alice, title="Bees")
    token_create(user=alice, name="laptop", scopes=["read"])
    assert first_steps(alice) == []


def test_they_are_put_away_and_come_back_from_the_settings(alice: User, client: Client) -> None:
    client.force_login(alice)
    assert b"First steps" in client.get("/").content
    client.post("/settings/put-away/first-steps/")
    assert b"First steps" not in client.get("/").content
    assert b"Show it again" in client.get("/settings/").content
    client.post("/settings/put-away/first-steps/", {"back": "1"})
    assert b"First steps" in client.get("/").content
    assert client.post("/settings/put-away/nothing/").status_code == 404
    assert Preferences.objects.get(user=alice).put_away == {}


def test_suggestions_come_from_what_the_user_has(alice: User, bob: User) -> None:
    nothing = [each.title for each in suggestions(bob.pk)]
    memory_create(user_id=alice.pk, content="Bees swarm in May", tags=["bees"])
    talk = Conversation.objects.create(user=alice, title="<b>Hives</b>")
    Conversation.objects.create(user=alice, title="Put away", archived=True)
    found = suggestions(alice.pk)
    assert [each.words for each in found[:2]] == ["<b>Hives</b>", "What do you know about bees?"]
    assert found[0].url == f"/c/{talk.pk}/"
    assert [each.title for each in suggestions(bob.pk)] == nothing
    assert len(found) == 4


def test_a_card_leads_to_a_page_that_opens(alice: User, client: Client) -> None:
    make(alice)
    Conversation.objects.create(user=alice, title="Hives")
    client.force_login(alice)
    pages = [each.url for each in suggestions(alice.pk) if each.url]
    assert [client.get(page).status_code for page in pages] == [200, 200]


def test_what_is_gone_is_suggested_no_more(alice: User, bob: User, client: Client) -> None:
    talk = Conversation.objects.create(user=alice, title="Hives")
    client.force_login(bob)
    assert b"Hives" not in client.get("/suggestions/").content
    client.force_login(alice)
    assert b"Hives" in client.get("/suggestions/").content
    client.post(f"/c/{talk.pk}/delete/")
    assert b"Hives" not in client.get("/suggestions/").content


def test_what_waits_comes_first_and_foreign_words_suggest_nothing(alice: User) -> None:
    note = memory_create(user_id=alice.pk, content="Says somebody", tags=["strange"])
    type(note).objects.for_user(alice).update(status=Status.PENDING, trust="untrusted")
    found = suggestions(alice.pk)
    assert found[0].words == "One memory waits for your word"
    assert not any("strange" in each.words for each in found)


def test_hostile_words_are_shown_as_words(alice: User, client: Client) -> None:
    client.force_login(alice)
    Conversation.objects.create(user=alice, title="<script>alert(1)</script>")
    page = client.get("/").content.decode()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
