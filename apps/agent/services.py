"""Writes of the agent: the life of a tool call's row, what the user says to a waiting one, and lasting grants."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.agent.models import SERVER_TIER, ModelCall, ToolCall, ToolGrant
from apps.agent.tools.base import Reach
from apps.agent.tools.results import ToolOutcome
from apps.core.db.writing import rows_remove
from apps.core.errors import Conflict, NotFound
from apps.core.ids import parse_id
from apps.core.text import clean_text

State = ToolCall.State
Reason = Literal["stopped", "interrupted", "failed", "superseded"]

MAX_ANSWER_CHARS = 20_000

SERVER_POSITIONS = 1000
"""Places of such calls in their round, behind those of the calls that are run here."""

NOT_RUN = {
    "stopped": "The user stopped the turn before this was run.",
    "interrupted": "The server stopped before this was run. Call it again if it is still needed.",
    "failed": "The turn ended in an error before this was run.",
    "superseded": "The user wrote a new message instead of answering; this was not run.",
}
PERHAPS_RUN = {
    "stopped": "The user stopped the turn while this was running.",
    "interrupted": "The server stopped while this was running.",
    "failed": "The turn ended in an error while this was running.",
    "superseded": "The turn ended while this was running.",
}
CHECK_FIRST = "It was not run again and may have taken effect: check before you repeat it."
TOO_LATE = "This was decided already: what you chose just now does not count."
DECLINED = (
    "The user declined this call; it was not run. Do not try it again: ask what they want instead."
)


@transaction.atomic
def toolcalls_open(rows: Sequence[ToolCall]) -> list[ToolCall]:
    """The rows of one round's calls, in order: those that are stored already, and these for the others.

    Of the calls that were found running, read-only ones become pending again; the others are ended with an error.
    """
    first = rows[0]
    known = {}
    if first.turn_id is not None:
        of_round = ToolCall.objects.owned_by(first.user_id).filter(
            turn_id=first.turn_id, round=first.round
        )
        known = {row.position: row for row in of_round.exclude(tier=SERVER_TIER)}
    ToolCall.objects.bulk_create(row for row in rows if row.position not in known)
    for row in known.values():
        if row.state == State.RUNNING and row.tier == "read_only":
            row.state = State.PENDING
            row.save(update_fields=["state"])
        elif row.state == State.RUNNING:
            _end(row, f"{PERHAPS_RUN['interrupted']} {CHECK_FIRST}", "interrupted")
    return [known.get(row.position, row) for row in rows]


@transaction.atomic
def toolcall_record(row: ToolCall, outcome: ToolOutcome) -> None:
    """Stores the row of a call that the model's endpoint ran and ended itself."""
    calls = ToolCall.objects.for_user(row.user_id).filter(turn_id=row.turn_id, round=row.round)
    row.position = SERVER_POSITIONS + calls.filter(tier=SERVER_TIER).count()
    for name, value in _ended(outcome).items():
        setattr(row, name, value)
    row.save(force_insert=True)


def _ended(outcome: ToolOutcome) -> dict[str, Any]:
    return {
        "state": State.DONE,
        "result": outcome.result,
        "is_error": outcome.error_code != "",
        "untrusted": outcome.untrusted,
        "error_code": outcome.error_code[:48],
        "duration_ms": outcome.duration_ms,
        "build_id": outcome.build_id,
        "finished_at": timezone.now(),
    }


def _end(row: ToolCall, result: str, error_code: str) -> None:
    fields = _ended(ToolOutcome(result, error_code))
    for name, value in fields.items():
        setattr(row, name, value)
    row.save(update_fields=fields)


@transaction.atomic
def toolcalls_start(*, user_id: UUID, rows: Sequence[ToolCall]) -> bool:
    """Marks calls as running, under the lasting yes that covers them. False, and nothing changed, when one of them runs or
    has ended already."""
    ids = [row.pk for row in rows]
    found = ToolCall.objects.owned_by(user_id).filter(
        pk__in=ids, state__in=[State.PENDING, State.WAITING]
    )
    if found.update(state=State.RUNNING, started_at=timezone.now()) == len(ids):
        for row in rows:
            if row.covered:
                ToolCall.objects.owned_by(user_id).filter(pk=row.pk).update(covered=row.covered)
        return True
    transaction.set_rollback(True)
    return False


def toolcall_finish(*, user_id: UUID, id: UUID, outcome: ToolOutcome) -> bool:
    """Ends a call with its result. False when somebody else has ended it."""
    rows = ToolCall.objects.for_user(user_id).filter(pk=id).exclude(state=State.DONE)
    return rows.update(**_ended(outcome)) == 1


def toolcall_store(row: ToolCall, outcome: ToolOutcome) -> None:
    """Stores the row of a call that has ended and belongs to no turn: nobody can take it up again before that."""
    for name, value in _ended(outcome).items():
        setattr(row, name, value)
    row.save(force_insert=True)


def toolcall_wait(
    *,
    user_id: UUID,
    id: UUID,
    waits_for: str,
    permission: dict[str, Any] | None = None,
    reach: dict[str, Any] | None = None,
) -> None:
    """Marks a call that has not begun as waiting for the user; `permission` is what a yes will allow beyond the call, `reach` all
    that it lets the call reach."""
    rows = ToolCall.objects.for_user(user_id).filter(pk=id, state=State.PENDING)
    rows.update(state=State.WAITING, waits_for=waits_for, permission=permission or {}, reach=reach or {})


