"""Events that a turn emits while it runs.

Each event is a class that extends `Event`, and is known by that; its `fields` go over the websocket and SSE.
The chat app adds `conversation`, `turn` and `seq` when it stores one. A stream of events ends with exactly one of
`Response`, `TurnStopped` and `TurnFailed`; a turn that waits for the user ends its stream with a `Response` that
says what it waits for, and `TurnResumed` opens the next stream.
"""

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, dataclass_transform

WHERE_SET = {"where_set": True}
"""Marks a field that is left out of the JSON where it is None."""


EVENT_TYPES: "dict[str, type[Event]]" = {}
"""Every event by the name of its type, which only one class gives itself."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True)
class Event:
    """Something that happens in a turn; each class that extends it is a frozen dataclass. `last`: the stream of events ends with
    it."""

    type: ClassVar[str]
    last: ClassVar[bool] = False
    _names: ClassVar[tuple[tuple[str, bool], ...]] = ()  # of its fields; whether only where they are set

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)
        cls._names = tuple((item.name, bool(item.metadata.get("where_set"))) for item in fields(cls))
        if name := cls.__dict__.get("type"):
            if name in EVENT_TYPES:
                raise TypeError(f"there is an event {name} already: {EVENT_TYPES[name].__name__}")
            EVENT_TYPES[name] = cls

    def fields(self) -> dict[str, Any]:
        """The event's fields as JSON values, without those that are only there where they are set."""
        return {
            name: value
            for name, where_set in self._names
            if (value := getattr(self, name)) is not None or not where_set
        }


class TurnQueued(Event):
    """The user's message is stored and waits for its place. `client_id` is what the page called it."""

    type: ClassVar[str] = "turn_queued"
    client_id: str = ""


class TurnStarted(Event):
    """The turn runs now."""

    type: ClassVar[str] = "turn_started"


class MemoryContext(Event):
    """The memories that were put beside the user's message, and their size in tokens."""

    type: ClassVar[str] = "memory_context"
    items: list[dict[str, Any]]
    tokens: int


class TextDelta(Event):
    """The next piece of the assistant's text."""

    type: ClassVar[str] = "text_delta"
    text: str


class ToolStart(Event):
    """A tool call begins. `id` is the `ToolCall` row's id; `input` is scrubbed of secrets; `covered` says which lasting yes
    (`conversation`, `always`) it runs under."""

    type: ClassVar[str] = "tool_start"
    id: str
    name: str
    input: dict[str, Any]
    covered: str | None = field(default=None, metadata=WHERE_SET)


class ServerToolStart(ToolStart):
    """A call that the model's endpoint runs itself, in the middle of its answer; the text goes on after it."""

    server: bool = True


class ToolProgress(Event):
    """A running tool reports on itself; the shape of `data` is the tool's own."""

    type: ClassVar[str] = "tool_progress"
    id: str
    name: str
    data: dict[str, Any]


class ToolResult(Event):
    """A tool call ended. `result` is the text that the model gets."""

    type: ClassVar[str] = "tool_result"
    id: str
    name: str
    result: str
    is_error: bool
    duration_ms: int


class ApprovalRequested(Event):
    """A tool call waits for the user's yes or no. `permission` is what a yes allows beyond this call, if anything:
    `{capability, version, hosts, secrets, …}`; `reason` a sentence that says why it is asked for, where that is not what
    the user has set; `always` (true) that a yes may hold for every later call of the tool; `reach` `{tool, hosts, secrets,
    capability, version}` that a yes may hold for further calls that reach just that, in the conversation or always."""

    type: ClassVar[str] = "approval_requested"
    id: str
    name: str
    input: dict[str, Any]
    permission: dict[str, Any] | None = field(default=None, metadata=WHERE_SET)
    reason: str | None = field(default=None, metadata=WHERE_SET)
    always: bool | None = field(default=None, metadata=WHERE_SET)
    reach: dict[str, Any] | None = field(default=None, metadata=WHERE_SET)


class Question(Event):
    """The assistant asks the user something; the answer goes to the tool call with this `id`. `reason` is a sentence that says
    so where others' words may be behind the question."""

    type: ClassVar[str] = "question"
    id: str
    text: str
    reason: str | None = field(default=None, metadata=WHERE_SET)


class ModelRetry(Event):
    """The model's endpoint failed in passing and is asked again. `message` says why, `at` when (ISO 8601, UTC), `seconds`
    how long that was from the event."""

    type: ClassVar[str] = "model_retry"
    code: str
    message: str
    at: str
    seconds: float


class SummingUp(Event):
    """The earlier part of the conversation no longer fits and is summed up by the model, before the turn goes on."""

    type: ClassVar[str] = "summing_up"


class TurnResumed(Event):
    """A waiting or interrupted turn goes on."""

    type: ClassVar[str] = "turn_resumed"


class Build(Event):
    """A message of a build that this turn asked for: `{id, number, direction, type, payload, read, created_at}`."""

    type: ClassVar[str] = "build"
    build_id: str
    message: dict[str, Any] = field(default_factory=dict)


class Html(Event):
    """The newest block of the answer, rendered and sanitised on the server. For the page only."""

    type: ClassVar[str] = "html"
    block: int
    html: str


class Response(Event):
    """The turn is over, or waits for the user when `pending_question` or `pending_approval` is set.

    `pending_question` is `{id, text, reason?}`, `pending_approval` is `{id, name, input, permission?, reason?}`; where several
    calls wait, these are the first ones (each had its own event). `tool_calls` are `{id, name, input, result, is_error,
    duration_ms}`. `usage` is `{input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd,
    calls}` of the whole turn. `notice` is empty or `{code, message}`: the answer is there, but was cut short.
    """

    type: ClassVar[str] = "response"
    last: ClassVar[bool] = True
    text: str
    build_id: str | None = None
    pending_question: dict[str, Any] | None = None
    pending_approval: dict[str, Any] | None = None
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    notice: dict[str, str] | None = None

    @property
    def waits(self) -> bool:
        """Whether the turn goes on after the user's answer or decision."""
        return self.pending_question is not None or self.pending_approval is not None


class TurnStopped(Event):
    """The user stopped the turn."""

    type: ClassVar[str] = "turn_stopped"
    last: ClassVar[bool] = True


class TurnFailed(Event):
    """The turn ended in an error; `message` is a sentence for the user, `code` is stable."""

    type: ClassVar[str] = "error"
    last: ClassVar[bool] = True
    code: str
    message: str


class TitleMade(Event):
    """The conversation has got a title; may follow the end of the turn's stream."""

    type: ClassVar[str] = "title"
    title: str


class BranchChosen(Event):
    """A version that had given way is in force again, with what followed it; may come after the end of the turn's stream."""

    type: ClassVar[str] = "branch"


LAST_EVENTS = {name for name, event in EVENT_TYPES.items() if event.last}
