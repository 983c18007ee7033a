"""Reads of the search index. Synchronous: from async code call through `apps.core.database.in_db`."""

from uuid import UUID

from apps.search.documents import Hit, Packed, Scope

__all__ = ["Hit", "Packed", "Scope", "context", "search", "similar"]


def search(user_id: UUID, query: str, *, top_k: int = 10, scope: Scope | None = None) -> list[Hit]:
    """The user's best documents for a query, best first, one hit per (source, source_id).

    An empty query, or one without a single word, finds nothing. Long queries are cut to their first 2,000 terms.
    """
    raise NotImplementedError


def context(user_id: UUID, query: str, *, budget_tokens: int = 500, scope: Scope | None = None) -> Packed:
    """What a model should read about the query, within the budget; empty when nothing fits."""
    raise NotImplementedError


def similar(
    user_id: UUID, text: str, *, top_k: int = 10, scope: Scope | None = None
) -> list[tuple[UUID, float]]:
    """Source ids with calibrated similarity 0..1 of whole documents (1 says the same), best first."""
    raise NotImplementedError