def toolcall_decide(*, user_id: UUID, tool_call_id: object, approved: bool) -> ToolCall:
    """Records the user's yes or no to a call that waits for approval; the turn may then be resumed.

    NotFound for another user's or an unknown call, Conflict (`not_waiting`) when it waits for no decision (any more).
    """
    decision = ToolCall.Decision.APPROVED if approved else ToolCall.Decision.DECLINED
    return _respond(user_id, tool_call_id, ToolCall.WaitsFor.APPROVAL, decision=decision)


def toolcall_answer(*, user_id: UUID, tool_call_id: object, text: object) -> ToolCall:
    """Records the user's answer (at most 20,000 characters) to a question; the turn may then be resumed.

    NotFound, Conflict as for `toolcall_decide`; InvalidInput for an empty text, TooLarge for a longer one.
    """
    answer = clean_text(text, field="text", max_chars=MAX_ANSWER_CHARS)
    decision = ToolCall.Decision.APPROVED
    return _respond(user_id, tool_call_id, ToolCall.WaitsFor.ANSWER, decision=decision, answer=answer)


@transaction.atomic
def _respond(user_id: UUID, tool_call_id: object, waits_for: str, **values: str) -> ToolCall:
    rows = ToolCall.objects.for_user(user_id).filter(pk=parse_id(tool_call_id))
    waiting = rows.filter(state=State.WAITING, waits_for=waits_for, decision="")
    changed = waiting.update(**values)
    row = rows.first()
    if row is None:
        raise NotFound
    if not changed:
        said = TOO_LATE if row.decision else "Nothing waits for this any more."
        raise Conflict(said, code="not_waiting")
    return row


@transaction.atomic
def toolcalls_close_open(
    *, turn_id: UUID, round: int, blocks: list[dict[str, Any]], user_id: UUID, reason: Reason
) -> list[dict[str, Any]]:
    """Ends every open call of the turn's last round with an error result.

    `blocks` are the content blocks of the assistant message whose calls are open. `reason` is `stopped`,
    `interrupted`, `failed` or `superseded` (a new message came instead of an answer). Returns the `tool_result`
    blocks of all calls of that message, the finished ones with their own results, for one user message; [] when
    it has none. Idempotent.
    """
    uses = [block for block in blocks if block["type"] == "tool_use"]
    of_round = ToolCall.objects.owned_by(user_id).filter(turn_id=turn_id, round=round)
    rows = {row.position: row for row in of_round.exclude(tier=SERVER_TIER)}
    results = []
    for position, block in enumerate(uses):
        row = rows.get(position)
        if row is None:
            results.append(tool_result(block["id"], NOT_RUN[reason], is_error=True))
            continue
        if row.is_open:
            words = NOT_RUN[reason]
            if row.state == State.RUNNING:
                words = PERHAPS_RUN[reason] + ("" if row.tier == "read_only" else f" {CHECK_FIRST}")
            _end(row, words, reason)
        results.append(tool_result(block["id"], row.result, is_error=row.is_error))
    return results


def tool_result(tool_use_id: str, text: str, *, is_error: bool) -> dict[str, Any]:
    """The block that gives a call's result to the model."""
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": tool_use_id, "content": text}
    return block | {"is_error": True} if is_error else block


def user_calls_thin(user_id: UUID) -> bool:
    """Before an account goes: removes some of its calls of tools and models; whether there may be more."""
    return rows_remove(ToolCall.objects.for_user(user_id), ModelCall.objects.for_user(user_id))


LASTS = timedelta(days=1)  # for a grant in a conversation


def grant_add(
    *, user_id: UUID, reach: dict[str, Any], conversation_id: UUID | None = None, program: str = ""
) -> ToolGrant:
    """Allows every call of this reach (`Reach.to_json`): in the conversation for a day, to the program, or everywhere."""
    ends_at = timezone.now() + LASTS if conversation_id else None
    return ToolGrant.objects.create(
        user_id=user_id, conversation_id=conversation_id, program=program, reach=reach, ends_at=ends_at
    )


def grant_remove(*, user_id: UUID, grant_id: object) -> None:
    """Takes a yes back: the next such call asks again. Raises NotFound."""
    removed, _ = ToolGrant.objects.for_user(user_id).filter(pk=parse_id(grant_id)).delete()
    if not removed:
        raise NotFound("This was taken back already.")


def grants_end(*, user_id: UUID, capability_id: UUID, version: int | None = None) -> None:
    """Ends what was allowed to a capability, but for what was allowed to this version."""
    rows = ToolGrant.objects.for_user(user_id).filter(reach__capability=str(capability_id))
    rows.exclude(reach__version=version or 0).delete()


def grants_for(user_id: UUID, conversation_id: UUID | None = None) -> QuerySet[ToolGrant]:
    """Grants that hold now: in the conversation and in all; all of the user's without `conversation_id`."""
    rows = ToolGrant.objects.for_user(user_id).filter(Q(ends_at=None) | Q(ends_at__gt=timezone.now()))
    if conversation_id is None:
        return rows
    return rows.filter(Q(conversation_id=None) | Q(conversation_id=conversation_id), program="")


def grant_covering(user_id: UUID, conversation_id: UUID, reach: Reach) -> ToolGrant | None:
    """The yes that holds for a call of this reach, with no other host, secret or version than the user saw."""
    grants = grants_for(user_id, conversation_id)
    return next((grant for grant in grants if grant.reach == reach.to_json()), None)


def grant_covering_program(user_id: UUID, program: str, reach: Reach) -> ToolGrant | None:
    """The same for a call of a program, outside of any conversation."""
    grants = grants_for(user_id).filter(conversation_id=None, program__in=["", program])
    return next((grant for grant in grants if grant.reach == reach.to_json()), None)
