"""Checks of notes, files, windows and imports; and what search should hold of notes and files."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Max, Q
from django.utils import timezone

from apps.core.integrity import (
    Check,
    Finding,
    disposable,
    findings,
    integrity_checks,
    keys_of,
    owner_of,
    per_user,
    row_name,
)
from apps.memory.capture.windows import NO_WORDS, UNREAD
from apps.memory.files.services import file_documents
from apps.memory.models import (
    OPEN_IMPORTS,
    CaptureWindow,
    DecayCycle,
    Import,
    Memory,
    MemoryFile,
    MemoryRevision,
    WindowState,
)
from apps.memory.notes.creation import documents_with_past
from apps.memory.notes.fields import folded
from apps.memory.notes.history import SEARCHABLE
from apps.memory.transfer.running import import_lost
from apps.memory.transfer.storage import is_held, upload_exists, uploads
from apps.search.documents import Document, Source
from apps.search.integrity import Indexed, indexed

AT_ONCE = 500
LONG_AHEAD = timedelta(days=2)
"""Nothing of a user's is put off for so long; a time beyond it is from before the clock was set back."""


def note_documents(user_id: UUID, ids: Sequence[UUID]) -> dict[UUID, list[Document]]:
    """The documents that search should hold of those notes among `ids` that are there."""
    notes = Memory.objects.with_deleted(user_id).filter(pk__in=ids)
    notes = notes.defer("folded_content", "folded_tags", "proposed_fields")
    former: dict[UUID, list[MemoryRevision]] = defaultdict(list)
    for row in MemoryRevision.objects.owned_by(user_id).filter(memory_id__in=ids).order_by("version"):
        former[row.memory_id].append(row)
    return {
        note.pk: documents_with_past(note, former.get(note.pk, ())) if note.status in SEARCHABLE else []
        for note in notes
    }


def _file_documents(user_id: UUID, ids: Sequence[UUID]) -> dict[UUID, list[Document]]:
    files = MemoryFile.objects.with_deleted(user_id).filter(pk__in=ids)
    return {file.pk: file_documents([file]) for file in files}


def _derived(user_id: UUID) -> Iterator[Finding]:
    """Columns that hold what other columns say, in another form."""
    notes = Memory.objects.with_deleted(user_id).order_by("pk")
    columns = ("pk", "content", "tags", "folded_content", "folded_tags")
    for key, content, tags, *held in notes.values_list(*columns).iterator(AT_ONCE):
        if list(folded({"content": content, "tags": tags}).values()) != held:
            yield Finding(
                about=row_name(Memory, key),
                message="Its text for comparing is not that of the note.",
                repair="Writes it anew from the note.",
                user_id=user_id,
                subject=(Memory, key),
            )
    files = MemoryFile.objects.with_deleted(user_id).order_by("pk")
    for key, content, size in files.values_list("pk", "content", "size").iterator(AT_ONCE):
        if len(content.encode()) != size:
            yield Finding(
                about=row_name(MemoryFile, key),
                message="Its size is not that of its content.",
                repair="Counts its bytes again.",
                user_id=user_id,
                subject=(MemoryFile, key),
            )
    cycle = DecayCycle.objects.filter(user_id=user_id).values_list("cycle", flat=True).first() or 0
    newest = notes.aggregate(newest=Max("priority_cycle"))["newest"] or 0
    if newest > cycle:
        yield Finding(
            about=row_name(DecayCycle, user_id),
            message="Notes are dated by cycles that the user's clock has yet to come to.",
            repair="Puts the clock forward to the newest of them.",
            user_id=user_id,
            subject=(DecayCycle, newest),
        )


def _derived_fix(found: Sequence[Finding]) -> None:
    for finding in found:
        model, key = finding.subject
        with transaction.atomic():
            if model is DecayCycle:
                clock, _ = DecayCycle.objects.get_or_create(user_id=owner_of(found))
                DecayCycle.objects.filter(pk=clock.pk, cycle__lt=key).update(cycle=key)
                continue
            row = model.everything.select_for_update().filter(pk=key).first()
            if isinstance(row, Memory):
                values = folded({"content": row.content, "tags": row.tags})
                Memory.everything.filter(pk=key).update(**values)
            elif isinstance(row, MemoryFile):
                MemoryFile.everything.filter(pk=key).update(size=len(row.content.encode()))


