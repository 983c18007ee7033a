"""Runs the checks: once over everything, a second time over what seemed wrong, and a third time after a repair."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import DatabaseError, connection

from apps.core.db.troubles import DAMAGED, explain
from apps.core.db.writing import SLICE, claim, writers_wait, writing_for

from . import Check, Finding, checks

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0
"""So long after the first look the second one begins."""
CUT_SHORT = "cut short"
"""`about` of the finding that says that a check could not be finished."""

Suspects = dict[str, dict[UUID | None, set[int]]]


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """A finding that stood at the second look, and whether it was repaired."""

    check: str
    finding: Finding
    fixed: bool = False

    def to_json(self) -> dict[str, Any]:
        finding = self.finding
        return {
            "check": self.check,
            "about": finding.about,
            "user": str(finding.user_id) if finding.user_id else None,
            "message": finding.message,
            "repair": finding.repair,
            "advice": finding.advice,
            "fixed": self.fixed,
        }


def examine(
    *,
    user_id: UUID | None = None,
    fix: bool = False,
    progress: Callable[[str], None] = lambda name: None,
) -> Iterator[CheckOutcome]:
    """The findings about one user's data, or about everything; with `fix` repaired where that is possible.

    `progress` hears the name of each check as it begins. Raises DatabaseError where the database does not answer; one that is
    damaged is a finding.
    """
    suspects: Suspects = {}
    for name, check in checks():
        progress(name)
        found: dict[UUID | None, set[int]] = defaultdict(set)
        for finding in _looked(name, check, user_id):
            found[finding.user_id].add(hash(finding.key))
        if found:
            suspects[name] = found
    if suspects:
        time.sleep(AGAIN_SECONDS)
        # Whoever was writing at the first look has committed then. A damaged or read-only file takes no writer.
        with suppress(DatabaseError):
            writers_wait()
    for name, check in checks():
        for owner, keys in suspects.get(name, {}).items():
            yield from _settled(name, check, owner, keys, fix=fix)


def _settled(
    name: str, check: Check, owner: UUID | None, keys: set[int], *, fix: bool
) -> Iterator[CheckOutcome]:
    """The outcomes of one user's findings of one check."""

    def standing() -> list[Finding]:
        found = _looked(name, check, owner)
        return [each for each in found if each.user_id == owner and hash(each.key) in keys]

    findings = standing()
    wanted = [finding for finding in findings if finding.repair]
    if not fix or check.fix is None or not wanted:
        yield from (CheckOutcome(name, finding) for finding in findings)
        return
    for start in range(0, len(wanted), SLICE):
        _repair(name, check, wanted[start : start + SLICE])
    left = {finding.key for finding in standing()}
    for finding in findings:
        fixed = bool(finding.repair) and finding.key not in left
        if fixed:
            logger.info("check_integrity %s: repaired %s", name, finding.about)
        yield CheckOutcome(name, finding, fixed)


def _repair(name: str, check: Check, findings: list[Finding]) -> None:
    assert check.fix is not None  # noqa: S101 - the caller has looked
    try:
        user_id = findings[0].user_id
        with writing_for(user_id), nullcontext() if user_id else claim():  # rows of nobody have no lock
            check.fix(findings)
    except DatabaseError as error:
        if explain(error) is not DAMAGED:
            raise
        logger.warning("check_integrity %s: the database is damaged: %s", name, error)
    except Exception:  # one that cannot be repaired is left to a person, and the others are repaired
        logger.exception("check_integrity %s: %d findings were not repaired", name, len(findings))


def _looked(name: str, check: Check, user_id: UUID | None) -> Iterable[Finding]:
    """The check's findings; where it cannot be finished, those so far and one that says so."""
    try:
        yield from check.find(user_id)
    except DatabaseError as error:
        trouble = explain(error)
        connection.close_if_unusable_or_obsolete()
        if trouble is not None and trouble is not DAMAGED:
            raise
        logger.warning("check_integrity %s: %s", name, error)
        why = "the database is damaged there" if trouble else "the database gave an error, see the log"
        yield _cut_short(name, why, DAMAGED.hint if trouble else "")
    except Exception as error:  # what one check stumbles over must not hide what the others find
        logger.exception("check_integrity %s could not be finished", name)
        yield _cut_short(name, f"it stumbled over {type(error).__name__}, see the log", "")


def _cut_short(name: str, why: str, advice: str) -> Finding:
    return Finding(
        about=f"{name}, {CUT_SHORT}",
        message=f"The check could not be finished: {why}.",
        advice=advice,
    )
