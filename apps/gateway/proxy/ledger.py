"""The instance's model key as tokens spend it: a limit a day, and the lines of the usage ledger."""

from datetime import UTC, datetime, time, timedelta

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.accounts.models import APIToken
from apps.agent.model.client import modelcall_record
from apps.agent.models import ModelCall
from apps.core.db.writing import users_of
from apps.gateway.models import ProxySpending
from apps.gateway.proxy.answer import Answer
from apps.gateway.proxy.errors import ProxyError

PURPOSE = "proxy"
KEPT = timedelta(days=7)


def limit_check(token: APIToken) -> None:
    """ProxyError (429) where the token has used up what it may spend today (UTC)."""
    now = timezone.now().astimezone(UTC)
    rows = ProxySpending.objects.for_user(token.user_id).filter(token=token, day=now.date())
    spent = rows.values_list("tokens", flat=True).first() or 0
    if spent < token.proxy_daily_tokens:
        return
    tomorrow = datetime.combine(now.date() + timedelta(days=1), time(), UTC)
    raise ProxyError(
        429,
        "rate_limit_error",
        f"This token has used its {token.proxy_daily_tokens:,} tokens of Izzy's key for today (UTC).",
        {"retry-after": str(round((tomorrow - now).total_seconds())), "x-should-retry": "false"},
    )


@transaction.atomic
def spending_record(
    *,
    token: APIToken,
    answer: Answer,
    endpoint: str,
    model: str,
    latency_ms: int,
    first_byte_ms: int | None,
) -> None:
    """Adds an answer to what the token has spent today, and to the user's usage."""
    usage = answer.spent
    error = answer.error or ("" if answer.status in (0, 200) else f"status_{answer.status}")
    row = ModelCall(
        user_id=token.user_id,
        purpose=PURPOSE,
        model=(answer.model or model)[:128],
        endpoint=endpoint,
        latency_ms=latency_ms,
        first_token_ms=first_byte_ms,
        stop_reason=answer.stop_reason[:48],
        error_code=(error or ("" if answer.complete else "cut"))[:48],
        request_id=answer.request_id[:128],
    )
    modelcall_record(row, usage)
    spent = usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    if not spent:
        return
    today = timezone.now().astimezone(UTC).date()
    day, _ = ProxySpending.objects.unscoped().get_or_create(
        token=token, day=today, defaults={"user_id": token.user_id}
    )
    ProxySpending.objects.unscoped().filter(pk=day.pk).update(tokens=F("tokens") + spent)


def spending_prune() -> int:
    """Sweep: removes the counts of days that are over; how many."""
    before = timezone.now().astimezone(UTC).date() - KEPT
    old = ProxySpending.objects.unscoped().filter(day__lt=before)
    return sum(own.delete()[0] for _, own in users_of(old))
