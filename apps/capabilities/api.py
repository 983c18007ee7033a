"""REST of capabilities: `/capabilities/` and what hangs on one, addressed by its name (or id)."""

from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request

from apps.core.errors import InvalidInput
from apps.core.parsers import StrictJSONParser
from apps.core.rest_views import Listed, operation
from apps.core.shapes import Beside, page_of

from . import services
from .api_base import CapabilityView, ZipParser
from .archives import archive_read
from .drafts import Draft
from .models import Origin
from .selectors import capabilities_for
from .shapes import (
    CapabilitiesQuery,
    CapabilityDetailOutput,
    CapabilityInput,
    CapabilityOutput,
    CapabilityPatch,
    VersionInput,
    capability_seen,
)


class CapabilitiesView(CapabilityView):
    """All capabilities."""

    parser_classes = [StrictJSONParser, ZipParser]

    @operation(
        "capabilities_list", query=CapabilitiesQuery, answer=page_of("CapabilityPage", CapabilityOutput)
    )
    def get(self, request: Request) -> Listed:
        """List capabilities by name."""
        rows = capabilities_for(self.user_id, **self.query(CapabilitiesQuery).given)
        return Listed(rows, lambda shown: map(capability_seen, shown))

    @operation(
        "capabilities_create",
        body=CapabilityInput,
        answer=CapabilityDetailOutput,
        status=201,
        described={"request": {"application/zip": OpenApiTypes.BINARY}},
    )
    def post(self, request: Request) -> Beside:
        """Make a capability: active, or waiting for `approve/` where it asks for hosts or secrets.

        As `application/zip` an archive is brought in; that one is disabled until it is approved.
        """
        if isinstance(request.data, bytes):
            name, draft = archive_read(request.data)
            made = services.capability_create(
                user_id=self.user_id, name=name, draft=draft, origin=Origin.IMPORT, untrusted=True
            )
        else:
            body = self.body(CapabilityInput)
            draft = Draft(**{"main": "", **body.draft_parts})
            made = services.capability_create(
                user_id=self.user_id, name=body.name, draft=draft, origin=self.origin
            )
        return self.opened(made.name)


class OneCapabilityView(CapabilityView):
    """One capability."""

    @operation("capabilities_retrieve", answer=CapabilityDetailOutput)
    def get(self, request: Request, capability: str) -> Beside:
        """Read a capability with its files and versions."""
        return self.opened(capability)

    @operation("capabilities_update", body=CapabilityPatch, answer=CapabilityDetailOutput)
    def patch(self, request: Request, capability: str) -> Beside:
        """Change a capability: a new version with these parts changed, to be approved anew where it asks for something."""
        found = self.find(capability)
        sent = request.data
        if isinstance(sent, dict) and sent.get("name") not in (None, found.name):
            raise InvalidInput(
                "A capability keeps its name. Make a new one instead.", code="fixed", field="name"
            )
        parts = self.body(CapabilityPatch).draft_parts
        if not parts:
            raise InvalidInput("Nothing to change: give a part of it.", code="empty")
        services.capability_update(user_id=self.user_id, capability_id=found.pk, origin=self.origin, **parts)
        return self.opened(found.name)

    @operation("capabilities_delete", status=204)
    def delete(self, request: Request, capability: str) -> None:
        """Delete a capability with its versions, files and runs, for good."""
        services.capability_delete(user_id=self.user_id, capability_id=self.find(capability).pk)


class EnableView(CapabilityView):
    """Into use."""

    @operation("capabilities_enable", answer=CapabilityDetailOutput)
    def post(self, request: Request, capability: str) -> Beside:
        """Put a disabled or failed capability into use again."""
        found = self.find(capability)
        services.capability_enable(user_id=self.user_id, capability_id=found.pk)
        return self.opened(found.name)


class DisableView(CapabilityView):
    """Out of use."""

    @operation("capabilities_disable", answer=CapabilityDetailOutput)
    def post(self, request: Request, capability: str) -> Beside:
        """Take a capability out of use."""
        found = self.find(capability)
        services.capability_disable(user_id=self.user_id, capability_id=found.pk)
        return self.opened(found.name)


class ApproveView(CapabilityView):
    """The user's yes."""

    @operation("capabilities_approve", body=VersionInput, answer=CapabilityDetailOutput)
    def post(self, request: Request, capability: str) -> Beside:
        """Allow the hosts and secrets of the current version, or of `waiting_version`; 409 where `version` is neither.

        One that was built before it could be tried is tested next; it is in use when its examples have passed.
        """
        found = self.find(capability)
        version = self.body(VersionInput).version
        services.capability_approve(user_id=self.user_id, capability_id=found.pk, version=version)
        return self.opened(found.name)


class RollbackView(CapabilityView):
    """The way back."""

    @operation("capabilities_rollback", body=VersionInput, answer=CapabilityDetailOutput)
    def post(self, request: Request, capability: str) -> Beside:
        """Make an earlier version the current one; without `version` the one before."""
        found = self.find(capability)
        version = self.body(VersionInput).version
        services.capability_rollback(user_id=self.user_id, capability_id=found.pk, number=version)
        return self.opened(found.name)
