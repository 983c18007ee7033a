"""Capabilities in the search index: put there by name, description and tags, and found by what they do."""

from uuid import UUID

from apps.capabilities.catalog.selectors import capabilities_by_id
from apps.capabilities.models import Capability, Status
from apps.search.documents import Document, Hit, Scope, Source
from apps.search.selectors import search
from apps.search.services import documents_index, documents_remove

CAPABILITIES = Scope(sources=frozenset({Source.CAPABILITY}))
ABOUT_THIS = 0.15
"""Score from which a capability is taken to be meant; `benchmark capabilities` says how often that is right."""


def capability_index(capability: Capability) -> None:
    """Brings the search index in step with it, inside the caller's transaction: an active one is found by its name as words,
    its description and its tags."""
    user_id = capability.user_id
    if capability.status != Status.ACTIVE:
        documents_remove(user_id=user_id, source=Source.CAPABILITY, source_ids=[capability.pk])
        return
    documents_index(user_id=user_id, documents=[capability_document(capability)])


def capability_document(capability: Capability) -> Document:
    """An active capability as search has it."""
    lines = [capability.name.replace("_", " "), capability.description]
    if capability.tags:
        lines.append(", ".join(capability.tags))
    return Document(
        source=Source.CAPABILITY,
        source_id=capability.pk,
        text="\n".join(lines),
        happened_at=capability.created_at,
    )


def capabilities_matching(user_id: UUID, query: str, *, top_k: int) -> list[tuple[Hit, Capability]]:
    """The user's active capabilities for a query, best first."""
    hits = search(user_id, query, top_k=top_k, scope=CAPABILITIES)
    found = capabilities_by_id(user_id, [hit.source_id for hit in hits])
    return [
        (hit, capability)
        for hit in hits
        if (capability := found.get(hit.source_id)) and capability.status == Status.ACTIVE
    ]
