"""Capabilities in the search index: put there by name, description and tags, and found by what they do."""

from collections.abc import Sequence
from uuid import UUID

from apps.capabilities.catalog.selectors import capabilities_by_id
from apps.capabilities.models import Capability, Status
from apps.search.documents import Document, Hit, Scope, Source
from apps.search.selectors import search
from apps.search.services import documents_index, documents_remove


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


CAPABILITIES = Scope(sources=frozenset({Source.CAPABILITY}))
ABOUT_THIS = 0.15
"""Score from which a capability is taken to be meant; `benchmark capabilities` says how often that is right."""


def capabilities_matching(user_id: UUID, query: str, *, top_k: int) -> list[tuple[Hit, Capability]]:
    """The user's active capabilities for a query, best first."""
    hits = search(user_id, query, top_k=top_k, scope=CAPABILITIES)
    found = capabilities_by_id(user_id, [hit.source_id for hit in hits])
    return [
        (hit, capability)
        for hit in hits
        if (capability := found.get(hit.source_id)) and capability.status == Status.ACTIVE
    ]
