"""What the OpenAPI description says beyond the views: how to sign in, and the one shape of errors."""

import re
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension

ERROR_SCHEMA = {
    "type": "object",
    "required": ["code", "message", "extra"],
    "properties": {
        "code": {"type": "string", "description": "Stable, for programs.", "example": "not_found"},
        "message": {"type": "string", "description": "For people."},
        "extra": {"type": "object", "additionalProperties": True, "description": "Details, such as `field`."},
    },
}
ERROR_RESPONSE = {
    "description": "What went wrong, for every status from 400 on.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}

VERBS = {"get": "read", "post": "add to", "patch": "change", "delete": "delete"}


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself
    target_class = "apps.accounts.api_auth.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "izzy_…"}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself
    target_class = "apps.accounts.api_auth.BrowserSessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": "izzy_session"}


def add_errors(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Post-processing hook: every operation may answer with the error shape."""
    result.setdefault("components", {}).setdefault("schemas", {})["Error"] = ERROR_SCHEMA
    for operations in result.get("paths", {}).values():
        for operation in operations.values():
            operation["responses"].setdefault("default", ERROR_RESPONSE)
    return result


def add_summaries(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Post-processing hook: each operation says in a line what it does, and stands with those of its kind."""
    for path, operations in result.get("paths", {}).items():
        kind = path.removeprefix("/api/v1/").partition("/")[0]
        for method, operation in operations.items():
            operation["tags"] = [kind]
            first = operation.get("description", "").strip().split("\n\n")[0].replace("\n", " ")
            sentence = re.sub(r"^`[^`]*`(: )?", "", first).split(". ")[0].rstrip(".;")
            verb = "list" if method == "get" and not path.endswith("}/") else VERBS.get(method, method)
            operation.setdefault("summary", upper_first(sentence or f"{verb} {kind}"))
    return result


def upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]
