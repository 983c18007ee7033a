"""The command palette: what it finds for whom."""

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.capabilities.catalog.versions import capability_create
from apps.chat.conversations.handover import messages_index
from apps.chat.conversations.ingest import messages_ingest
from apps.chat.models import Conversation, Message, Role
from apps.chat.palette import palette
from apps.memory.files.services import file_write
from apps.memory.models import Status
from apps.memory.notes.creation import memory_create
from tests.capabilities.making import draft

pytestmark = pytest.mark.django_db


def found(user: User, query: str) -> dict[str, list[str]]:
    return {group.title: [each.title for each in group.entries] for group in palette(user, query)}


def test_without_words_it_shows_the_newest_and_what_can_be_done(alice: User) -> None:
    bees = Conversation.objects.create(user=alice, title="Bees")
    groups = found(alice, "  ")
    assert palette(alice, "  ")[0].entries[0].at == bees.updated_at  # tells it from one of the same name
    assert groups["Conversations"] == ["Bees"]
    assert {"New conversation", "Review", "Switch theme"} <= {*groups["Go to"]}
    assert "Admin" not in groups["Go to"]


def test_it_finds_something_of_every_kind(alice: User) -> None:
    Conversation.objects.create(user=alice, title="Honey harvest")
    note = memory_create(user_id=alice.pk, content="The user sells honey on Saturdays")
    file_write(user_id=alice.pk, path="/memories/honey/prices.md", text="A jar is 8 euros")
    capability_create(user_id=alice.pk, name="honey_price", draft=draft())
    groups = palette(alice, "honey")
    assert found(alice, "honey") == {
        "Conversations": ["Honey harvest"],
        "Memories": ["You sell honey on Saturdays"],
        "Files": ["honey/prices.md"],
        "Capabilities": ["honey price"],
    }
    assert groups[1].entries[0].url == f"/memory/{note.pk}/"


def test_what_it_finds_is_shown_without_the_signs_of_markdown(alice: User) -> None:
    memory_create(user_id=alice.pk, content="# Honey\n\n**Ada** sells it:\n\n- in `jars`")
    assert found(alice, "honey")["Memories"] == ["Honey Ada sells it: • in jars"]


def test_titles_and_names_are_found_in_whatever_case(alice: User) -> None:
    Conversation.objects.create(user=alice, title="Übersicht der Bienen")
    file_write(user_id=alice.pk, path="/memories/Übersicht.md", text="x")
    shown = found(alice, "übersicht")
    assert shown["Conversations"] == ["Übersicht der Bienen"]
    assert shown["Files"] == ["Übersicht.md"]


def test_what_is_called_so_stands_before_what_only_tells_of_it(alice: User) -> None:
    for number in range(30):
        file_write(user_id=alice.pk, path=f"/memories/boiler {number}.md", text="The boiler is loud.")
    for number in range(6):
        file_write(user_id=alice.pk, path=f"/memories/a{number}.md", text="The honey harvest of May")
        made = draft(description="Works out the price of honey")
        capability_create(user_id=alice.pk, name=f"a{number}_prices", draft=made)
    file_write(user_id=alice.pk, path="/memories/honey.md", text="Ten jars are left.")
    capability_create(user_id=alice.pk, name="honey", draft=draft(description="Counts jars"))
    shown = found(alice, "honey")
    assert [shown["Files"][0], shown["Capabilities"][0]] == ["honey.md", "honey"]
    assert [len(shown["Files"]), len(shown["Capabilities"])] == [5, 5]


def test_a_conversation_that_is_about_it_stands_before_newer_ones_that_touch_on_it(alice: User) -> None:
    said = ["The warranty of the boiler ends in May"] + ["The boiler is loud, and so is the radio"] * 6
    for number, text in enumerate(said):
        talk = Conversation.objects.create(user=alice, title=f"Talk {number}")
        message = Message(user=alice, conversation=talk, position=1, role=Role.USER, text=text)
        message.save()
        messages_index([message])
    assert found(alice, "boiler warranty")["Conversations"][0] == "Talk 0"


def test_a_talkative_conversation_leaves_room_for_the_rest(alice: User) -> None:
    memory_create(user_id=alice.pk, content="The user sells honey on Saturdays")
    said = [
        {"role": "user", "content": f"Honey, message {number}", "external_id": str(number)}
        for number in range(40)
    ]
    messages_ingest(user_id=alice.pk, session="s", channel="mail", messages=said)
    assert found(alice, "honey")["Memories"] == ["You sell honey on Saturdays"]


def test_a_word_that_tells_no_note_from_the_others_finds_the_newest(alice: User) -> None:
    for number in range(12):
        memory_create(user_id=alice.pk, content=f"The garden has bed number {number}")
    shown = found(alice, "the")["Memories"]
    assert shown == [f"The garden has bed number {number}" for number in (11, 10, 9, 8, 7)]
    assert "Memories" not in found(alice, "thesaurus")


def test_a_beginning_is_enough_for_what_can_be_done(admin: User) -> None:
    assert found(admin, "imp exp") == {"Go to": ["Import and export"]}
    assert "Admin" in found(admin, "adm")["Go to"]


def test_it_finds_nothing_of_anybody_else_nor_what_waits(alice: User, bob: User) -> None:
    note = memory_create(user_id=alice.pk, content="Honey is stored in the cellar")
    Conversation.objects.create(user=alice, title="Honey harvest")
    assert found(bob, "honey") == {}
    type(note).objects.for_user(alice).update(status=Status.PENDING)
    assert "Memories" not in found(alice, "honey")


def test_hostile_names_are_words(alice: User, client: Client) -> None:
    client.force_login(alice)
    Conversation.objects.create(user=alice, title="<script>alert(1)</script>" + "x" * 150)
    page = client.get("/palette/", {"q": "<script>"}).content.decode()
    assert "&lt;script&gt;alert" in page
    assert "<script>" not in page
    assert client.get("/palette/", {"q": "y" * 60_000}).status_code == 200
    assert client.get("/palette/", {"q": "\x00"}).status_code == 200
