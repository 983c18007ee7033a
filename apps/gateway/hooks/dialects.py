"""The dialects of the clients' hooks: its events, the names of its fields, and the shape of its answers."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from apps.core.errors import InvalidInput, NotFound

MAX_CONTEXT_CHARS = 10_000
"""Characters that Claude Code, Codex and Cursor put before the model; more they write to a file."""
MAX_TURN_CHARS = 100


class Kind(Enum):
    """The meaning of an event, whatever its client calls it."""

    START = "a session begins, or goes on after it was closed or compacted"
    PROMPT = "the user sent a message"
    STOP = "the assistant has answered"
    COMPACTED = "the client forgets what its session was shown, and says nothing of it later"
    END = "no answer will come"
    OTHER = "nothing for Izzy"


@dataclass(frozen=True, slots=True)
class HookEvent:
    """An event as Izzy understands it. `turn` is the client's id of the user's message, "" where it has none; `source` how a
    session began (`startup`, `resume`, `clear`, `compact`, `fork`)."""

    kind: Kind
    name: str
    session: str = ""
    turn: str = ""
    prompt: str = ""
    reply: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One client. Of `session` and `turn` the first field that is given counts."""

    client: str
    title: str
    events: Mapping[str, Kind]
    context: Callable[[HookEvent, str], dict[str, Any]]
    session: tuple[str, ...] = ("session_id",)
    turn: tuple[str, ...] = ()
    reply: str = "last_assistant_message"

    def read(self, body: Mapping[str, Any]) -> HookEvent:
        """The event that a body tells of. InvalidInput where one that Izzy knows lacks a session or has fields of other types."""
        name = _text(body, "hook_event_name")
        kind = self.events.get(name, Kind.OTHER)
        if kind is Kind.OTHER or body.get("agent_id"):  # a sub-agent's prompts are no user's
            return HookEvent(Kind.OTHER, name)
        session = _first(body, self.session)
        if not session:
            raise InvalidInput(f"{self.session[0]} is missing.", field=self.session[0])
        turn = _first(body, self.turn)
        return HookEvent(
            kind,
            name,
            session=session,
            turn=turn if len(turn) <= MAX_TURN_CHARS else hashlib.sha256(turn.encode()).hexdigest(),
            prompt=_text(body, "prompt"),
            reply=_text(body, self.reply),
            source=_text(body, "source"),
        )

    def answer(self, event: HookEvent, context: str) -> dict[str, Any]:
        """The answer that the client reads, `{}` where there is nothing to say."""
        if not context or event.kind not in {Kind.START, Kind.PROMPT}:
            return {}
        return self.context(event, context[:MAX_CONTEXT_CHARS])


def dialect_of(client: str) -> Dialect:
    """The dialect of a client. NotFound."""
    if client not in DIALECTS:
        raise NotFound(f"There are no hooks for this client; there are for {', '.join(DIALECTS)}.")
    return DIALECTS[client]


def _text(body: Mapping[str, Any], field: str) -> str:
    value = body.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidInput(f"{field} must be text.", code="wrong_type", field=field)
    return value


def _first(body: Mapping[str, Any], fields: tuple[str, ...]) -> str:
    return next(filter(None, (_text(body, field) for field in fields)), "")


def _nested(event: HookEvent, context: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": context}}


def _flat(event: HookEvent, context: str) -> dict[str, Any]:
    goes_on = {"continue": True} if event.kind is Kind.PROMPT else {}
    return goes_on | {"additional_context": context}


_DIALECTS = (
    Dialect(
        "claude-code",
        "Claude Code",
        {
            "SessionStart": Kind.START,
            "UserPromptSubmit": Kind.PROMPT,
            "Stop": Kind.STOP,
            "StopFailure": Kind.END,
            "SessionEnd": Kind.END,
        },
        _nested,
        turn=("prompt_id",),
    ),
    Dialect(
        "codex",
        "Codex",
        {
            "SessionStart": Kind.START,
            "UserPromptSubmit": Kind.PROMPT,
            "Stop": Kind.STOP,
            "StopFailure": Kind.END,
            "Interrupt": Kind.END,
        },
        _nested,
        turn=("turn_id",),
    ),
    Dialect(
        "gemini-cli",
        "Gemini CLI",
        {
            "SessionStart": Kind.START,
            "BeforeAgent": Kind.PROMPT,
            "AfterAgent": Kind.STOP,
            "PreCompress": Kind.COMPACTED,
            "SessionEnd": Kind.END,
        },
        _nested,
        reply="prompt_response",
    ),
    Dialect(
        "cursor",
        "Cursor",
        {
            "sessionStart": Kind.START,
            "beforeSubmitPrompt": Kind.PROMPT,
            "afterAgentResponse": Kind.STOP,
            "preCompact": Kind.COMPACTED,
            "stop": Kind.END,
            "sessionEnd": Kind.END,
        },
        _flat,
        session=("conversation_id", "session_id"),
        turn=("generation_id",),
        reply="text",
    ),
)
DIALECTS = {each.client: each for each in _DIALECTS}
