"""Reading the bodies of REST requests."""

from collections.abc import Collection, Mapping
from typing import Any

from rest_framework.request import Request

from apps.core.errors import InvalidInput

from .drafts import MAIN, REQUIREMENTS, RUN_MD, clean_permissions

FILE_FIELDS = {MAIN: "main", REQUIREMENTS: "requirements", RUN_MD: "run_md"}
DRAFT_FIELDS = ("description", "input_schema", "output_schema", "tags", "examples", "files", "permissions")
WRITABLE = ("name", *DRAFT_FIELDS)


def body_of(request: Request, allowed: Collection[str]) -> dict[str, Any]:
    """The body, a JSON object with no other fields; null is the same as absent."""
    data = request.data
    if not isinstance(data, Mapping):
        raise InvalidInput("The body must be a JSON object.", code="wrong_type")
    if unknown := sorted(set(data) - set(allowed)):
        message = f"{unknown[0][:100]!r} is no field here. There are: {', '.join(allowed) or 'none'}."
        raise InvalidInput(message, code="unknown_field", field=unknown[0][:100])
    return {name: value for name, value in data.items() if value is not None}


def draft_parts(body: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a `Draft` that a body gives, not yet checked."""
    parts = {
        name: body[name]
        for name in ("description", "input_schema", "output_schema", "tags", "examples")
        if name in body
    }
    if "files" in body:
        parts |= _files(body["files"])
    if "permissions" in body:
        parts["hosts"], parts["secrets"] = clean_permissions(body["permissions"])
    return parts


def optional_version(body: Mapping[str, Any]) -> int | None:
    """The `version` of a body: a whole number from 1."""
    value = body.get("version")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
        raise InvalidInput("version must be a whole number from 1.", code="wrong_type", field="version")
    return value


def _files(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput("files is an object from names to texts.", code="wrong_type", field="files")
    if unknown := sorted(set(value) - set(FILE_FIELDS)):
        message = f"{unknown[0][:100]!r} is no file of a capability. There are: {', '.join(FILE_FIELDS)}."
        raise InvalidInput(message, code="unknown_file", field="files")
    given = {FILE_FIELDS[name]: text for name, text in value.items() if text is not None}
    if wrong := [name for name, text in value.items() if text is not None and not isinstance(text, str)]:
        raise InvalidInput(f"{wrong[0]} must be text.", code="wrong_type", field="files")
    return given
