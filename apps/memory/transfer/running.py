"""Takes in the files that users bring: batch by batch, each in one transaction with how far it has come, so that a process that
is killed is followed by one that goes on where it was."""

import logging
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, BinaryIO
from uuid import UUID

from django.db import IntegrityError, OperationalError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from apps.core.db.prepared import prepared
from apps.core.db.troubles import explain
from apps.core.db.writing import precompute, writing_for
from apps.core.errors import IzzyError, Unavailable
from apps.core.jobs.fair import Failures
from apps.core.jobs.leases import LeaseLost
from apps.core.jobs.worker import Background
from apps.core.transfer import (
    Entry,
    Report,
    Taking,
    Write,
    group_of,
    write_nothing,
)
from apps.memory.models import OPEN_IMPORTS, Import, ImportState

from .batches import RECORDS, Batch, ReadOtherwise, foreign_batches, foreign_count, own_batches
from .lines import NAME, check_encoding
from .records import Reader, Upload, reader_for
from .storage import import_path, upload_exists, upload_remove

logger = logging.getLogger(__name__)

AT_ONCE = 3
"""Imports of one process, by turns."""
SWEEP_EVERY = timedelta(seconds=1)
CUT_OFF = "The file ends early: its last record is missing. What it holds was taken; export it anew for the rest."
LOST = "The uploaded file is gone. Upload it again."
BROKEN = "The file could not be read to its end."
NOT_STORED = "It could not be stored."


class Cancelled(Exception):
    """Its user does not want it any more."""


class Run:
    """An import that this process holds the lease of. Call `step` for as long as it says that there is more."""

    def __init__(self, job: Import) -> None:
        self.job = job
        self.upload = Upload(import_path(job.id), job.name, job.pasted)
        self.fresh: set[UUID] = set()  # of a dry run, which knows by heart what it has seen
        self._file: BinaryIO | None = None
        if job.dry_run:
            self._begin({}, {})
        else:
            self._begin(job.report, job.cursor)

    def _begin(self, report: dict[str, Any], cursor: dict[str, Any]) -> None:
        self.report = Report.from_json(report)
        self.facts: dict[str, str] = dict(cursor.get("facts", {}))
        self.later: list[dict[str, Any]] = list(cursor.get("later", []))
        self.at, self.line, self.mark = (int(cursor.get(name, 0)) for name in ("at", "line", "mark"))
        self._batches: Iterator[Batch] | None = None

    def step(self) -> bool:
        """Takes in the next batch; whether there may be more. Raises what `_waits` is true of."""
        with writing_for(self.job.user_id):
            return self._step()

    def _step(self) -> bool:
        try:
            self._check_cancelled()
            if self._batches is None:
                self._batches = self._opened()
            batch = next(self._batches, None)
            if batch is not None:
                self._take(batch)
                return True
            self._settle()
            self._end(ImportState.DONE)
        except ReadOtherwise:  # what was taken is known again
            self._save(total=0)
            self._begin({}, {})
            return True
        except Cancelled:
            self._end(ImportState.CANCELLED)
        except FileNotFoundError:
            self._end(ImportState.FAILED, code="upload_lost", message=LOST)
        except Exception as error:  # a reader that fails must not be tried again for ever
            if _waits(error):
                self.close()
                raise
            if isinstance(error, IzzyError):
                self._end(ImportState.FAILED, code=error.code, message=error.message)
            else:
                logger.exception("import %s failed", self.job.pk)
                self._end(ImportState.FAILED, code="unreadable", message=BROKEN)
        return False

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _check_cancelled(self) -> None:
        rows = Import.objects.owned_by(self.job.user_id).filter(pk=self.job.pk)
        if rows.filter(cancel_requested=True).exists():
            raise Cancelled

    def _opened(self) -> Iterator[Batch]:
        """The batches that are left. Another program's file is read to its end first: it is taken as a whole or not at all."""
        job = self.job
        if job.reader == NAME:
            check_encoding(self.upload)
            self._file = self.upload.path.open("rb")
            self._save(total=self.upload.size)
            return own_batches(self._file, at=self.at, number=self.line)
        reader: Reader = reader_for(self.upload, job.reader)
        if not job.total:
            counted = 1
            for count in foreign_count(reader, self.upload):
                counted = max(counted, count)
                self._save()
                self._check_cancelled()
            self._save(total=counted)
        return foreign_batches(reader, self.upload, at=self.at, mark=self.mark)

    def _save(self, **values: Any) -> None:
        Import.lease_extend(self.job.pk, **values)
        for name, value in values.items():
            setattr(self.job, name, value)

    def _take(self, batch: Batch) -> None:
        """Takes in a batch; where the database refuses it, record by record, so that one does not keep back the others."""
        try:
            self._commit(batch)
        except Exception as error:
            if _waits(error):
                raise
            if not isinstance(error, IntegrityError):
                logger.exception("a batch of import %s was not taken as a whole", self.job.pk)
            for part in self._single(batch):
                self._take_single(part)

    def _take_single(self, part: Batch) -> None:
        try:
            self._commit(part)
        except Exception as error:
            if _waits(error):
                raise
            logger.exception("a record of import %s was not taken", self.job.pk)
            refused = [(entry, NOT_STORED) for entry in part.entries]
            self._commit(replace(part, entries=[], wrong=[*part.wrong, *refused]))

    def _commit(self, batch: Batch) -> None:
        taking = self._taking()
        for entry, reason in batch.skipped:
            taking.report.skip(entry, reason)
        for entry, reason in batch.wrong:
            taking.report.refuse(entry, reason)
        with precompute():
            plan = batch.group.plan if batch.group and batch.entries else None
            write = plan(taking, batch.entries) if plan else write_nothing
            if batch.complete:
                taking.facts["complete"] = "yes"
            self._write(taking, write, batch)

    def _single(self, batch: Batch) -> Iterator[Batch]:
        """One head with what belongs to it at a time. Only the last says how far the file was read: what comes before it is
        there already for a process that begins the batch anew."""
        group, parts = batch.group, [list[Entry]()]
        for entry in batch.entries:
            if parts[-1] and group is not None and entry.kind in (group.heads or group.kinds):
                parts.append([])
            parts[-1].append(entry)
        for part in parts[:-1]:
            yield Batch(group, part, at=self.at, line=self.line, mark=self.mark)
        yield replace(batch, entries=parts[-1])

    def _taking(self) -> Taking:
        job = self.job
        return Taking(
            user_id=job.user_id,
            format=job.reader,
            own=job.own and job.reader == NAME,
            accept=job.accept,
            dry_run=job.dry_run,
            now=timezone.now(),
            fresh=set(self.fresh) if job.dry_run else set(),
            later=list(self.later),
            facts=dict(self.facts),
        )

    def _write(self, taking: Taking, write: Write, batch: Batch | None = None) -> None:
        report = Report.from_json(self.report.to_json())
        report.add(taking.report)
        values: dict[str, Any] = {"report": report.to_json()}
        if batch is not None:
            where = {"at": batch.at, "line": batch.line, "mark": batch.mark}
            values |= {
                "cursor": {**where, "facts": taking.facts, "later": taking.later},
                "done": batch.at,
            }
        with transaction.atomic():
            Import.lease_extend(self.job.pk, **values)
            if not taking.dry_run:
                write()
        self.report, self.facts, self.later = report, taking.facts, taking.later
        self.fresh = taking.fresh
        if batch is not None:
            self.at, self.line, self.mark = batch.at, batch.line, batch.mark

    def _settle(self) -> None:
        """Takes in what waited for the end of the file."""
        waiting: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for item in self.later:
            waiting[item["kind"]].append(item)
        self.later = []
        for kind, items in waiting.items():
            group = group_of(kind)
            settle = group.settle if group else None
            for start in range(0, len(items), RECORDS) if settle else ():
                taking = self._taking()
                with precompute():
                    write = settle(taking, items[start : start + RECORDS]) if settle else write_nothing
                    self._write(taking, write)
        if self.facts.get("complete") != "yes" and not self._ends_wrong():
            self.report.notes.append(CUT_OFF)

    def _ends_wrong(self) -> bool:
        """Whether the last line is reported as wrong already."""
        return bool(self.report.wrong) and self.report.wrong[-1]["line"] == self.line

    def _end(self, state: ImportState, *, code: str = "", message: str = "") -> None:
        self.close()
        with transaction.atomic():
            Import.lease_extend(
                self.job.pk,
                report=self.report.to_json(),
                error_code=code[:48],
                error=message[:500],
                cursor={},
                ended_at=timezone.now(),
            )
            Import.lease_release(self.job.pk, state=state)
        upload_remove(self.job.pk)


