"""Izzy's view of a language model: which server is asked, a request, a stream of text, one response, one kind of error, and
what a call costs.

`apps.agent.model.sdk` is the only module that imports the `anthropic` package and implements `ModelClient`.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import astuple, dataclass, field
from decimal import Decimal
from typing import Any, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

from django.conf import settings

from apps.accounts.secrets import secret_get
from apps.agent.model.messages import readable_text
from apps.agent.models import ModelCall
from apps.core.db.writing import insert_all
from apps.core.metrics.base import SLOW, counter, histogram

Purpose: TypeAlias = Literal["chat", "builder", "extract", "fast"]

ANTHROPIC_URL = "https://api.anthropic.com"
OFFLINE = ModelCall.Endpoint.OFFLINE.value  # recorded in place of the model where none answers
NO_KEY = "none-needed"
"""Sent as the key to a server of one's own that asks for none; the SDK refuses to send no key at all."""
MILLION = 1_000_000
MICRO = Decimal("0.000001")
INCOMPLETE_INPUT = "_incomplete_input"
"""Key of a tool call's input that was cut off, is no JSON object or cannot be stored; its value is the text that came.
Never run."""
CALLS = counter(
    "izzy_model_calls_total",
    "Calls of a model; the outcome is `ok` or the code of the error.",
    "model",
    "purpose",
    "outcome",
)
TOKENS = counter(
    "izzy_model_tokens_total",
    "Tokens as the endpoint counted them: input, output, cache_read, cache_write.",
    "model",
    "purpose",
    "kind",
)
COST = counter("izzy_model_cost_dollars_total", "Cost of calls by the price table.", "model", "purpose")
SECONDS = histogram(
    "izzy_model_call_seconds", "Time of a whole call of a model.", "purpose", buckets=SLOW
)
FIRST = histogram(
    "izzy_model_first_token_seconds", "Time to a call's first token.", "purpose", buckets=SLOW
)
KINDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One call of the Messages API. `messages`, `system` and `tools` are in its shapes, without cache markers.

    `user_id` and `purpose` ("chat", "builder", "title", "gate", …) go into the usage ledger. `ours` are the names of
    tools that the endpoint may not run itself, though it could. `endpoint` is the one to ask, None the one that is set.
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
    endpoint: "Endpoint | None" = None


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
        return Usage(
            *(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True))
        )


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


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go: Anthropic's own API, a custom server that speaks it, or the offline model in this process."""

    kind: ModelCall.Endpoint
    base_url: str = ""
    api_key: str = field(default="", repr=False)

    @property
    def server(self) -> str:
        """The address as anybody may read it."""
        return without_user(self.base_url)

    @property
    def is_offline(self) -> bool:
        return self.kind == ModelCall.Endpoint.OFFLINE

    @property
    def searches_the_web(self) -> bool:
        """Whether the endpoint itself searches the web; the setting may leave that to Izzy."""
        is_anthropic = self.kind == ModelCall.Endpoint.ANTHROPIC
        return is_anthropic and settings.IZZY_WEB_SEARCH in {"auto", "anthropic"}


def without_user(url: str) -> str:
    """The address without the user name, password or query it may carry."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def current_endpoint() -> Endpoint:
    """The endpoint by the environment, else by what the superuser set on the instance page. Reads the database."""
    key, url = secret_get("anthropic_api_key"), secret_get("anthropic_base_url").rstrip("/")
    if not key and not url:
        return Endpoint(ModelCall.Endpoint.OFFLINE)
    if not url or urlsplit(url).hostname == urlsplit(ANTHROPIC_URL).hostname:
        return Endpoint(ModelCall.Endpoint.ANTHROPIC, url or ANTHROPIC_URL, key or NO_KEY)
    return Endpoint(ModelCall.Endpoint.CUSTOM, url, key or NO_KEY)


def model_for(purpose: Purpose) -> str:
    """The model that the settings name for this purpose."""
    names = {
        "chat": settings.IZZY_CHAT_MODEL,
        "builder": settings.IZZY_BUILDER_MODEL,
        "extract": settings.IZZY_EXTRACT_MODEL,
        "fast": settings.IZZY_FAST_MODEL,
    }
    return str(names[purpose])


def priced(usage: dict[str, int], *models: str) -> Usage:
    """The tokens of one call (in the names of the Messages API) with their cost in dollars.

    Prices are those of `IZZY_MODEL_PRICES` under the longest beginning of the model's name, of several (as the endpoint calls it, as
    it was asked for) the first that is listed; unlisted models are free.
    """
    counted = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    sent, received, read, written = counts = [usage.get(name, 0) for name in counted]
    table = settings.IZZY_MODEL_PRICES
    listed = ([name for name in table if model.startswith(name)] for model in models)
    name = max(next(filter(None, listed), []), key=len, default=None)
    prices = table[name] if name is not None else (0, 0, 0, 0)
    cost = sum(count * float(price) for count, price in zip(counts, prices, strict=True)) / MILLION
    return Usage(sent, received, read, written, cost, calls=1)


def modelcall_record(row: ModelCall, usage: Usage, *, again: bool = False) -> None:
    """Stores the row of a call that has ended, and counts it: tokens, cost, times, how it ended; never what was said. `again` where
    it failed before: the row may be there."""
    for name in KINDS:
        setattr(row, name, getattr(usage, name))
    row.cost_usd = Decimal(usage.cost_usd).quantize(MICRO)
    if not again or not ModelCall.objects.owned_by(row.user_id).filter(pk=row.pk).exists():
        insert_all([row])
    CALLS.add(row.model, row.purpose, row.error_code or "ok")
    for name in KINDS:
        if tokens := getattr(row, name):
            TOKENS.add(row.model, row.purpose, name.removesuffix("_tokens"), amount=tokens)
    if row.cost_usd:
        COST.add(row.model, row.purpose, amount=float(row.cost_usd))
    SECONDS.observe(row.latency_ms / 1000, row.purpose)
    if row.first_token_ms is not None:
        FIRST.observe(row.first_token_ms / 1000, row.purpose)
