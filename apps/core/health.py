"""Health checks that the apps register; they feed `doctor`, `/readyz` and the banner of the pages."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from django.db import DatabaseError

from apps.core.database_errors import explain

logger = logging.getLogger(__name__)


class State(StrEnum):
    WORKS = "works"
    NOT_SET_UP = "not set up"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class CheckResult:
    ok: bool  # whether it works
    message: str  # one sentence about what is
    hint: str = ""  # where it does not work: what to do about it
    is_set_up: bool = True

    @property
    def state(self) -> State:
        if self.ok:
            return State.WORKS
        return State.BROKEN if self.is_set_up else State.NOT_SET_UP


def not_set_up(message: str, *, gives: str, how: str) -> CheckResult:
    """The result for a part that Izzy does without: `gives` says in a sentence what it would add, `how` how to get it."""
    return CheckResult(False, message, f"{gives} {how}", is_set_up=False)


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    function: Callable[[], CheckResult]
    essential: bool


_checks: dict[str, Check] = {}
_recent: dict[str, tuple[float, CheckResult]] = {}

RECENT_SECONDS = 3.0


def register_check(name: str, function: Callable[[], CheckResult], *, essential: bool = False) -> None:
    """Register a synchronous check that takes at most a second or so.

    Where an essential one finds something broken `/readyz` answers 503. Registering a name again replaces it.
    """
    _checks[name] = Check(name, function, essential)


def checks() -> list[Check]:
    return sorted(_checks.values(), key=lambda check: (not check.essential, check.name))


def run_check(check: Check) -> CheckResult:
    try:
        return check.function()
    except DatabaseError as error:
        if trouble := explain(error):
            return CheckResult(False, trouble.message, trouble.hint)
        logger.exception("health check %s failed", check.name)
        return CheckResult(False, f"The database does not answer: {error}.", "See the server's log.")
    except (
        Exception
    ) as error:  # a check that fails is a finding like any other; the others are still to be told
        logger.exception("health check %s failed", check.name)
        return CheckResult(
            False, f"The check itself failed: {type(error).__name__}.", "See the server's log."
        )


def recent_result(check: Check) -> CheckResult:
    """The check's outcome, at most three seconds old: for addresses that anybody may ask as often as they like."""
    now = time.monotonic()
    known = _recent.get(check.name)
    if known is None or now - known[0] > RECENT_SECONDS:
        known = _recent[check.name] = (now, run_check(check))
    return known[1]
