"""Purging a note or file: what goes, what stays and is said to stay, and that it is one user's alone."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.agent.models import ToolCall
from apps.chat.models import Conversation, Message, Turn, TurnEvent
from apps.core.errors import Conflict, NotFound
from apps.core.purging.search import find
from apps.core.purging.trace import MARKER
from apps.core.registries import purge_places
from apps.memory.models import Memory, MemoryFile, Purged, PurgeReceipt, PurgeState
from apps.memory.purge import file_purge, memory_purge, memory_purge_preview
from apps.memory.purge.services import _begin
from apps.memory.purge.sweeps import interrupted_resume
from apps.memory.purge.tracing import trace_of
from apps.memory.services import edge_create, memory_archive, memory_delete, memory_update
from apps.memory.services.files import file_write
from tests.memory.conftest import MakeNote, found
from tests.memory.test_deleting_notes import rows_with

pytestmark = pytest.mark.django_db

WORD = "zanzibarquill"
TEXT = f"The {WORD} is kept under the third stair."


def place(receipt: PurgeReceipt, name: str) -> dict[str, Any]:
    return next(entry for entry in receipt.places if entry["place"] == name)


@pytest.fixture
def talk(alice: User, note: MakeNote) -> tuple[Memory, Message, Message]:
    """A note, the message it came from, and Izzy's answer with a tool call about it, all in one conversation."""
    made = note(alice, TEXT, tags=[WORD])
    conversation = Conversation.objects.create(user=alice, title=f"Where is the {WORD}?")
    turn = Turn.objects.create(
        user=alice,
        conversation=conversation,
        state="done",
        memories=[{"id": str(made.pk), "note_id": made.note_id, "text": TEXT}],
    )
    context = (
        f"<context>\nNow: today\n<memories>\n- [{made.note_id}, 2026-11-21] {TEXT}\n</memories>\n</context>"
    )
    said = Message.objects.create(
        user=alice, conversation=conversation, turn=turn, position=1, role="user", text=f"Remember: {TEXT}",
        blocks=json.dumps([{"type": "text", "text": context}, {"type": "text", "text": f"Remember: {TEXT}"}]),
    )  # fmt: skip
    use = {"type": "tool_use", "id": "toolu_9", "name": "memory_save", "input": {"content": TEXT}}
    answer = Message.objects.create(
        user=alice, conversation=conversation, turn=turn, position=2, role="assistant", round=1, seq=5,
        text=f"I know where the {WORD} is now.",
        blocks=json.dumps([{"type": "text", "text": f"I know where the {WORD} is now."}, use]),
    )  # fmt: skip
    ToolCall.objects.create(
        user=alice, conversation_id=conversation.pk, turn_id=turn.pk, round=1, position=0, tool_use_id="toolu_9",
        name="memory_save", state="done", input={"content": TEXT}, result=json.dumps({"note_id": made.note_id}),
    )  # fmt: skip
    TurnEvent.objects.create(
        conversation=conversation, turn=turn, seq=1, last_seq=3, type="text_delta",
        payload=json.dumps({"texts": ["I know where the zanzi", "barquill ", "is now."]}),
    )  # fmt: skip
    Memory.objects.for_user(alice).filter(pk=made.pk).update(source_message_id=said.pk)
    return made, said, answer


