"""Figures about a user's part of the index, for `/stats/`."""

from typing import Any
from uuid import UUID

from django.db.models import Count, Q

from apps.search.models import EmbeddingSpace, Passage


def user_figures(user_id: UUID) -> dict[str, Any]:
    """Passages by source, how many wait for a vector, and the embedder in use."""
    rows = Passage.objects.filter(user_id=user_id, past=False).order_by().values("source")
    counted = list(rows.annotate(passages=Count("id"), waiting=Count("id", filter=Q(pending=True))))
    space = EmbeddingSpace.objects.filter(state=EmbeddingSpace.State.ACTIVE).first()
    return {
        "passages": {row["source"]: row["passages"] for row in counted},
        "waiting_for_vectors": sum(row["waiting"] for row in counted),
        "embedder": space.name if space is not None else "",
    }
