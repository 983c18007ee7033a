"""Reads request bodies."""

from typing import Any

from rest_framework.request import Request

from apps.core.errors import InvalidInput


def body_of(request: Request) -> dict[str, Any]:
    """The body's JSON object. InvalidInput for any other JSON."""
    if not isinstance(request.data, dict):
        raise InvalidInput("The body must be a JSON object.", code="wrong_type")
    return request.data


def flag(body: dict[str, Any], name: str, default: bool | None) -> bool | None:
    """A true or false; `default` where it is missing. InvalidInput for anything else, null too."""
    if name not in body:
        return default
    value = body[name]
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} must be true or false.", code="wrong_type", field=name)
    return value
