"""Purging a note or file: what goes, what stays and is said to stay, and that it is one user's alone."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.agent.models import ToolCall
from apps.chat.conversations.handover import messages_index
from apps.chat.integrity import message_documents
from apps.chat.models import Conversation, Message, Turn, TurnEvent
from apps.core.errors import Conflict, NotFound
from apps.core.purging.trace import MARKER
from apps.memory import purge
from apps.memory.files.services import file_write
from apps.memory.models import Import, Memory, MemoryFile, Purged, PurgeReceipt, PurgeState
from apps.memory.notes.changes import memory_archive, memory_delete, memory_update
from apps.memory.notes.joining import edge_create
from apps.memory.purge import hide, interrupted_resume, memory_purge, purge_preview, trace_of
from apps.search.models import Passage
from tests.failing import fails_first
from tests.memory.conftest import MakeNote, found
from tests.memory.purged import TEXT, WORD, place
from tests.memory.purged import talk as talk
from tests.memory.test_deleting_notes import rows_with

pytestmark = pytest.mark.django_db


def test_without_redaction_what_was_said_stays_and_the_receipt_says_so(
    alice: User, talk: tuple[Memory, Message, Message]
) -> None:
    made, said, answer = talk
    receipt = memory_purge(user_id=alice.pk, ids=[made.pk])
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
    receipt = memory_purge(user_id=alice.pk, ids=[made.pk], redact=True)
    assert receipt.left == []
    assert rows_with(WORD) == {}
    said.refresh_from_db()
    answer.refresh_from_db()
    assert (said.text, answer.text) == (MARKER, MARKER)
    assert [block["type"] for block in json.loads(answer.blocks)] == ["text", "tool_use"]
    event = TurnEvent.objects.get()
    assert len(json.loads(event.payload)["texts"]) == event.last_seq - event.seq + 1
    assert Conversation.objects.for_user(alice).get().title == ""


def test_only_the_chosen_messages_are_redacted(
    alice: User, talk: tuple[Memory, Message, Message]
) -> None:
    made, said, answer = talk
    receipt = memory_purge(user_id=alice.pk, ids=[made.pk], redact=[said.pk])
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
        memory_purge(user_id=alice.pk, ids=[made.pk], redact=[other.pk])
    assert Memory.objects.for_user(alice).filter(pk=made.pk, status="active").exists()


def test_the_preview_lists_messages_and_notes_that_say_the_same(
    alice: User, note: MakeNote, talk: tuple[Memory, Message, Message]
) -> None:
    made, said, _ = talk
    same = note(alice, f"Mother says that {TEXT}")
    note(alice, "Bread is under the table.")
    preview = purge_preview(alice.pk, Purged.NOTE, made.pk)
    assert (preview.sources[0].id, preview.sources[0].recorded) == (said.pk, True)
    assert list(preview.related) == [same]


def test_a_note_that_shares_the_text_stays_whole_and_is_listed(alice: User, note: MakeNote) -> None:
    made, same = note(alice, TEXT), note(alice, f"Mother says that {TEXT}")
    receipt = memory_purge(user_id=alice.pk, ids=[made.pk])
    same.refresh_from_db()
    assert same.content == f"Mother says that {TEXT}"
    assert receipt.related_ids == [str(same.pk)]
    assert place(receipt, "memory.notes")["left"] == 1
    assert found(alice, WORD) == [same.pk]


def test_notes_that_are_named_go_with_it(alice: User, note: MakeNote) -> None:
    made, same = note(alice, TEXT), note(alice, f"Mother says that {TEXT}")
    receipt = memory_purge(user_id=alice.pk, ids=[made.pk, same.pk])
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
    receipt = memory_purge(user_id=alice.pk, ids=[made.pk])
    assert receipt.left == []
    assert rows_with(WORD) == rows_with("oxpeckerlantern") == {}
    with pytest.raises(NotFound):
        memory_purge(user_id=alice.pk, ids=[made.pk])


def test_of_two_users_with_the_same_note_only_mine_goes(alice: User, bob: User, note: MakeNote) -> None:
    mine, his = note(alice, TEXT), note(bob, TEXT)
    call = ToolCall.objects.create(
        user=bob, round=1, position=0, tool_use_id="toolu_b", name="memory_save", input={"content": TEXT}
    )
    receipt = memory_purge(user_id=alice.pk, ids=[mine.pk])
    call.refresh_from_db()
    assert receipt.left == []
    assert call.input == {"content": TEXT}
    assert found(bob, WORD) == [his.pk]
    assert purge_preview(bob.pk, Purged.NOTE, his.pk).text == TEXT
    with pytest.raises(NotFound):
        memory_purge(user_id=alice.pk, ids=[his.pk])


def test_while_an_answer_uses_it_the_purge_is_refused_and_nothing_changes(
    alice: User, talk: tuple[Memory, Message, Message]
) -> None:
    made, _, _ = talk
    Turn.objects.for_user(alice).update(state="running")
    with pytest.raises(Conflict) as caught:
        memory_purge(user_id=alice.pk, ids=[made.pk], redact=True)
    assert caught.value.code == "turn_running"
    assert Memory.objects.for_user(alice).get(pk=made.pk).status == "active"
    assert not PurgeReceipt.objects.for_user(alice).exists()


@pytest.mark.parametrize("state", ["waiting", "running"])
def test_while_a_file_is_to_be_imported_the_purge_is_refused_for_its_owner_alone(
    alice: User, bob: User, note: MakeNote, state: str
) -> None:
    made, his = note(alice, TEXT), note(bob, TEXT)
    job = Import.objects.for_user(alice).create(user=alice, size=1, reader="text", state=state)
    with pytest.raises(Conflict) as caught:
        memory_purge(user_id=alice.pk, ids=[made.pk])
    assert caught.value.code == "import_running"
    assert Memory.objects.for_user(alice).get(pk=made.pk).status == "active"
    assert memory_purge(user_id=bob.pk, ids=[his.pk]).state == PurgeState.DONE
    Import.objects.for_user(alice).filter(pk=job.pk).update(state="cancelled")
    assert memory_purge(user_id=alice.pk, ids=[made.pk]).state == PurgeState.DONE


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
    receipt = memory_purge(user_id=alice.pk, ids=[file.pk], source=Purged.FILE)
    call = ToolCall.objects.for_user(alice).get()
    assert receipt.left == []
    assert rows_with(WORD) == rows_with("oxpeckerlantern") == {}
    assert call.input["command"] == "create"
    assert not MemoryFile.objects.with_deleted(alice.pk).exists()
    with pytest.raises(NotFound):
        memory_purge(user_id=alice.pk, ids=[file.pk], source=Purged.FILE)


def test_a_purge_that_was_interrupted_is_finished_by_the_sweep(alice: User, note: MakeNote) -> None:
    made = note(alice, TEXT)
    receipt = hide(trace_of(alice.pk, Purged.NOTE, [made.pk]), [made.pk])
    assert found(alice, WORD) == []
    PurgeReceipt.objects.for_user(alice).update(started_at=timezone.now() - timedelta(hours=1))
    interrupted_resume()
    receipt.refresh_from_db()
    assert receipt.state == PurgeState.DONE
    assert rows_with(WORD) == {}


def test_an_interrupted_purge_that_fails_again_keeps_no_other_waiting(
    alice: User, bob: User, note: MakeNote, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user in (alice, bob):
        made = note(user, TEXT)
        hide(trace_of(user.pk, Purged.NOTE, [made.pk]), [made.pk])
    PurgeReceipt.objects.unscoped().update(started_at=timezone.now() - timedelta(hours=1))
    monkeypatch.setattr(purge, "_surveyed", fails_first(purge._surveyed))
    with pytest.raises(ValueError, match="broken"):
        interrupted_resume()
    assert PurgeReceipt.objects.unscoped().filter(state=PurgeState.DONE).count() == 1
    interrupted_resume()
    assert rows_with(WORD) == {}


def test_a_message_that_an_edit_replaced_is_offered_too(
    alice: User, talk: tuple[Memory, Message, Message]
) -> None:
    made, said, _ = talk
    Message.objects.for_user(alice).filter(pk=said.pk).update(superseded_by=said.turn)
    assert said.pk in {text.id for text in purge_preview(alice.pk, Purged.NOTE, made.pk).sources}


def test_what_was_redacted_is_not_to_be_found_by_its_mark(
    alice: User, talk: tuple[Memory, Message, Message]
) -> None:
    made, said, answer = talk
    Message.objects.unscoped().update(indexed=True)
    memory_purge(user_id=alice.pk, ids=[made.pk], redact=True)
    wanted = message_documents(alice.pk, [said.pk, answer.pk])
    assert wanted == {said.pk: [], answer.pk: []}
    # as a conversation that was deleted and is brought back
    Message.objects.unscoped().update(indexed=False)
    messages_index(list(Message.objects.unscoped().select_related("conversation")))
    assert not Passage.objects.filter(text__contains=MARKER).exists()
