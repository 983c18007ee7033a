"""Calls of programs that reach out: which run, which wait for the user's yes, and what the yes does."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.crypto import salted_hmac

from apps.accounts.models import APIToken
from apps.agent.services import TOO_LATE, grant_add
from apps.agent.tools.base import tool_title
from apps.capabilities.runs.execution import reach_holds
from apps.core.db.writing import users_of
from apps.core.errors import Conflict, NotFound
from apps.core.ids import parse_id
from apps.core.text import revealed
from apps.gateway.models import WaitingCall

from .callers import STDIO

LASTS = timedelta(days=1)
"""How long a call waits, and how long a yes or no to it holds."""
MAX_WAITING = 50  # of a user; the oldest make room

ONCE, ALWAYS, NO = "once", "always", "no"


@dataclass(frozen=True, slots=True)
class Asked:
    """A waiting call as the page shows it."""

    call: WaitingCall
    title: str
    program: str

    @property
    def input_json(self) -> str:
        return revealed(json.dumps(self.call.input, ensure_ascii=False, indent=2))


def call_digest(tool: str, arguments: dict[str, Any], reach: dict[str, Any]) -> str:
    """The name of a call: another input, host, secret or version makes another."""
    text = json.dumps([tool, arguments, reach], sort_keys=True, ensure_ascii=True)
    return salted_hmac("apps.gateway.mcp.approvals", text, algorithm="sha256").hexdigest()


def _in_force(user_id: UUID) -> QuerySet[WaitingCall]:
    since = timezone.now() - LASTS
    rows = WaitingCall.objects.for_user(user_id)
    return rows.filter(Q(decision="", created_at__gt=since) | Q(decided_at__gt=since))


@transaction.atomic
def call_wait(
    *,
    user_id: UUID,
    program: str,
    client: str,
    tool: str,
    shown_input: dict[str, Any],
    digest: str,
    reach: dict[str, Any],
    reason: str,
) -> WaitingCall:
    """The row of a call that waits; the present one where it waits already, or was decided and not made again."""
    mine = WaitingCall.objects.for_user(user_id)
    known = _in_force(user_id).filter(program=program, digest=digest).first()
    if known is not None:
        return known
    mine.filter(program=program, digest=digest).delete()
    oldest = mine.order_by("-created_at").values_list("pk", flat=True)[MAX_WAITING - 1 :]
    mine.filter(pk__in=list(oldest)).delete()
    return WaitingCall.objects.create(
        user_id=user_id,
        program=program,
        client=client[:64],
        tool=tool,
        input=shown_input,
        digest=digest,
        reach=reach,
        reason=reason,
    )


def call_take(*, user_id: UUID, program: str, digest: str) -> bool:
    """Uses up a yes to this very call; False where there is none."""
    rows = _in_force(user_id).filter(program=program, digest=digest, decision=ONCE)
    removed, _ = rows.delete()
    return bool(removed)


@transaction.atomic
def call_decide(*, user_id: UUID, call_id: object, decision: str) -> WaitingCall:
    """`once`, `always` (for this program and just this reach) or `no`. NotFound; Conflict where it was decided already."""
    call = _in_force(user_id).filter(pk=parse_id(call_id)).select_for_update().first()
    if call is None:
        raise NotFound("This call does not wait any more.")
    if call.decision:
        raise Conflict(TOO_LATE, code="not_waiting")
    if decision == ALWAYS and call.reach:
        if reach_holds(user_id, call.reach):  # else the call made again asks anew
            grant_add(user_id=user_id, reach=call.reach, program=call.program)
        call.delete()
        return call
    call.decision = ONCE if decision in (ONCE, ALWAYS) else NO
    call.decided_at = timezone.now()
    call.save(update_fields=["decision", "decided_at"])
    return call


def calls_waiting(user_id: UUID) -> list[Asked]:
    """The undecided ones, newest first."""
    calls: Sequence[WaitingCall] = list(_in_force(user_id).filter(decision=""))
    ids = [UUID(call.program) for call in calls if call.program != STDIO]
    names = dict(APIToken.objects.for_user(user_id).filter(pk__in=ids).values_list("pk", "name"))
    return [
        Asked(
            call,
            tool_title(call.tool),
            "A program on this machine"
            if call.program == STDIO
            else names.get(UUID(call.program), "A program"),
        )
        for call in calls
    ]


def calls_undecided(user_id: UUID) -> int:
    """How many wait."""
    return _in_force(user_id).filter(decision="").count()


def calls_prune() -> None:
    """Sweep: removes calls of which nothing holds any more."""
    since = timezone.now() - LASTS
    over = Q(decision="", created_at__lte=since) | Q(decided_at__lte=since)
    for _, own in users_of(WaitingCall.objects.unscoped().filter(over)):
        own.delete()
