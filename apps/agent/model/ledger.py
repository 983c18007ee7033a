"""The usage ledger: prices, and a `ModelCall` row for every call of a model."""

from decimal import Decimal

from django.conf import settings

from apps.agent.model.client import ModelRequest, Usage
from apps.agent.model.endpoint import Endpoint
from apps.agent.models import ModelCall

MILLION = 1_000_000
MICRO = Decimal("0.000001")


def priced(usage: dict[str, int], model: str) -> Usage:
    """The tokens of one call (in the names of the Messages API) with their cost in dollars.

    Prices are those of `IZZY_MODEL_PRICES` under the longest beginning of the model's name; unlisted models are free.
    """
    counted = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    sent, received, read, written = counts = [usage.get(name, 0) for name in counted]
    table = settings.IZZY_MODEL_PRICES
    name = max((name for name in table if model.startswith(name)), key=len, default=None)
    prices = table[name] if name is not None else (0, 0, 0, 0)
    cost = sum(count * float(price) for count, price in zip(counts, prices, strict=True)) / MILLION
    return Usage(sent, received, read, written, cost, calls=1)


def modelcall_for(request: ModelRequest, endpoint: Endpoint) -> ModelCall:
    """The row of a call that begins; stored by `modelcall_record`."""
    return ModelCall(
        user_id=request.user_id,
        conversation_id=request.conversation_id,
        turn_id=request.turn_id,
        round=request.round,
        purpose=request.purpose,
        model=endpoint.answering(request.model)[:128],
        endpoint=endpoint.kind,
    )


def modelcall_record(row: ModelCall, usage: Usage) -> None:
    """Stores the row of a call that has ended."""
    for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"):
        setattr(row, name, getattr(usage, name))
    row.cost_usd = Decimal(usage.cost_usd).quantize(MICRO)
    row.save(force_insert=True)
