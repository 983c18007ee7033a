"""What the OpenAPI description says beyond the views: how to sign in, and the one shape of errors."""

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
    """Post-processing hook: every operation may answer with the error shape, also where it says what an error means."""
    result.setdefault("components", {}).setdefault("schemas", {})["Error"] = ERROR_SCHEMA
    for operations in result.get("paths", {}).values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if status >= "400":
                    response.setdefault("content", ERROR_RESPONSE["content"])
            operation["responses"].setdefault("default", ERROR_RESPONSE)
    return result


def add_summaries(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Post-processing hook: each operation says in a line what it does, and stands with those of its kind."""
    for path, operations in result.get("paths", {}).items():
        kind = path.removeprefix("/api/v1/").partition("/")[0]
        for operation in operations.values():
            operation["tags"] = [kind]
            sentence, rest = _parted(operation.pop("description", ""))
            operation.setdefault("summary", sentence)
            if rest:
                operation["description"] = rest
    return result


def _parted(text: str) -> tuple[str, str]:
    """The first sentence as a plain line, and what else there is to say, without the line breaks of the source."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    sentence, _, rest = paragraphs[0].partition(". ")
    more = [part for part in (rest, *paragraphs[1:]) if part]
    return sentence.rstrip(".;").replace("`", ""), "\n\n".join(more)