def _waits(error: Exception) -> bool:
    """Whether it says nothing of the file: the lease is lost, the database away, the disk full, the store out of reach. What is left is
    taken in by whoever takes the import next."""
    if not isinstance(error, OSError):
        return isinstance(error, LeaseLost | OperationalError)
    trouble = explain(error)
    return isinstance(error, Unavailable) or bool(trouble and trouble.passing)


def imports_run() -> timedelta | None:
    """Takes in all that waits, of all users, by turns; what comes meanwhile too. A user's imports come one after the other. One
    that has to wait holds up those behind it of its user alone; why is raised once the others are done."""
    runs: dict[UUID, Run] = {}
    failed = Failures()
    while True:
        for job in _next(AT_ONCE - len(runs), failed):
            runs[job.pk] = Run(job)
        if not runs:
            failed.raise_first()
            return None
        with Import.leases_kept(runs):
            for key, run in list(runs.items()):
                try:
                    if run.step():
                        continue
                except LeaseLost:
                    logger.info("import %s is somebody else's by now", key)
                except Exception as error:  # noqa: BLE001  it is raised in the end
                    failed.note(run.job.user_id, error)
                del runs[key]


def _next(room: int, failed: Failures) -> list[Import]:
    """At most so many imports that may begin or go on, of users for whom nothing failed, taken for this process."""
    taken: list[Import] = []
    open_ones = Import.objects.unscoped().filter(state__in=OPEN_IMPORTS)
    held = {*failed, *open_ones.exclude(Import.lease_free()).values_list("user_id", flat=True)}
    waiting = open_ones.filter(Import.lease_free()).exclude(user_id__in=held)
    for key, user_id in waiting.order_by("created_at", "pk").values_list("pk", "user_id"):
        if len(taken) >= room:
            break
        if user_id not in held and (job := import_taken(key)) is not None:
            held.add(user_id)
            taken.append(job)
    return taken


def import_taken(key: UUID) -> Import | None:
    """The import, whose lease is this process's now; None where another has it, or it has ended."""
    started = Coalesce("started_at", Now())
    if not Import.lease_take(key, state=ImportState.RUNNING, started_at=started):
        return None
    return Import.objects.unscoped().filter(pk=key).first()


importer = Background("imports", imports_run)


def sweep() -> None:
    """The worker's sweep: starts where an import waits."""
    if _waiting():
        Import.release_at_exit()
        importer.start()


@prepared
def _waiting() -> QuerySet[Import, UUID]:
    return Import.objects.unscoped().filter(Import.lease_free()).values_list("pk", flat=True)[:1]


def import_lost(key: UUID) -> None:
    """Ends an import whose file is gone; nothing where another process has it in hand."""
    if not upload_exists(key) and Import.lease_take(key):
        Run(Import.objects.unscoped().get(pk=key)).step()