def test_without_redaction_what_was_said_stays_and_the_receipt_says_so(
    alice: User, talk: tuple[Memory, Message, Message]
) -> None:
    made, said, answer = talk
    receipt = memory_purge(user_id=alice.pk, memory_id=made.pk)
    said.refresh_from_db()
    answer.refresh_from_db()
    assert (said.text, answer.text) == (f"Remember: {TEXT}", f"I know where the {WORD} is now.")
    context, words = json.loads(said.blocks)
    assert WORD not in context["text"]
    assert "Now: today" in context["text"]
    assert words["text"] == said.text
    assert json.loads(answer.blocks)[1]["input"] == {"content": MARKER}
    assert Turn.objects.for_user(alice).get().memories == []
    assert WORD not in json.dumps(ToolCall.objects.for_user(alice).get().input)
    left = {entry["place"]: entry["left"] for entry in receipt.left}
    assert left == {"chat.messages": 2, "chat.blocks": 2, "chat.events": 1}
    assert place(receipt, "memory.notes") | {"why": ""} == {
        "place": "memory.notes", "label": "Notes", "why": "", "found": 1, "removed": 1, "left": 0,
    }  # fmt: skip
    assert place(receipt, "search.passages")["removed"] == 1
    assert all(entry["why"] for entry in receipt.left)
    assert [entry["redacted"] for entry in receipt.source_messages] == [False, False]


def test_with_redaction_nothing_is_left_and_the_conversation_can_be_sent(
    alice: User, talk: tuple[Memory, Message, Message]
) -> None:
    made, said, answer = talk
    receipt = memory_purge(user_id=alice.pk, memory_id=made.pk, redact=True)
    assert receipt.left == []
    assert rows_with(WORD) == {}
    said.refresh_from_db()
    answer.refresh_from_db()
    assert (said.text, answer.text) == (MARKER, MARKER)
    assert [block["type"] for block in json.loads(answer.blocks)] == ["text", "tool_use"]
    event = TurnEvent.objects.get()
    assert len(json.loads(event.payload)["texts"]) == event.last_seq - event.seq + 1
    assert Conversation.objects.for_user(alice).get().title == ""


def test_only_the_chosen_messages_are_redacted(alice: User, talk: tuple[Memory, Message, Message]) -> None:
    made, said, answer = talk
    receipt = memory_purge(user_id=alice.pk, memory_id=made.pk, redact=[said.pk])
    said.refresh_from_db()
    answer.refresh_from_db()
    assert said.text == MARKER
    assert WORD in answer.text
    assert place(receipt, "chat.messages")["left"] == 1


def test_a_message_that_says_something_else_cannot_be_redacted(
    alice: User, talk: tuple[Memory, Message, Message]
) -> None:
    made, said, _ = talk
    other = Message.objects.create(
        user=alice, conversation=said.conversation, position=9, role="user", text="Good morning."
    )
    with pytest.raises(NotFound):
        memory_purge(user_id=alice.pk, memory_id=made.pk, redact=[other.pk])
    assert Memory.objects.for_user(alice).filter(pk=made.pk, status="active").exists()


def test_the_preview_lists_messages_and_notes_that_say_the_same(
    alice: User, note: MakeNote, talk: tuple[Memory, Message, Message]
) -> None:
    made, said, _ = talk
    same = note(alice, f"Mother says that {TEXT}")
    note(alice, "Bread is under the table.")
    preview = memory_purge_preview(alice.pk, made.pk)
    assert (preview.sources[0].id, preview.sources[0].recorded) == (said.pk, True)
    assert list(preview.related) == [same]


def test_a_note_that_shares_the_text_stays_whole_and_is_listed(alice: User, note: MakeNote) -> None:
    made, same = note(alice, TEXT), note(alice, f"Mother says that {TEXT}")
    receipt = memory_purge(user_id=alice.pk, memory_id=made.pk)
    same.refresh_from_db()
    assert same.content == f"Mother says that {TEXT}"
    assert receipt.related_ids == [str(same.pk)]
    assert place(receipt, "memory.notes")["left"] == 1
    assert found(alice, WORD) == [same.pk]


def test_notes_that_are_named_go_with_it(alice: User, note: MakeNote) -> None:
    made, same = note(alice, TEXT), note(alice, f"Mother says that {TEXT}")
    receipt = memory_purge(user_id=alice.pk, memory_id=made.pk, also=[same.pk])
    assert receipt.subject_ids == [str(made.pk), str(same.pk)]
    assert receipt.left == []
    assert not Memory.objects.with_deleted(alice.pk).exists()
    assert rows_with(WORD) == {}


