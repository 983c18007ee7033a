"""What was ticked on the page before a purge."""

from collections.abc import Collection
from uuid import UUID

from django.http import QueryDict

from apps.core.ids import parse_id

from .services import MAX_ALSO, MAX_REDACTED


def ticked(data: QueryDict, name: str) -> list[UUID]:
    """The ids of the ticked boxes; NotFound for what is none."""
    limit = MAX_ALSO if name == "also" else MAX_REDACTED
    values: Collection[str] = data.getlist(name)[:limit]
    return list(dict.fromkeys(parse_id(value) for value in values))
