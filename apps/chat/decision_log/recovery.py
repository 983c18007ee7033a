"""Which failed calls the model recovered from, and by which calls.

A failure is recovered from by the first later call of its turn that succeeded at the same thing: the same tool (for
files: the same command) or the same file or note. What it did in between belongs to the recovery.
"""

from collections.abc import Sequence
from uuid import UUID

from apps.agent.models import ToolCall
from apps.chat.decision_log.words import NOT_RUN, command_of, path_of

Aim = tuple[str, str]


def is_failure(call: ToolCall) -> bool:
    """Whether the call went wrong, rather than being stopped or declined."""
    return call.state == ToolCall.State.DONE and call.is_error and call.error_code not in NOT_RUN


def recoveries(calls: Sequence[ToolCall]) -> tuple[dict[UUID, UUID], set[UUID]]:
    """For the calls of one turn, in order: the success by failure that it made good, and the ids of all calls that
    belong to a recovery."""
    made_good: dict[UUID, UUID] = {}
    steps: set[UUID] = set()
    for index, call in enumerate(calls):
        if not is_failure(call):
            continue
        later = calls[index + 1 :]
        success = next((other for other in later if not _failed(other) and _same(call, other)), None)
        if success is not None:
            made_good[call.id] = success.id
            between = later[: later.index(success) + 1]
            steps |= {other.id for other in between if not is_failure(other)}
    return made_good, steps


def _failed(call: ToolCall) -> bool:
    return call.is_error or call.state != ToolCall.State.DONE


def _same(failed: ToolCall, other: ToolCall) -> bool:
    return _kind(failed) == _kind(other) or (_thing(failed) is not None and _thing(failed) == _thing(other))


def _kind(call: ToolCall) -> Aim:
    return call.name, command_of(call.input) if call.name == "memory" else ""


def _thing(call: ToolCall) -> Aim | None:
    if call.name == "memory":
        # To look at a file is no success at changing it.
        return None if command_of(call.input) == "view" else ("file", path_of(call))
    note = call.input.get("note_id")
    return ("note", str(note)) if note else None