@pytest.mark.parametrize("status", ["active", "pending", "archived", "superseded", "deleted"])
def test_a_note_of_any_status_is_purged_with_its_past_and_links(
    alice: User, note: MakeNote, status: str
) -> None:
    made, other = note(alice, TEXT), note(alice, "The cat is called Mia.")
    memory_update(user_id=alice.pk, memory_id=made.pk, content="The oxpeckerlantern hangs in the barn.")
    edge_create(user_id=alice.pk, source_id=made.pk, target_id=other.pk, relation=f"near the {WORD}")
    if status == "deleted":
        memory_delete(user_id=alice.pk, memory_id=made.pk)
    elif status == "archived":
        memory_archive(user_id=alice.pk, memory_id=made.pk)
    else:
        Memory.objects.for_user(alice).filter(pk=made.pk).update(status=status)
    receipt = memory_purge(user_id=alice.pk, memory_id=made.pk)
    assert receipt.left == []
    assert rows_with(WORD) == rows_with("oxpeckerlantern") == {}
    with pytest.raises(NotFound):
        memory_purge(user_id=alice.pk, memory_id=made.pk)


def test_of_two_users_with_the_same_note_only_mine_goes(alice: User, bob: User, note: MakeNote) -> None:
    mine, his = note(alice, TEXT), note(bob, TEXT)
    call = ToolCall.objects.create(
        user=bob, round=1, position=0, tool_use_id="toolu_b", name="memory_save", input={"content": TEXT}
    )
    receipt = memory_purge(user_id=alice.pk, memory_id=mine.pk)
    call.refresh_from_db()
    assert receipt.left == []
    assert call.input == {"content": TEXT}
    assert found(bob, WORD) == [his.pk]
    assert memory_purge_preview(bob.pk, his.pk).text == TEXT
    with pytest.raises(NotFound):
        memory_purge(user_id=alice.pk, memory_id=his.pk)


def test_the_admins_log_of_the_note_loses_its_words(alice: User, admin: User, note: MakeNote) -> None:
    made = note(alice, TEXT)
    entry = LogEntry.objects.create(
        user=admin, content_type=ContentType.objects.get_for_model(Memory), object_id=str(made.pk),
        object_repr=str(made), action_flag=CHANGE, change_message=f"Changed {WORD}",
    )  # fmt: skip
    receipt = memory_purge(user_id=alice.pk, memory_id=made.pk)
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
    memory_purge(user_id=alice.pk, memory_id=made.pk)
    assert WORD not in browser.session["draft"]
    assert browser.get("/memory/").status_code == 200


def test_words_as_json_escapes_are_found(alice: User, note: MakeNote) -> None:
    made = note(alice, "Großmutters Königskuchenförmchen steht im Keller bei den Äpfeln.")
    call = ToolCall.objects.create(
        user=alice, round=1, position=0, tool_use_id="toolu_u", name="memory_search",
        input={"query": "Königskuchenförmchen"}, result=json.dumps([{"note_id": made.note_id, "text": made.content}]),
    )  # fmt: skip
    assert "\\u" in call.result
    receipt = memory_purge(user_id=alice.pk, memory_id=made.pk)
    call.refresh_from_db()
    assert json.loads(call.result)[0]["text"] == MARKER
    assert call.input == {"query": MARKER}
    assert receipt.left == []


def test_while_an_answer_uses_it_the_purge_is_refused_and_nothing_changes(
    alice: User, talk: tuple[Memory, Message, Message]
) -> None:
    made, _, _ = talk
    Turn.objects.for_user(alice).update(state="running")
    with pytest.raises(Conflict) as caught:
        memory_purge(user_id=alice.pk, memory_id=made.pk, redact=True)
    assert caught.value.code == "turn_running"
    assert Memory.objects.for_user(alice).get(pk=made.pk).status == "active"
    assert not PurgeReceipt.objects.for_user(alice).exists()


