"""Writes of the search index. Call them inside the transaction that writes the document itself."""

from collections.abc import Collection, Sequence
from uuid import UUID

from apps.search.documents import Document, Source


def documents_index(*, user_id: UUID, documents: Sequence[Document]) -> None:
    """Make the documents searchable for their owner; replaces all passages of each (source, source_id).

    Full text is searchable when the transaction commits. So are vectors with the static embedder; with a
    remote one they follow (`passages_embed_pending`). Never fails because an embedder is down.
    """
    raise NotImplementedError


def documents_remove(*, user_id: UUID, source: Source, source_ids: Collection[UUID]) -> int:
    """Take documents out of rows, vectors and full text at once; returns how many passages went."""
    raise NotImplementedError


def user_forget(*, user_id: UUID) -> int:
    """Remove every trace of a user from the index, before the account's rows go."""
    raise NotImplementedError
