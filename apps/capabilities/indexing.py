"""Indexes active capabilities for search: name, description and tags."""

from collections.abc import Sequence
from uuid import UUID

from apps.search.documents import Document, Source
from apps.search.services import documents_index, documents_remove

from .models import Capability, Status


def capabilities_index(user_id: UUID, capabilities: Sequence[Capability]) -> None:
    """Brings the search index in step with these capabilities, inside the caller's transaction."""
    shown = [each for each in capabilities if each.status == Status.ACTIVE]
    hidden = [each.pk for each in capabilities if each.status != Status.ACTIVE]
    if shown:
        documents_index(user_id=user_id, documents=[_document(each) for each in shown])
    if hidden:
        documents_remove(user_id=user_id, source=Source.CAPABILITY, source_ids=hidden)


def searchable_text(capability: Capability) -> str:
    """The name as words, the description, the tags, and what its inputs are called."""
    words = capability.name.replace("_", " ")
    lines = [words, capability.description]
    if capability.tags:
        lines.append(", ".join(capability.tags))
    return "\n".join(lines)


def _document(capability: Capability) -> Document:
    return Document(
        source=Source.CAPABILITY,
        source_id=capability.pk,
        text=searchable_text(capability),
        happened_at=capability.created_at,
    )
