"""Imports as users ask for them, look at them and call them off."""

from collections.abc import Iterable
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from apps.core.errors import Conflict, InvalidInput, NotFound
from apps.core.ids import parse_id, uuid7
from apps.core.jobs.leases import LEASE_END, PROCESS
from apps.memory.models import OPEN_IMPORTS, Import, ImportState

from .lines import NAME, check_encoding, is_own
from .records import Upload, reader_for, readers
from .storage import import_path, upload_remove, upload_write

AUTO = "auto"
MAX_OPEN = 5
KEPT = 50
MAX_NAME_CHARS = 200


def import_formats() -> list[tuple[str, str, str]]:
    """(name, title, where to find such a file) of all formats, Izzy's own first."""
    own = (NAME, "Izzy (its own export)", "The JSON Lines file that an Izzy has exported.")
    others = sorted((reader.title, reader.name, reader.help) for reader in readers())
    return [own, *((name, title, about) for title, name, about in others)]


def import_create(
    *,
    user_id: UUID,
    chunks: Iterable[bytes],
    name: str = "",
    pasted: bool = False,
    format: str = AUTO,
    dry_run: bool = False,
    own: bool = False,
    accept: bool = False,
    limited: bool = True,
    here: bool = False,
) -> Import:
    """Keeps a file, finds out its format, and has the worker take it in. With `here` this process does that itself.

    InvalidInput (`unknown_format`, `empty_file`, `wrong_encoding`), TooLarge beyond IZZY_IMPORT_LIMIT unless not `limited`,
    Conflict (`too_many`) while MAX_OPEN others have not ended.
    """
    _room_check(user_id)
    if format not in {AUTO, *(known for known, _, _ in import_formats())}:
        raise InvalidInput("There is no such format.", code="unknown_format", field="format")
    key, shown = uuid7(), " ".join("".join(filter(str.isprintable, name)).split())[-MAX_NAME_CHARS:]
    with upload_write(key, chunks, limit=settings.IZZY_IMPORT_LIMIT if limited else None) as size:
        upload = Upload(import_path(key), shown, pasted)
        reader = format
        if format == AUTO:
            reader = NAME if is_own(upload) else reader_for(upload).name
        if reader == NAME:
            check_encoding(upload)
        return _stored(
            Import(
                id=key,
                user_id=user_id,
                name=shown,
                pasted=pasted,
                size=size,
                format=format,
                reader=reader,
                dry_run=dry_run,
                own=own and reader == NAME,
                accept=accept,
            ),
            here=here,
        )


def _room_check(user_id: UUID) -> None:
    if Import.objects.for_user(user_id).filter(state__in=OPEN_IMPORTS).count() >= MAX_OPEN:
        message = f"{MAX_OPEN} imports are under way already. Wait for one, or cancel it."
        raise Conflict(message, code="too_many", limit=MAX_OPEN)


@transaction.atomic
def _stored(job: Import, *, here: bool) -> Import:
    _room_check(job.user_id)  # again, as others may have come while the file was read
    if here:
        job.runner, job.lease_until = PROCESS, LEASE_END
    job.save(force_insert=True)
    ended = Import.objects.for_user(job.user_id).exclude(state__in=OPEN_IMPORTS)
    kept = list(ended.order_by("-created_at").values_list("pk", flat=True)[:KEPT])
    ended.exclude(pk__in=kept).delete()
    return job


def imports_open() -> QuerySet[Import]:
    """The imports of all users that have not ended."""
    return Import.objects.unscoped().filter(state__in=OPEN_IMPORTS)


def imports_list(user_id: UUID) -> QuerySet[Import]:
    """The user's imports, newest first."""
    return Import.objects.for_user(user_id).order_by("-created_at", "-pk")


def import_get(user_id: UUID, import_id: object) -> Import:
    """NotFound for one of somebody else, and for one that is no longer kept."""
    found = Import.objects.for_user(user_id).filter(pk=parse_id(import_id)).first()
    if found is None:
        raise NotFound("There is no import with this id.")
    return found


@transaction.atomic
def import_cancel(*, user_id: UUID, import_id: object) -> Import:
    """Calls an import off: what was taken stays. One that has not begun ends at once, one under way with its next batch.
    Conflict (`ended`) for one that has ended."""
    job = import_get(user_id, import_id)
    rows = Import.objects.for_user(user_id).filter(pk=job.pk, state__in=OPEN_IMPORTS)
    if not rows.update(cancel_requested=True):
        raise Conflict("This import has ended already.", code="ended")
    waiting = rows.filter(Import.lease_free(), state=ImportState.WAITING)
    if waiting.update(state=ImportState.CANCELLED, ended_at=Now()):
        transaction.on_commit(lambda: upload_remove(job.pk))
    return import_get(user_id, job.pk)
