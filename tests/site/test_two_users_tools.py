"""Every tool of the model, called in bob's name with alice's ids: nothing of hers shows, and nothing of hers changes."""

import json
from typing import Any

import pytest

from apps.accounts.models import User
from apps.agent.tools.base import ToolFailure, all_tools
from apps.core.db.pool import in_db
from apps.core.errors import IzzyError
from tests.site.belongings import FILE, MARK, TOOL, Belongings, make_belongings, rows_of
from tests.tools import Tools

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "What about the shellfish allergy and chess on Sundays?"


def inputs(hers: Belongings) -> dict[str, dict[str, Any]]:
    note, conversation = f"note-{hers.note}", str(hers.conversation)
    return {
        "ask_user": {"question": "?"},
        "think": {"thought": "x"},
        "memory": {
            "command": "str_replace",
            "path": FILE,
            "old_str": "Prawns",
            "new_str": "bob was here",
        },
        "memory_search": {"query": QUESTION, "top_k": 20, "include_conversation": True},
        "memory_save": {"content": "bob was here"},
        "memory_update": {"note_id": note, "content": "bob was here"},
        "memory_delete": {"note_id": note},
        "store_memory": {"content": "bob was here"},
        "recall_memory": {"keywords": ["shellfish", "prawns", MARK, "chess"]},
        "link_memories": {"source_id": note, "target_id": f"note-{hers.deleted_note}"},
        "related_memories": {"note_id": note},
        "deep_memory": {"query": "What does she eat, and what does she play?"},
        "lookup_capability": {"name": TOOL, "query": f"count shellfish for the {MARK}"},
        "list_capabilities": {"limit": 100},
        "read_capability_docs": {"name": TOOL},
        "execute_capability": {"name": TOOL, "input": {"count": 1}},
        "request_capability": {
            "name": TOOL,
            "description": "Counts.",
            "input_schema": {"type": "object"},
            "feedback": "bob was here",
        },
        "open_page": {"url": "http://127.0.0.1/"},
        "web_search": {"query": QUESTION},
        "conversation_search": {"query": QUESTION, "limit": 20},
        "conversation_list": {"limit": 50},
        "conversation_read": {"conversation_id": conversation},
        "attachment_read": {"id": str(hers.attachment)},
        "attachment_keep": {"id": str(hers.attachment), "path": "/memories/bob.txt"},
        "conversation_delete": {"conversation_id": conversation},
    }


async def call(name: str, user: User, hers: Belongings) -> str:
    """Returns what the model would get, be it result or failure. Even the turn's conversation is alice's."""

    tools = Tools(user_id=user.pk, conversation_id=hers.conversation, turn_id=hers.turn, answer="x")
    try:
        result = await tools.output(name, **inputs(hers)[name])
    except (ToolFailure, IzzyError) as failure:
        return str(failure)
    return json.dumps([result.data, tools.progress])


@pytest.mark.parametrize("name", [tool.name for tool in all_tools()])
async def test_in_bobs_name_a_tool_reaches_nothing_of_alices(name: str, alice: User, bob: User) -> None:
    hers = await in_db(make_belongings, alice)
    before = await in_db(rows_of, alice)
    assert name in inputs(hers), f"tell `inputs` what {name} is called with"
    answer = await call(name, bob, hers)
    assert MARK not in answer
    assert "shellfish" not in answer
    assert await in_db(rows_of, alice) == before


async def test_in_alices_name_they_find_what_is_hers(alice: User) -> None:
    hers = await in_db(make_belongings, alice)
    said = ("conversation_search", "conversation_list", "conversation_read")
    for name in ("memory_search", "recall_memory", "deep_memory", *said):
        assert MARK in await call(name, alice, hers), name
