"""Where a purge looks: the admin's log, sessions, columns that nobody thought of, names, common words."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.test import Client

from apps.accounts.models import User
from apps.agent.models import ToolCall
from apps.capabilities.catalog.files import files_verified
from apps.chat.models import Conversation, Message, Turn
from apps.core.purging.places import PLACES, WORDLESS
from apps.core.purging.trace import MARKER, find
from apps.memory.models import Memory, Purged, PurgeReceipt
from apps.memory.purge import memory_purge, trace_of
from tests.capabilities.making import make
from tests.memory.conftest import MakeNote
from tests.memory.purged import TEXT, WORD, place
from tests.memory.purged import talk as talk

pytestmark = pytest.mark.django_db


def test_the_admins_log_of_the_note_loses_its_words(alice: User, admin: User, note: MakeNote) -> None:
    made = note(alice, TEXT)
    entry = LogEntry.objects.create(
        user=admin, content_type=ContentType.objects.get_for_model(Memory), object_id=str(made.pk),
        object_repr=str(made), action_flag=CHANGE, change_message=f"Changed {WORD}",
    )  # fmt: skip
    receipt = memory_purge(user_id=alice.pk, ids=[made.pk])
    entry.refresh_from_db()
    assert (entry.object_repr, entry.change_message) == (MARKER, "")
    assert place(receipt, "admin.log")["removed"] == 1


def test_a_session_that_quotes_it_is_cleaned(
    alice: User, note: MakeNote, sign_in: Callable[[User], Client]
) -> None:
    made = note(alice, TEXT)
    browser = sign_in(alice)
    session = browser.session
    session["draft"] = f"About: {TEXT}"
    session.save()
    memory_purge(user_id=alice.pk, ids=[made.pk])
    assert WORD not in browser.session["draft"]
    assert browser.get("/memory/").status_code == 200


def test_words_as_json_escapes_are_found(alice: User, note: MakeNote) -> None:
    made = note(alice, "Großmutters Königskuchenförmchen steht im Keller bei den Äpfeln.")
    call = ToolCall.objects.create(
        user=alice, round=1, position=0, tool_use_id="toolu_u", name="memory_search",
        input={"query": "Königskuchenförmchen"}, result=json.dumps([{"note_id": made.note_id, "text": made.content}]),
    )  # fmt: skip
    assert "\\u" in call.result
    receipt = memory_purge(user_id=alice.pk, ids=[made.pk])
    call.refresh_from_db()
    assert json.loads(call.result)[0]["text"] == MARKER
    assert call.input == {"query": MARKER}
    assert receipt.left == []


def test_a_column_that_is_no_place_of_its_own_is_looked_into_and_cleaned(
    alice: User, note: MakeNote
) -> None:
    made = note(alice, TEXT)
    turn = Turn.objects.create(
        user=alice,
        conversation=Conversation.objects.create(user=alice),
        state="failed",
        error_message=f"Echo: {TEXT}",
    )
    assert find(trace_of(alice.pk, Purged.NOTE, [made.pk]))[1]["chat.turn.error_message"] == [turn.pk]
    receipt = memory_purge(user_id=alice.pk, ids=[made.pk])
    turn.refresh_from_db()
    assert turn.error_message == MARKER
    assert place(receipt, "chat.turn.error_message")["removed"] == 1


def test_names_that_something_goes_by_are_not_rewritten(alice: User, note: MakeNote) -> None:
    made = note(alice, f"The {WORD} is a tool of mine.")
    tools = json.dumps([{"name": f"cap_{WORD}", "description": "Rolls.", "input_schema": {}}])
    conversation = Conversation.objects.create(user=alice, tools=tools)
    use = {"type": "tool_use", "id": "toolu_n", "name": f"cap_{WORD}", "input": {"what": f"the {WORD}"}}
    message = Message.objects.create(
        user=alice, conversation=conversation, position=1, role="assistant", blocks=json.dumps([use])
    )
    receipt = memory_purge(user_id=alice.pk, ids=[made.pk], redact=True)
    conversation.refresh_from_db()
    message.refresh_from_db()
    assert conversation.tools == tools
    assert json.loads(message.blocks) == [{**use, "input": {"what": MARKER}}]
    assert place(receipt, "chat.names")["left"] == 1


def test_what_was_made_of_the_message_a_note_came_from_goes_whatever_it_says(
    alice: User, note: MakeNote
) -> None:
    """Izzy read it along: nothing of the conversation names the note, and message, title and summary say it in other words."""
    made, other = (
        note(alice, TEXT),
        Conversation.objects.create(user=alice, title="Bread", summary="Bread."),
    )
    conversation = Conversation.objects.create(
        user=alice, title="A bird's feather", summary="They hid it below the steps.", summary_until=1
    )
    said = Message.objects.create(
        user=alice, conversation=conversation, position=1, role="user", text="I hid that thing again."
    )
    Memory.objects.for_user(alice).filter(pk=made.pk).update(source_message_id=said.pk)
    memory_purge(user_id=alice.pk, ids=[made.pk])
    for row in (conversation, other, said):
        row.refresh_from_db()
    assert (conversation.title, conversation.summary, conversation.summary_until) == ("", "", 0)
    assert (other.title, other.summary) == ("Bread", "Bread.")
    assert said.text == "I hid that thing again."


def holds_words(field: "models.Field[Any, Any]") -> bool:
    """Keys, choices and codes of up to eight signs hold none."""
    if field.choices or field.primary_key:
        return False
    if isinstance(field, models.CharField):
        return (field.max_length or 9) > 8
    return isinstance(field, models.TextField | models.JSONField | models.BinaryField | models.FileField)


def test_every_text_column_of_every_model_is_declared_once_and_exists() -> None:
    """A new one is declared in `apps.core.purging.places` with what a purge does with it."""
    there = {
        f"{model._meta.label_lower}.{field.name}"
        for model in apps.get_models(include_auto_created=True)
        if model._meta.managed and not model._meta.proxy
        for field in model._meta.concrete_fields
        if holds_words(field)
    }
    declared = [*(name for entry in PLACES for name in entry.columns), *WORDLESS]
    assert there == set(declared)
    assert len(declared) == len(set(declared))


def test_a_receipt_holds_ids_and_counts_alone() -> None:
    words = {
        field.name for field in PurgeReceipt._meta.concrete_fields if isinstance(field, models.TextField)
    }
    assert words == set()


def test_common_words_are_not_taken_for_the_notes_own(alice: User, note: MakeNote) -> None:
    made = note(alice, "I like good coffee in the morning.")
    call = ToolCall.objects.create(
        user=alice,
        round=1,
        position=0,
        tool_use_id="toolu_c",
        name="think",
        input={"thought": "A good morning to all."},
    )
    memory_purge(user_id=alice.pk, ids=[made.pk])
    call.refresh_from_db()
    assert call.input == {"thought": "A good morning to all."}


def test_a_call_with_an_invented_id_loses_the_word_in_it(alice: User, note: MakeNote) -> None:
    """Only what can be an id is left as one."""
    made = note(alice, f"The {WORD} is a tool of mine.")
    given = {"note_id": f"the-{WORD}", "content": "x"}
    call = ToolCall.objects.create(
        user=alice, turn_id=made.pk, round=1, position=0, tool_use_id="toolu_i", name="memory_update",
        state="done", input=given,
    )  # fmt: skip
    receipt = memory_purge(user_id=alice.pk, ids=[made.pk])
    call.refresh_from_db()
    assert call.input == {"note_id": MARKER, "content": "x"}
    assert receipt.left == []


def test_a_receipt_names_places_in_plain_words(
    alice: User, talk: tuple[Memory, Message, Message], note: MakeNote
) -> None:
    """Also those that nobody registered; and what only goes by an id is not counted as a place of its own."""
    made, _, _ = talk
    turn = Turn.objects.for_user(alice).first()
    assert turn is not None
    Turn.objects.for_user(alice).filter(pk=turn.pk).update(error_message=made.content)
    receipt = memory_purge(user_id=alice.pk, ids=[made.pk], redact=True)
    assert place(receipt, "chat.turn.error_message")["label"] == "Turns"
    found = {entry["place"] for entry in receipt.places if entry["found"]}
    assert not {name for name in found if name.startswith(("agent.toolcall", "search.passage."))}


def test_a_capability_whose_code_says_it_stays_and_is_told_of(
    alice: User, bob: User, note: MakeNote
) -> None:
    """Changed, it would not be what was approved; the receipt must not say that nothing is left."""
    made = note(alice, TEXT)
    code = f'def run(args: dict) -> str:\n    """Where things are."""\n    return "{TEXT}"\n'
    tool = make(alice, "finder", main=code)
    make(bob, "finder", main=code)
    make(alice, "greeter")
    receipt = memory_purge(user_id=alice.pk, ids=[made.pk])
    told = place(receipt, "capabilities.files")
    assert (told["found"], told["removed"], told["left"]) == (1, 0, 1)
    assert told["why"]
    version = tool.current
    assert version is not None
    assert TEXT in files_verified(version, "finder")["main.py"]


def test_a_capability_that_says_something_else_is_not_told_of(alice: User, note: MakeNote) -> None:
    make(alice, "greeter")
    assert memory_purge(user_id=alice.pk, ids=[note(alice, TEXT).pk]).left == []
