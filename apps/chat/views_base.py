"""What the chat's REST views share."""

from typing import cast
from uuid import UUID

from rest_framework.permissions import SAFE_METHODS
from rest_framework.views import APIView


class UserView(APIView):
    """A view of the signed-in user's things; writing is throttled."""

    @property
    def throttle_scope(self) -> str | None:
        return None if (self.request.method or "") in SAFE_METHODS else "write"

    @property
    def user_id(self) -> UUID:
        return cast("UUID", self.request.user.pk)