def test_a_file_goes_with_its_past_and_the_tool_calls_that_wrote_it(alice: User) -> None:
    path = "/memories/secret_plans.txt"
    file_write(user_id=alice.pk, path=path, text=f"Step one: the {WORD}.\nStep two: rest.")
    file = file_write(
        user_id=alice.pk, path=path, text="The oxpeckerlantern hangs in the barn.\nStep two: rest."
    )
    ToolCall.objects.create(
        user=alice, round=1, position=0, tool_use_id="toolu_f", name="memory",
        input={"command": "create", "path": path, "file_text": f"Step one: the {WORD}.\nStep two: rest."},
        result=f"Here's the content of {path} with line numbers:\n     1\tThe oxpeckerlantern hangs in the barn.",
    )  # fmt: skip
    receipt = file_purge(user_id=alice.pk, file_id=file.pk)
    call = ToolCall.objects.for_user(alice).get()
    assert receipt.left == []
    assert rows_with(WORD) == rows_with("oxpeckerlantern") == {}
    assert call.input["command"] == "create"
    assert not MemoryFile.objects.with_deleted(alice.pk).exists()
    with pytest.raises(NotFound):
        file_purge(user_id=alice.pk, file_id=file.pk)


def test_a_purge_that_was_interrupted_is_finished_by_the_sweep(alice: User, note: MakeNote) -> None:
    made = note(alice, TEXT)
    receipt = _begin(
        trace_of(user_id=alice.pk, source=Purged.NOTE, ids=[made.pk]), [made.pk], [], by_sweep=False
    )
    assert found(alice, WORD) == []
    PurgeReceipt.objects.for_user(alice).update(started_at=timezone.now() - timedelta(hours=1))
    interrupted_resume()
    receipt.refresh_from_db()
    assert receipt.state == PurgeState.DONE
    assert rows_with(WORD) == {}


def test_a_column_nobody_registered_is_looked_into_and_cleaned(alice: User, note: MakeNote) -> None:
    made = note(alice, TEXT)
    turn = Turn.objects.create(
        user=alice,
        conversation=Conversation.objects.create(user=alice),
        state="failed",
        error_message=f"Echo: {TEXT}",
    )
    assert "chat.turn.error_message" not in {name for _, entry in purge_places for name in entry.columns}
    trace = trace_of(user_id=alice.pk, source=Purged.NOTE, ids=[made.pk])
    assert find(trace)["chat.turn.error_message"] == [turn.pk]
    receipt = memory_purge(user_id=alice.pk, memory_id=made.pk)
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
    receipt = memory_purge(user_id=alice.pk, memory_id=made.pk, redact=True)
    conversation.refresh_from_db()
    message.refresh_from_db()
    assert conversation.tools == tools
    assert json.loads(message.blocks) == [{**use, "input": {"what": MARKER}}]
    assert place(receipt, "chat.names")["left"] == 1


def test_a_message_that_an_edit_replaced_is_offered_too(
    alice: User, talk: tuple[Memory, Message, Message]
) -> None:
    made, said, _ = talk
    Message.objects.for_user(alice).filter(pk=said.pk).update(superseded_by=said.turn)
    assert said.pk in {text.id for text in memory_purge_preview(alice.pk, made.pk).sources}


def test_every_registered_column_exists() -> None:
    from apps.core.purging.columns import columns

    known = {column.name for column in columns()}
    named = {name for _, entry in purge_places for name in entry.columns}
    assert named <= known, named - known


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
    memory_purge(user_id=alice.pk, memory_id=made.pk)
    call.refresh_from_db()
    assert call.input == {"thought": "A good morning to all."}


