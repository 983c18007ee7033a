"""A user's builds for the export: what was asked, said and done."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from apps.builder.selectors import builds_for
from apps.builder.shapes import BuildDetailOutput, build_opened


def builds_export(user_id: UUID) -> Iterator[dict[str, Any]]:
    """One row for each build, with its messages and rounds."""
    for build in builds_for(user_id).order_by("created_at").iterator(chunk_size=50):
        yield {"type": "build", **BuildDetailOutput.dump(build_opened(build))}
