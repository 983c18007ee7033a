"""A user's capabilities as rows of an export: every version with its files, no secrets, no runs."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from .files import files_read
from .models import Capability, CapabilityVersion


def capabilities_export(user_id: UUID) -> Iterator[dict[str, Any]]:
    """`{type: "capability", …}` for each, followed by its `{type: "capability_version", …}`, oldest first."""
    for capability in Capability.objects.for_user(user_id).select_related("current").order_by("created_at"):
        yield {
            "type": "capability",
            "id": str(capability.pk),
            "name": capability.name,
            "status": capability.status,
            "status_reason": capability.status_reason,
            "description": capability.description,
            "input_schema": capability.input_schema,
            "version": capability.current.number if capability.current else None,
            "runs": capability.runs,
            "successes": capability.successes,
            "created_at": capability.created_at.isoformat(),
            "updated_at": capability.updated_at.isoformat(),
        }
        versions = CapabilityVersion.objects.for_user(user_id).filter(capability=capability)
        for version in versions.order_by("number"):
            yield _version_row(capability, version)


def _version_row(capability: Capability, version: CapabilityVersion) -> dict[str, Any]:
    return {
        "type": "capability_version",
        "capability": str(capability.pk),
        "number": version.number,
        "description": version.description,
        "input_schema": version.input_schema,
        "output_schema": version.output_schema,
        "tags": version.tags,
        "permissions": {"hosts": version.hosts, "secrets": version.secrets},
        "examples": version.examples,
        "files": files_read(version.path),
        "checksum": version.checksum,
        "origin": version.origin,
        "untrusted": version.untrusted,
        "approved_at": version.approved_at.isoformat() if version.approved_at else None,
        "created_at": version.created_at.isoformat(),
    }