def _windows(user_id: UUID | None) -> Iterator[Finding]:
    rows = CaptureWindow.objects.for_user(user_id) if user_id else CaptureWindow.objects.unscoped()
    wordy = ~Q(segments=[]) | ~Q(shown=[])
    yield from findings(
        rows.exclude(state__in=UNREAD).filter(wordy),
        "It was read or withdrawn, and still holds words.",
        repair="Empties it.",
        kind="words",
    )
    yield from findings(
        rows.filter(state=WindowState.WAITING, segments=[]),
        "It waits to be read, and there is nothing in it.",
        repair="Withdraws it.",
        kind="empty",
    )
    far = timezone.now() + LONG_AHEAD
    yield from findings(
        rows.filter(state=WindowState.WAITING, due_at__gt=far),
        "It is to be read only long after now: the clock was set back.",
        repair="Has it read now.",
        kind="due",
    )
    notes = Memory.objects.for_user(user_id) if user_id else Memory.objects.unscoped()
    yield from findings(
        notes.exclude(occasions_wait="").filter(occasions_due__gt=far),
        "Its occasions are to be looked at only long after now: the clock was set back.",
        repair="Has them looked at now.",
        kind="occasions",
    )


@transaction.atomic
def _windows_fix(found: Sequence[Finding]) -> None:
    far, now = timezone.now() + LONG_AHEAD, timezone.now()
    for finding in found:
        kind, key = finding.subject
        windows = CaptureWindow.objects.unscoped().filter(pk=key)
        if kind == "words":
            windows.exclude(state__in=UNREAD).update(**NO_WORDS)
        elif kind == "empty":
            windows.filter(state=WindowState.WAITING, segments=[]).update(
                state=WindowState.WITHDRAWN, version=F("version") + 1, done_at=now
            )
        elif kind == "due":
            windows.filter(due_at__gt=far).update(due_at=now)
        else:
            Memory.everything.filter(pk=key, occasions_due__gt=far).update(occasions_due=now)


def _uploads(user_id: UUID | None) -> Iterator[Finding]:
    """Imports that wait against the files that lie for them."""
    imports = Import.objects.for_user(user_id) if user_id else Import.objects.unscoped()
    for key, owner in keys_of(imports.filter(state__in=OPEN_IMPORTS)):
        if not upload_exists(key):
            yield Finding(
                about=row_name(Import, key),
                message="The file that it is to take in is gone.",
                repair="Ends it as failed, and says so on its page.",
                user_id=owner,
                subject=key,
            )
    for path in uploads() if user_id is None else ():
        named = _uuid(path.name)
        waits = named and Import.objects.unscoped().filter(pk=named, state__in=OPEN_IMPORTS).exists()
        if not waits and not is_held(path):
            yield Finding(
                about=f"file imports/{path.name}",
                message="No import that is under way has this file.",
                repair="Removes the file.",
                subject=path,
            )


def _uuid(name: str) -> UUID | None:
    try:
        return UUID(name)
    except ValueError:
        return None


def _uploads_fix(found: Sequence[Finding]) -> None:
    for finding in found:
        if isinstance(finding.subject, UUID):
            import_lost(finding.subject)
        else:
            finding.subject.unlink(missing_ok=True)


indexed.register(Source.MEMORY, Indexed(Memory.objects.with_deleted, note_documents))
indexed.register(
    Source.FILE,
    Indexed(MemoryFile.objects.with_deleted, _file_documents),
)
integrity_checks.register(
    "memory: derived",
    Check("What is derived from notes and files is theirs", per_user(_derived), _derived_fix),
)
integrity_checks.register(
    "memory: windows", Check("What waits to be read can be read", _windows, _windows_fix)
)
integrity_checks.register("memory: uploads", Check("Imports have their files", _uploads, _uploads_fix))
disposable |= {
    *("memory.MemoryEdge", "memory.NoteHandle", "memory.MemoryUse"),
    *("memory.DecayCycle", "memory.CaptureLease"),
}
