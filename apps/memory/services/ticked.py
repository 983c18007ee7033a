"""Acts on several notes at once by hand: all of them, or none where one is not there any more."""

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction

from apps.core.errors import TooLarge
from apps.memory.selectors import memory_get

from .changes import memory_archive, memory_update
from .deletion import memory_delete
from .undoing import memory_restore

MAX_TICKED = 200
TOO_MANY = f"At most {MAX_TICKED} memories can be changed at once."


@transaction.atomic
def memories_delete(*, user_id: UUID, memory_ids: Sequence[UUID]) -> int:
    """How many were deleted. NotFound, and nothing changed, for one that is unknown, deleted or somebody else's."""
    for key in _unique(memory_ids):
        memory_delete(user_id=user_id, memory_id=key)
    return len(_unique(memory_ids))


@transaction.atomic
def memories_archive(*, user_id: UUID, memory_ids: Sequence[UUID]) -> int:
    """How many were put away; errors as `memories_delete`."""
    for key in _unique(memory_ids):
        memory_archive(user_id=user_id, memory_id=key)
    return len(_unique(memory_ids))


@transaction.atomic
def memories_tag(*, user_id: UUID, memory_ids: Sequence[UUID], tag: str) -> int:
    """How many have the tag now; errors as `memories_delete`, and InvalidInput for what is no tag or one too many."""
    for key in _unique(memory_ids):
        tags = memory_get(user_id, key).tags
        memory_update(user_id=user_id, memory_id=key, tags=[*tags, tag])
    return len(_unique(memory_ids))


@transaction.atomic
def memories_restore(*, user_id: UUID, memory_ids: Sequence[UUID]) -> int:
    """How many are back; NotFound, and nothing changed, for one that cannot be brought back any more."""
    for key in _unique(memory_ids):
        memory_restore(user_id=user_id, memory_id=key)
    return len(_unique(memory_ids))


def _unique(memory_ids: Sequence[UUID]) -> list[UUID]:
    """Each once, in the same order for everybody, so that two changes at once do not wait for each other in a circle."""
    if len(memory_ids) > MAX_TICKED:
        raise TooLarge(TOO_MANY)
    return sorted(set(memory_ids))
