"""The usage ledger: one `ModelCall` row for every call of a model."""

from dataclasses import dataclass, field
from decimal import Decimal

from apps.agent.client import ModelRequest, Usage
from apps.agent.endpoint import Endpoint
from apps.agent.models import ModelCall

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
