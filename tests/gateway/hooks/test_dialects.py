"""Each client is answered in the shape that it documents; what is given here are events as the clients send them."""

from typing import Any

import jsonschema
import pytest

from apps.accounts.models import User
from apps.memory.models import STANDING
from tests.gateway.hooks.conftest import Send, context_of
from tests.memory.conftest import MakeNote

pytestmark = pytest.mark.django_db

FACT = "The user is allergic to peanuts and carries an epinephrine pen."
RULE = "The user wants answers in British English."
PROMPT = "Which peanut sauce goes with satay, given my allergy to peanuts?"


def nested(event: str) -> dict[str, Any]:
    """The form that Claude Code, Codex and Gemini CLI take, with nothing else beside it: Codex refuses unknown fields."""
    said = {
        "hookEventName": {"const": event},
        "additionalContext": {"type": "string", "maxLength": 10_000},
    }
    own = {"type": "object", "additionalProperties": False, "properties": said, "required": list(said)}
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {"hookSpecificOutput": own},
        "required": ["hookSpecificOutput"],
    }


def flat(**more: Any) -> dict[str, Any]:
    """The form that Cursor takes."""
    said = {"additional_context": {"type": "string", "maxLength": 10_000}, **more}
    return {"type": "object", "additionalProperties": False, "properties": said, "required": list(said)}


COMMON = {"transcript_path": None, "cwd": "/home/alice/work"}
CODEX = {"model": "gpt-6", "permission_mode": "default", **COMMON}
CURSOR = {
    "conversation_id": "c1",
    "generation_id": "g1",
    "model": "auto",
    "cursor_version": "3.20.17",
    "workspace_roots": ["/home/alice/work"],
    "user_email": None,
    "transcript_path": None,
}
GEMINI = {"timestamp": "2026-11-23T04:00:00.000Z", **COMMON}

EVENTS = [
    ("claude-code", "SessionStart", {"source": "startup", **COMMON}, RULE, nested("SessionStart")),
    ("claude-code", "UserPromptSubmit", {"prompt": PROMPT, **COMMON}, FACT, nested("UserPromptSubmit")),
    ("codex", "SessionStart", {"source": "startup", **CODEX}, RULE, nested("SessionStart")),
    ("codex", "UserPromptSubmit", {"prompt": PROMPT, "turn_id": "t1", **CODEX}, FACT, nested("UserPromptSubmit")),
    ("gemini-cli", "SessionStart", {"source": "startup", **GEMINI}, RULE, nested("SessionStart")),
    ("gemini-cli", "BeforeAgent", {"prompt": PROMPT, **GEMINI}, FACT, nested("BeforeAgent")),
    ("cursor", "sessionStart", {"composer_mode": "agent", "is_background_agent": False, **CURSOR}, RULE, flat()),
    ("cursor", "beforeSubmitPrompt", {"prompt": PROMPT, "attachments": [], **CURSOR}, FACT, flat(**{"continue": {"const": True}})),
]  # fmt: skip


@pytest.mark.parametrize(("client", "event", "fields", "text", "schema"), EVENTS)
def test_context_comes_in_the_clients_shape(
    alice: User,
    send: Send,
    note: MakeNote,
    client: str,
    event: str,
    fields: dict[str, Any],
    text: str,
    schema: dict[str, Any],
) -> None:
    note(alice, FACT, importance=5)
    note(alice, RULE, category=STANDING)
    answer = send(alice, event, client=client, **fields)
    jsonschema.validate(answer, schema)
    assert text in context_of(answer)


@pytest.mark.parametrize(
    ("client", "event", "fields"),
    [
        ("claude-code", "Stop", {"stop_hook_active": False, "last_assistant_message": "Hi", **COMMON}),
        ("claude-code", "PostCompact", {"trigger": "auto", "compact_summary": "All of it.", **COMMON}),
        ("claude-code", "SessionEnd", {"reason": "other", **COMMON}),
        ("codex", "Stop", {"turn_id": "t1", "stop_hook_active": False, "last_assistant_message": None, **CODEX}),
        ("gemini-cli", "AfterAgent", {"prompt": PROMPT, "prompt_response": "Hi", "stop_hook_active": False, **GEMINI}),
        ("gemini-cli", "PreCompress", {"trigger": "auto", **GEMINI}),
        ("cursor", "afterAgentResponse", {"text": "Hi", **CURSOR}),
        ("cursor", "stop", {"status": "completed", "loop_count": 0, **CURSOR}),
        ("cursor", "preCompact", {"trigger": "auto", **CURSOR}),
    ],
)  # fmt: skip
def test_what_only_tells_izzy_something_is_answered_by_an_empty_object(
    alice: User, send: Send, note: MakeNote, client: str, event: str, fields: dict[str, Any]
) -> None:
    """A stop that had context in its answer would go on with the turn."""
    note(alice, RULE, category=STANDING)
    assert send(alice, event, client=client, **fields) == {}
