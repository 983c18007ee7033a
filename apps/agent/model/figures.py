"""Figures and the span of a call of a model: tokens, cost, times, how it ended; never what was said."""

from apps.agent.models import ModelCall
from apps.core.metrics.base import SLOW, counter, histogram
from apps.core.traces import Span, span_begin

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
KINDS = ("input", "output", "cache_read", "cache_write")


def modelcall_count(row: ModelCall) -> None:
    """Counts a call that has ended."""
    CALLS.add(row.model, row.purpose, row.error_code or "ok")
    for kind in KINDS:
        if tokens := getattr(row, f"{kind}_tokens"):
            TOKENS.add(row.model, row.purpose, kind, amount=tokens)
    if row.cost_usd:
        COST.add(row.model, row.purpose, amount=float(row.cost_usd))
    SECONDS.observe(row.latency_ms / 1000, row.purpose)
    if row.first_token_ms is not None:
        FIRST.observe(row.first_token_ms / 1000, row.purpose)


def modelcall_span(row: ModelCall, max_tokens: int) -> Span:
    """The span of a call that begins, by OpenTelemetry's names for generative AI. End it with `modelcall_span_end`."""
    return span_begin(
        f"chat {row.model}",
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": row.endpoint,
            "gen_ai.request.model": row.model,
            "gen_ai.request.max_tokens": max_tokens,
            "gen_ai.conversation.id": str(row.conversation_id) if row.conversation_id else None,
            "izzy.purpose": row.purpose,
        },
        kind="CLIENT",
    )


def modelcall_span_end(span: Span, row: ModelCall, answered_by: str) -> None:
    """Ends the span of a call whose row is stored; `answered_by` is the model that the endpoint names."""
    span.set("gen_ai.response.model", answered_by or None)
    span.set("gen_ai.response.finish_reasons", [row.stop_reason] if row.stop_reason else None)
    read, written = row.cache_read_tokens, row.cache_write_tokens
    span.set("gen_ai.usage.input_tokens", row.input_tokens + read + written)
    span.set("gen_ai.usage.output_tokens", row.output_tokens)
    span.set("gen_ai.usage.cache_read.input_tokens", read)
    span.set("gen_ai.usage.cache_creation.input_tokens", written)
    if row.first_token_ms is not None:
        span.set("gen_ai.response.time_to_first_chunk", row.first_token_ms / 1000)
    if row.error_code:
        span.fail(row.error_code)
    span.end()
