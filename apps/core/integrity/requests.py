"""Checks that are asked for on a page: the worker runs them, one at a time, and their results are kept."""

import logging
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from apps.core.db.prepared import prepared
from apps.core.db.troubles import explain
from apps.core.jobs.beside import done_every
from apps.core.jobs.worker import Background
from apps.core.models import IntegrityRun

from . import checks
from .running import examine

logger = logging.getLogger(__name__)

KEPT = 50
MAX_FINDINGS = 1000
"""Of one run; the command prints all of them."""
INTERRUPTED = "The worker ended before it was done. Ask for it again."
SILENT = timedelta(minutes=1)
BEAT_SECONDS = 5.0
State = IntegrityRun.State


class Taken(Exception):
    """The run counts as failed meanwhile, or is gone."""


@transaction.atomic
def integrity_run_request(*, asked_by: str, fix: bool) -> IntegrityRun:
    """Has everything looked at; one that waits already, for the same, is joined. Older results go when there are many."""
    waiting = IntegrityRun.objects.filter(state=State.WAITING, fix=fix).first()
    if waiting is not None:
        return waiting
    run = IntegrityRun.objects.create(asked_by=asked_by, fix=fix)
    kept = list(IntegrityRun.objects.order_by("-created_at").values_list("pk", flat=True)[:KEPT])
    ended = IntegrityRun.objects.filter(state__in=[State.DONE, State.FAILED])
    ended.exclude(pk__in=kept).delete()
    return run


def integrity_runs_work() -> None:
    """Does what waits. What a process before has left under way failed with it."""
    values = {"state": State.FAILED, "error": INTERRUPTED, "ended_at": timezone.now()}
    _lost().update(**values)
    while run := IntegrityRun.objects.filter(state=State.WAITING).order_by("created_at").first():
        waiting = IntegrityRun.objects.filter(pk=run.pk, state=State.WAITING)
        if waiting.update(state=State.RUNNING, beat_at=Now()):
            with _beating(run):
                _run(run)


def _lost() -> QuerySet[IntegrityRun]:
    return IntegrityRun.objects.filter(_is_lost())


def _is_lost() -> Q:
    silent = Q(beat_at=None) | Q(beat_at__lt=Now() - SILENT) | Q(beat_at__gt=Now() + SILENT)
    return silent & Q(state=State.RUNNING)


def _beating(run: IntegrityRun) -> AbstractContextManager[None]:
    """Says every few seconds that the run is under way: one check may take minutes."""
    rows = IntegrityRun.objects.filter(pk=run.pk)
    return done_every(BEAT_SECONDS, lambda: rows.update(beat_at=Now()), "integrity beat")


def _run(run: IntegrityRun) -> None:
    rows = IntegrityRun.objects.filter(pk=run.pk, state=State.RUNNING)
    titles = {name: check.title for name, check in checks()}
    try:
        outcomes = list(
            examine(fix=run.fix, progress=lambda name: _step(rows.update(step=titles[name])))
        )
        values = {
            "state": State.DONE,
            "findings": [outcome.to_json() for outcome in outcomes[:MAX_FINDINGS]],
            "found": len(outcomes),
            "left": sum(not outcome.fixed for outcome in outcomes),
        }
    except Taken:
        return
    except DatabaseError as error:
        trouble = explain(error)
        why = f"{trouble.message} {trouble.hint}" if trouble else "The database gave an error."
        logger.warning("an integrity check could not look: %s", error)
        values = {"state": State.FAILED, "error": why[:500]}
    rows.update(**values, step="", ended_at=timezone.now())


def _step(updated: int) -> None:
    if not updated:
        raise Taken


worker = Background("integrity", integrity_runs_work)


def sweep() -> None:
    """The worker's sweep: starts where a check waits, or was left under way."""
    if _to_do():
        worker.start()


@prepared
def _to_do() -> QuerySet[IntegrityRun, Any]:
    rows = IntegrityRun.objects.filter(Q(state=State.WAITING) | _is_lost())
    return rows.values_list("pk", flat=True)[:1]
