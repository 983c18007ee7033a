"""The base of capabilities' REST views."""

from collections.abc import Mapping
from typing import IO, Any

from django.http import HttpResponse
from rest_framework.parsers import BaseParser

from apps.core.rest_views import UserView
from apps.core.shapes import Beside

from .archives import archive_of
from .models import Capability, Origin
from .selectors import capability_get
from .shapes import capability_opened


class ZipParser(BaseParser):
    """A capability as an archive: the bytes themselves."""

    media_type = "application/zip"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        return bytes(stream.read())


class CapabilityView(UserView):
    """The base of capabilities' views."""

    @property
    def origin(self) -> Origin:
        return Origin.API if self.request.auth else Origin.USER

    def find(self, name: str) -> Capability:
        return capability_get(self.user_id, name)

    def opened(self, name: object) -> Beside:
        return capability_opened(capability_get(self.user_id, name))


def archive_response(capability: Capability) -> HttpResponse:
    """A download of a capability."""
    response = HttpResponse(archive_of(capability), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{capability.name}.zip"'
    return response
