"""Izzy's view of a language model: a request, a stream of text, one response, one kind of error.

`apps.agent.model.sdk` is the only module that imports the `anthropic` package and implements `ModelClient`.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import astuple, dataclass, field
from typing import Any, Protocol, TypeAlias
from uuid import UUID

from apps.agent.model.messages import readable_text

INCOMPLETE_INPUT = "_incomplete_input"
"""Key of a tool call's input that was cut off, is no JSON object or cannot be stored; its value is the text that came.
Never run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One call of the Messages API. `messages`, `system` and `tools` are in its shapes, without cache markers.

    `user_id` and `purpose` ("chat", "builder", "title", "gate", …) go into the usage ledger. `ours` are the names of
    tools that the endpoint may not run itself, though it could.
    """

    user_id: UUID
    purpose: str
    model: str
    messages: list[dict[str, Any]]
    system: list[dict[str, Any]] | str = ""
    tools: list[dict[str, Any]] = field(default_factory=list)
    tool_choice: dict[str, Any] | None = None
    ours: frozenset[str] = frozenset()
    max_tokens: int = 8192
    conversation_id: UUID | None = None
    turn_id: UUID | None = None
    round: int = 0


@dataclass(frozen=True, slots=True)
class TextChunk:
    """The next piece of text."""

    text: str


@dataclass(frozen=True, slots=True)
class ServerCall:
    """The endpoint has begun to run a tool of its own, for example a web search; nothing is to be done."""

    id: str
    name: str
    input: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ServerResult:
    """Result of a `ServerCall`."""

    tool_use_id: str
    name: str  # of the tool
    block: dict[str, Any]  # the whole result


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more calls, as the endpoint counted them, and their cost by the price table."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float = 0.0
    calls: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """A whole answer: the assistant's content blocks as they go back into the next request."""

    blocks: list[dict[str, Any]]
    stop_reason: str
    usage: Usage
    model: str = ""

    @property
    def text(self) -> str:
        """All text blocks, joined, with their sources."""
        return readable_text(self.blocks)

    @property
    def tool_uses(self) -> list[dict[str, Any]]:
        """The tool calls, in order."""
        return [block for block in self.blocks if block["type"] == "tool_use"]


@dataclass(frozen=True, slots=True)
class Retry:
    """The call failed in passing and is made again after so many seconds. `message` is a sentence for the user."""

    code: str
    message: str
    seconds: float


class ModelError(Exception):
    """A call that gave no whole answer. `message` is a sentence for the user that says what to do.

    `retry_after` is in seconds where the endpoint named a time.
    """

    def __init__(self, code: str, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after = retry_after


ModelEvent: TypeAlias = TextChunk | ServerCall | ServerResult | Retry | ModelResponse


class ModelClient(Protocol):
    """Anything that answers a `ModelRequest`."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Text as it comes, then exactly one `ModelResponse`; raises `ModelError`. Writes one `ModelCall` row."""


async def complete(client: ModelClient, request: ModelRequest) -> ModelResponse:
    """The whole response, for callers that show no text while it comes."""
    response = None
    async with aclosing(client.stream(request)) as events:
        async for event in events:
            if isinstance(event, ModelResponse):
                response = event
    if response is None:
        raise ModelError("stream_cut", "The model's answer ended too early. Try again.")
    return response
