"""Shared by the tests of purges: a note, and a conversation about it."""

import json
from typing import Any

import pytest

from apps.accounts.models import User
from apps.agent.models import ToolCall
from apps.chat.models import Conversation, Message, Turn, TurnEvent
from apps.memory.models import Memory, PurgeReceipt
from tests.memory.conftest import MakeNote

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
    context = f"<context>\nNow: today\n<memories>\n- [{made.note_id}, 2026-11-21] {TEXT}\n</memories>\n</context>"
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
