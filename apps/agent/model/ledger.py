"""The usage ledger: prices, and a `ModelCall` row for every call of a model."""

from dataclasses import dataclass, field
from decimal import Decimal

from django.conf import settings

from apps.agent.model.client import ModelRequest, Usage
from apps.agent.model.endpoint import Endpoint
from apps.agent.models import ModelCall

MILLION = 1_000_000


def priced(usage: dict[str, int], model: str) -> Usage:
    """The tokens of one call (in the names of the Messages API) with their cost in dollars.

    Prices are those of `IZZY_MODEL_PRICES` under the longest beginning of the model's name; unlisted models are free.
    """
    sent, received = usage.get("input_tokens", 0), usage.get("output_tokens", 0)
    read, written = usage.get("cache_read_input_tokens", 0), usage.get("cache_creation_input_tokens", 0)
    prices = _prices(model)
    cost = (
        sum(count * price for count, price in zip((sent, received, read, written), prices, strict=True))
        / MILLION
    )
    return Usage(sent, received, read, written, cost, calls=1)


def _prices(model: str) -> tuple[float, float, float, float]:
    table = settings.IZZY_MODEL_PRICES
    names = [name for name in table if model.startswith(name)]
    if not names:
        return (0.0, 0.0, 0.0, 0.0)
    sent, received, read, written = table[max(names, key=len)]
    return (float(sent), float(received), float(read), float(written))


MICRO = Decimal("0.000001")


@dataclass
class CallRecord:
    """A call's figures, filled as it goes on. Times are in milliseconds."""

    request: ModelRequest
    endpoint: Endpoint
    usage: Usage = field(default_factory=Usage)
    latency_ms: int = 0
    first_token_ms: int | None = None
    stop_reason: str = ""
    error_code: str = ""
    request_id: str = ""


def modelcall_record(record: CallRecord) -> ModelCall:
    """Writes the row."""
    request, usage = record.request, record.usage
    return ModelCall.objects.create(
        user_id=request.user_id,
        conversation_id=request.conversation_id,
        turn_id=request.turn_id,
        round=request.round,
        purpose=request.purpose,
        model=record.endpoint.answering(request.model)[:128],
        endpoint=record.endpoint.kind,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        latency_ms=record.latency_ms,
        first_token_ms=record.first_token_ms,
        cost_usd=Decimal(usage.cost_usd).quantize(MICRO),
        stop_reason=record.stop_reason[:48],
        error_code=record.error_code,
        request_id=record.request_id[:128],
    )
