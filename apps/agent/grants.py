"""A user's lasting grants: the yes to a card that holds in a conversation, or always for a tool."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.agent.models import ToolGrant
from apps.agent.tools.base import Reach
from apps.core.errors import NotFound
from apps.core.ids import parse_id

LASTS = timedelta(days=1)  # for a grant in a conversation


def grant_add(*, user_id: UUID, reach: dict[str, Any], conversation_id: UUID | None) -> ToolGrant:
    """Allows every call of this reach (`Reach.to_json`): in the conversation for a day, or without one in all of them."""
    ends_at = timezone.now() + LASTS if conversation_id else None
    return ToolGrant.objects.create(
        user_id=user_id, conversation_id=conversation_id, reach=reach, ends_at=ends_at
    )


def grant_remove(*, user_id: UUID, grant_id: object) -> None:
    """Takes a yes back: the next such call asks again. Raises NotFound."""
    removed, _ = ToolGrant.objects.for_user(user_id).filter(pk=parse_id(grant_id)).delete()
    if not removed:
        raise NotFound("This was taken back already.")


def grants_end(*, user_id: UUID, capability_id: UUID, version: int | None = None) -> None:
    """Ends what was allowed to a capability, but for what was allowed to this version."""
    rows = ToolGrant.objects.for_user(user_id).filter(reach__capability=str(capability_id))
    rows.exclude(reach__version=version or 0).delete()


def grants_for(user_id: UUID, conversation_id: UUID | None = None) -> QuerySet[ToolGrant]:
    """Grants that hold now: in the conversation and in all; all of the user's without `conversation_id`."""
    rows = ToolGrant.objects.for_user(user_id).filter(Q(ends_at=None) | Q(ends_at__gt=timezone.now()))
    if conversation_id is None:
        return rows
    return rows.filter(Q(conversation_id=None) | Q(conversation_id=conversation_id))


def grant_covering(user_id: UUID, conversation_id: UUID, reach: Reach) -> ToolGrant | None:
    """The yes that holds for a call of this reach, with no other host, secret or version than the user saw."""
    grants = grants_for(user_id, conversation_id)
    return next((grant for grant in grants if grant.reach == reach.to_json()), None)
