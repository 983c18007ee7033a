"""Finding capabilities by what they do: hybrid search over name, description and tags."""

from uuid import UUID

from apps.search.documents import Hit, Scope, Source
from apps.search.selectors import search

from .models import Capability, Status
from .selectors import capabilities_by_id

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
