"""Searchable parts of a file: its path, the words of which count as text, and its content."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from apps.memory.models import MemoryFile
from apps.search.documents import Document, Source
from apps.search.services import documents_index, documents_prepare, documents_remove


def files_prepare(user_id: UUID, files: Iterable[tuple[str, str]]) -> None:
    """Work out what `files_index` needs for these (path, content), in this order; see `documents_prepare`."""
    documents_prepare(user_id=user_id, texts=[_text(path, content) for path, content in files])


def files_index(user_id: UUID, files: Sequence[MemoryFile]) -> None:
    """Bring the search index in step with the files' present state, inside the caller's transaction."""
    shown = [_document(file) for file in files if file.deleted_at is None]
    hidden = [file.pk for file in files if file.deleted_at is not None]
    if shown:
        documents_index(user_id=user_id, documents=shown)
    if hidden:
        documents_remove(user_id=user_id, source=Source.FILE, source_ids=hidden)


def _document(file: MemoryFile) -> Document:
    return Document(
        source=Source.FILE,
        source_id=file.pk,
        text=_text(file.path, file.content),
        happened_at=file.updated_at,
        external_id=file.path,
    )


def _text(path: str, content: str) -> str:
    return f"{path}\n\n{content}"
