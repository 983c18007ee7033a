"""What the REST views of capabilities share."""

from collections.abc import Mapping
from typing import IO, Any, cast
from uuid import UUID

from django.http import HttpResponse
from rest_framework import status
from rest_framework.parsers import BaseParser
from rest_framework.permissions import SAFE_METHODS
from rest_framework.response import Response
from rest_framework.views import APIView

from .archives import archive_of
from .models import Capability, Origin
from .output import capability_detail_json
from .selectors import capability_get


class ZipParser(BaseParser):
    """A capability as an archive: the bytes themselves."""

    media_type = "application/zip"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        return bytes(stream.read())


class CapabilityView(APIView):
    """What the views share: whose capability it is, and the limits on writing."""

    @property
    def throttle_scope(self) -> str | None:
        return None if (self.request.method or "") in SAFE_METHODS else "write"

    @property
    def user_id(self) -> UUID:
        return cast("UUID", self.request.user.pk)

    @property
    def origin(self) -> Origin:
        return Origin.API if self.request.auth else Origin.USER

    def find(self, name: str) -> Capability:
        return capability_get(self.user_id, name)

    def detail(self, name: object, code: int = status.HTTP_200_OK) -> Response:
        return Response(capability_detail_json(capability_get(self.user_id, name)), status=code)


def archive_response(capability: Capability) -> HttpResponse:
    """A download of a capability."""
    response = HttpResponse(archive_of(capability), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{capability.name}.zip"'
    return response
