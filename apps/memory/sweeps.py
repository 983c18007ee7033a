"""The worker's sweeps over everybody's memory; each runs by itself, so that none holds up another."""

from datetime import timedelta

from apps.core.jobs.worker import register_sweep

from .capture import reader
from .notes.joining import superseded_due
from .purge.services import deleted_purge, interrupted_resume


def register_sweeps() -> None:
    register_sweep("capture", reader.sweep, every=reader.SWEEP_EVERY)
    register_sweep("memory_deleted_purge", _deleted_purge, every=timedelta(hours=1))
    register_sweep("memory_purge_resume", interrupted_resume, every=timedelta(hours=1))
    register_sweep("memory_superseded", _superseded_end, every=timedelta(minutes=10))


def _deleted_purge() -> None:
    deleted_purge()


def _superseded_end() -> None:
    superseded_due()
