"""REST of capabilities: `/capabilities/` and what hangs on one, addressed by its name (or id)."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.errors import InvalidInput
from apps.core.pagination import Pages
from apps.core.parsers import StrictJSONParser
from apps.core.rest_views import page_of

from . import services
from .api_base import CapabilityView, ZipParser
from .archives import archive_read
from .drafts import Draft
from .inputs import DRAFT_FIELDS, WRITABLE, body_of, draft_parts, optional_version
from .models import Origin
from .output import capability_json
from .selectors import capabilities_for
from .serializers import (
    CapabilitiesQuery,
    CapabilityDetailOutput,
    CapabilityInput,
    CapabilityOutput,
    VersionInput,
)


@extend_schema(tags=["capabilities"])
class CapabilitiesView(CapabilityView):
    """All capabilities."""

    parser_classes = [StrictJSONParser, ZipParser]

    @extend_schema(
        operation_id="capabilities_list",
        parameters=[CapabilitiesQuery],
        responses=page_of("CapabilityPage", CapabilityOutput(many=True)),
    )
    def get(self, request: Request) -> Response:
        """List capabilities by name."""
        rows = capabilities_for(self.user_id, **self.parameters(CapabilitiesQuery))
        pages = Pages()
        shown: list[Any] = pages.paginate_queryset(rows, request, view=self) or []
        return pages.get_paginated_response([capability_json(row) for row in shown])

    @extend_schema(
        operation_id="capabilities_create",
        request={"application/json": CapabilityInput, "application/zip": OpenApiTypes.BINARY},
        responses={201: CapabilityDetailOutput},
    )
    def post(self, request: Request) -> Response:
        """Make a capability: active, or waiting for `approve/` where it asks for hosts or secrets.

        As `application/zip` an archive is brought in; that one is disabled until it is approved.
        """
        if isinstance(request.data, bytes):
            name, draft = archive_read(request.data)
            made = services.capability_create(
                user_id=self.user_id, name=name, draft=draft, origin=Origin.IMPORT, untrusted=True
            )
            return self.detail(made.name, status.HTTP_201_CREATED)
        body = body_of(request, WRITABLE)
        parts = draft_parts(body)
        parts = {"description": None, "input_schema": None, "main": "", **parts}
        made = services.capability_create(
            user_id=self.user_id, name=body.get("name", ""), draft=Draft(**parts), origin=self.origin
        )
        return self.detail(made.name, status.HTTP_201_CREATED)


@extend_schema(tags=["capabilities"])
class OneCapabilityView(CapabilityView):
    """One capability."""

    @extend_schema(operation_id="capabilities_retrieve", responses=CapabilityDetailOutput)
    def get(self, request: Request, capability: str) -> Response:
        """Read a capability with its files and versions."""
        return self.detail(capability)

    @extend_schema(
        operation_id="capabilities_update",
        request=CapabilityInput(partial=True),
        responses=CapabilityDetailOutput,
    )
    def patch(self, request: Request, capability: str) -> Response:
        """Change a capability: a new version with these parts changed, to be approved anew where it asks for something."""
        found = self.find(capability)
        body = body_of(request, WRITABLE)
        if body.pop("name", found.name) != found.name:
            raise InvalidInput(
                "A capability keeps its name. Make a new one instead.", code="fixed", field="name"
            )
        parts = draft_parts(body)
        if not parts:
            raise InvalidInput(f"Nothing to change: give one of {', '.join(DRAFT_FIELDS)}.", code="empty")
        services.capability_update(user_id=self.user_id, capability_id=found.pk, origin=self.origin, **parts)
        return self.detail(found.name)

    @extend_schema(operation_id="capabilities_delete", responses={204: None})
    def delete(self, request: Request, capability: str) -> Response:
        """Delete a capability with its versions, files and runs, for good."""
        services.capability_delete(user_id=self.user_id, capability_id=self.find(capability).pk)
        return Response(status=status.HTTP_204_NO_CONTENT)


@extend_schema(tags=["capabilities"])
class EnableView(CapabilityView):
    """Into use."""

    @extend_schema(operation_id="capabilities_enable", request=None, responses=CapabilityDetailOutput)
    def post(self, request: Request, capability: str) -> Response:
        """Put a disabled or failed capability into use again."""
        found = self.find(capability)
        services.capability_enable(user_id=self.user_id, capability_id=found.pk)
        return self.detail(found.name)


@extend_schema(tags=["capabilities"])
class DisableView(CapabilityView):
    """Out of use."""

    @extend_schema(operation_id="capabilities_disable", request=None, responses=CapabilityDetailOutput)
    def post(self, request: Request, capability: str) -> Response:
        """Take a capability out of use."""
        found = self.find(capability)
        services.capability_disable(user_id=self.user_id, capability_id=found.pk)
        return self.detail(found.name)


@extend_schema(tags=["capabilities"])
class ApproveView(CapabilityView):
    """The user's yes."""

    @extend_schema(
        operation_id="capabilities_approve", request=VersionInput, responses=CapabilityDetailOutput
    )
    def post(self, request: Request, capability: str) -> Response:
        """Allow the hosts and secrets of the current version, or of `waiting_version`; 409 where `version` is neither.

        One that was built before it could be tried is tested next; it is in use when its examples have passed.
        """
        found = self.find(capability)
        version = optional_version(body_of(request, ("version",)))
        services.capability_approve(user_id=self.user_id, capability_id=found.pk, version=version)
        return self.detail(found.name)


@extend_schema(tags=["capabilities"])
class RollbackView(CapabilityView):
    """The way back."""

    @extend_schema(
        operation_id="capabilities_rollback", request=VersionInput, responses=CapabilityDetailOutput
    )
    def post(self, request: Request, capability: str) -> Response:
        """Make an earlier version the current one; without `version` the one before."""
        found = self.find(capability)
        version = optional_version(body_of(request, ("version",)))
        services.capability_rollback(user_id=self.user_id, capability_id=found.pk, number=version)
        return self.detail(found.name)
