"""Rows as REST gives them."""

from typing import Any

from .files import FILES, files_read, files_verified
from .models import Capability, CapabilityVersion, Execution
from .refusals import CapabilityRefused
from .selectors import retire_reason, success_rate, version_waiting, versions_of


def capability_json(capability: Capability) -> dict[str, Any]:
    """A capability as lists hold it."""
    current = capability.current
    rate = success_rate(capability)
    return {
        "id": str(capability.pk),
        "name": capability.name,
        "description": capability.description,
        "status": capability.status,
        "status_reason": capability.status_reason,
        "version": current.number if current else None,
        "needs_approval": bool(current and current.needs_approval),
        "approved": bool(current and current.is_approved),
        "input_schema": capability.input_schema,
        "output_schema": capability.output_schema,
        "tags": capability.tags,
        "permissions": permissions_json(current),
        "path": capability.path,
        "runs": capability.runs,
        "success_rate": None if rate is None else round(rate, 3),
        "last_run_at": _time(capability.last_run_at),
        "retire_reason": retire_reason(capability),
        "created_at": _time(capability.created_at),
        "updated_at": _time(capability.updated_at),
    }


def capability_detail_json(capability: Capability) -> dict[str, Any]:
    """A capability with its files, as they are on disk now, its examples and its versions."""
    current, waiting = capability.current, version_waiting(capability)
    return {
        **capability_json(capability),
        "files": files_read(current.path) if current else dict.fromkeys(FILES, ""),
        "tampered": bool(current and is_tampered(current, capability.name)),
        "examples": current.examples if current else [],
        "waiting_version": waiting.number if waiting else None,
        "versions": [version_json(version, capability) for version in versions_of(capability)],
    }


def is_tampered(version: CapabilityVersion, name: str) -> bool:
    """Whether a file of the version is not the one that was saved."""
    try:
        files_verified(version, name)
    except CapabilityRefused:
        return True
    return False


def version_json(version: CapabilityVersion, capability: Capability) -> dict[str, Any]:
    return {
        "version": version.number,
        "current": version.pk == capability.current_id,
        "description": version.description,
        "permissions": permissions_json(version),
        "needs_approval": version.needs_approval,
        "approved": version.is_approved,
        "approved_at": _time(version.approved_at),
        "checksum": version.checksum,
        "origin": version.origin,
        "tested_at": _time(version.tested_at),
        "test_failures": version.test_failures,
        "created_at": _time(version.created_at),
    }


def permissions_json(version: CapabilityVersion | None) -> dict[str, list[str]]:
    return {"hosts": version.hosts if version else [], "secrets": version.secrets if version else []}


def run_json(execution: Execution) -> dict[str, Any]:
    """The answer to a run that began."""
    ok = execution.state == Execution.State.OK
    return {
        "ok": ok,
        "result": execution.result if ok else None,
        "error": None if ok else {"code": execution.error_code, "message": execution.error_message},
        "stdout": execution.stdout,
        "duration_ms": execution.duration_ms,
        "execution_id": str(execution.pk),
    }


def execution_json(execution: Execution) -> dict[str, Any]:
    """A past run."""
    return {
        "id": str(execution.pk),
        "version": execution.version,
        "state": execution.state,
        "trigger": execution.trigger,
        "input": execution.input,
        **{name: value for name, value in run_json(execution).items() if name != "execution_id"},
        "stderr": execution.stderr,
        "backend": execution.backend,
        "created_at": _time(execution.created_at),
        "finished_at": _time(execution.finished_at),
    }


def _time(value: Any) -> str | None:
    return value.isoformat() if value else None