class TestRest:
    def test_purge_and_receipts(self, alice: User, note: MakeNote, api: Callable[..., Client]) -> None:
        made, client = note(alice, TEXT), api(alice)
        url = f"/api/v1/memories/{made.note_id}/purge/"
        assert client.get(url).json()["source_messages"] == []
        receipt = client.post(url, data="{}", content_type="application/json").json()
        assert receipt["memory_id"] == str(made.pk)
        assert (receipt["state"], receipt["left"], receipt["disk"]["state"]) == ("done", [], "scheduled")
        assert client.post(url, data="{}", content_type="application/json").status_code == 404
        listed = client.get("/api/v1/memory-purges/").json()
        assert [entry["id"] for entry in listed["results"]] == [receipt["id"]]
        assert client.get(f"/api/v1/memory-purges/{receipt['id']}/").json() == receipt

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            ({"redact": "all"}, 400),
            ({"also": {}}, 400),
            ({"also": ["x"]}, 404),
            ({"redact": ["018f0000-0000-7000-8000-000000000000"]}, 404),
            ({"also": ["018f0000-0000-7000-8000-000000000000"] * 101}, 413),
            ({"force": True}, 400),
        ],
    )
    def test_bad_input_changes_nothing(
        self, alice: User, note: MakeNote, api: Callable[..., Client], body: dict[str, Any], status: int
    ) -> None:
        made = note(alice, TEXT)
        url = f"/api/v1/memories/{made.pk}/purge/"
        assert api(alice).post(url, data=body, content_type="application/json").status_code == status
        assert found(alice, WORD) == [made.pk]

    def test_a_token_that_may_only_read_may_not_purge(
        self, alice: User, note: MakeNote, api: Callable[..., Client]
    ) -> None:
        made = note(alice, TEXT)
        client = api(alice, "read")
        url = f"/api/v1/memories/{made.pk}/purge/"
        assert client.get(url).status_code == 200
        assert client.post(url, data={}, content_type="application/json").status_code == 403


class TestPages:
    def test_the_page_asks_and_shows_the_receipt(
        self, alice: User, talk: tuple[Memory, Message, Message], sign_in: Callable[[User], Client]
    ) -> None:
        made, said, answer = talk
        browser = sign_in(alice)
        page = browser.get(f"/memory/{made.pk}/purge/").content.decode()
        assert TEXT in page
        assert f'value="{said.pk}"' in page
        after = browser.post(
            f"/memory/{made.pk}/purge/", {"redact": [str(said.pk), str(answer.pk)]}, follow=True
        )
        shown = after.content.decode()
        assert "Nothing of it is left" in shown
        assert WORD not in shown
        assert "Receipts" in browser.get("/memory/purges/").content.decode()

    def test_while_an_answer_uses_it_the_page_says_so(
        self, alice: User, talk: tuple[Memory, Message, Message], sign_in: Callable[[User], Client]
    ) -> None:
        made, _, _ = talk
        Turn.objects.for_user(alice).update(state="running")
        answer = sign_in(alice).post(f"/memory/{made.pk}/purge/")
        assert answer.status_code == 409
        assert "Stop the answer" in answer.content.decode()


def test_a_call_with_an_invented_id_loses_the_word_in_it(alice: User, note: MakeNote) -> None:
    """Only what can be an id is left as one."""
    made = note(alice, f"The {WORD} is a tool of mine.")
    given = {"note_id": f"the-{WORD}", "content": "x"}
    call = ToolCall.objects.create(
        user=alice, turn_id=made.pk, round=1, position=0, tool_use_id="toolu_i", name="memory_update",
        state="done", input=given,
    )  # fmt: skip
    receipt = memory_purge(user_id=alice.pk, memory_id=made.pk)
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
    receipt = memory_purge(user_id=alice.pk, memory_id=made.pk, redact=True)
    assert place(receipt, "chat.turn.error_message")["label"] == "Turns"
    found = {entry["place"] for entry in receipt.places if entry["found"]}
    assert not {name for name in found if name.startswith(("agent.toolcall", "search.passage."))}
