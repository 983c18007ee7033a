"""A user's builds for the export: what was asked, said and done."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from apps.builder.output import build_detail_json
from apps.builder.selectors import builds_for


def builds_export(user_id: UUID) -> Iterator[dict[str, Any]]:
    """One row for each build, with its messages and rounds."""
    for build in builds_for(user_id).order_by("created_at").iterator(chunk_size=50):
        yield {"type": "build", **build_detail_json(build)}
