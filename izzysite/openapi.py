"""What the OpenAPI description says beyond the views: how to sign in, and the one shape of errors."""

from dataclasses import fields
from typing import Any, get_type_hints

from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerExtension
from drf_spectacular.plumbing import resolve_type_hint

from apps.agent.events import EVENT_TYPES, Event
from apps.core.rest_views import ClosedInput

ERROR_SCHEMA = {
    "type": "object",
    "required": ["code", "message", "extra"],
    "properties": {
        "code": {"type": "string", "description": "Stable, for programs.", "example": "not_found"},
        "message": {"type": "string", "description": "For people."},
        "extra": {"type": "object", "additionalProperties": True, "description": "Details, such as `field`."},
    },
}
ERROR_CONTENT = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
ANY = {
    "401": "No credentials, or none that are valid.",
    "403": "The token lacks the scope.",
    "429": "Too many requests.",
}
ANY_TROUBLE = {"503": "Izzy cannot do it at the moment, such as on a full disk."}
NAMED = {"404": "There is no such row of yours."}
CHECKED = {"400": "A parameter or the body is wrong; `extra.field` names it."}
WITH_BODY = {"413": "Larger than is accepted.", "415": "Of a content type that is not read."}
CHANGES = {"409": "It does not fit the present state; `code` says why."}
PAGE_PARAMETERS = [
    {"name": "page", "in": "query", "schema": {"type": "integer", "minimum": 1}},
    {
        "name": "page_size",
        "in": "query",
        "schema": {"type": "integer", "minimum": 1},
        "description": "At most 200; more is taken for 200.",
    },
]


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


class InputShape(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]  # registers itself
    """Bodies as the server takes them."""

    target_class = "apps.core.rest_views.OpenInput"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema: dict[str, Any] = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        if not type(self.target).__doc__:  # that of a class above was taken
            schema.pop("description", None)
        if direction == "request":
            schema |= self.target.openapi
            if isinstance(self.target, ClosedInput):
                schema["additionalProperties"] = False
        return schema


def add_errors(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Post-processing hook: every operation names the statuses of its errors, all of one shape."""
    result.setdefault("components", {}).setdefault("schemas", {})["Error"] = ERROR_SCHEMA
    for path, operations in result.get("paths", {}).items():
        for method, operation in operations.items():
            for status, text in _errors_of(path, method, operation).items():
                operation["responses"].setdefault(status, {"description": text})
            for status, response in operation["responses"].items():
                if status >= "400":
                    response.setdefault("content", ERROR_CONTENT)
    return result


def _errors_of(path: str, method: str, operation: dict[str, Any]) -> dict[str, str]:
    found = ANY | ANY_TROUBLE
    if "{" in path or "requestBody" in operation or _is_page(operation):
        found |= NAMED  # a body may name rows too, and a page may lie behind the last
    if "requestBody" in operation:
        found |= CHECKED | WITH_BODY
    elif operation.get("parameters"):
        found |= CHECKED
    return found if method == "get" else found | CHANGES


def add_needs(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Post-processing hook: a body of which something is required cannot be left out."""
    schemas = result.get("components", {}).get("schemas", {})
    for operations in result.get("paths", {}).values():
        for operation in operations.values():
            body = operation.get("requestBody", {})
            name = body.get("content", {}).get("application/json", {}).get("schema", {}).get("$ref", "")
            if {"required", "oneOf", "anyOf"} & set(schemas.get(name.rpartition("/")[2], ())):
                body["required"] = True
    return result


def add_pages(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Post-processing hook: what is answered page by page takes the parameters of pages."""
    for operations in result.get("paths", {}).values():
        for operation in operations.values():
            if _is_page(operation):
                operation["parameters"] = [*operation.get("parameters", []), *PAGE_PARAMETERS]
    return result


def _is_page(operation: dict[str, Any]) -> bool:
    content = operation["responses"].get("200", {}).get("content", {})
    return str(content.get("application/json", {}).get("schema", {}).get("$ref", "")).endswith("Page")


def add_events(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Post-processing hook: the events of a turn, as streams and the websocket carry them."""
    schemas = result.setdefault("components", {}).setdefault("schemas", {})
    names = [f"{event.__name__}Event" for event in EVENT_TYPES]
    for name, event in zip(names, EVENT_TYPES, strict=True):
        schemas[name] = _event_schema(event)
    references = [{"$ref": f"#/components/schemas/{name}"} for name in names]
    schemas["TurnEvent"] = {"oneOf": references, "discriminator": {"propertyName": "type"}}
    return result


def _event_schema(event: type[Event]) -> dict[str, Any]:
    where = {
        "type": {"type": "string", "enum": [event.type]},
        "conversation": {"type": "string", "format": "uuid"},
        "turn": {"type": "string", "format": "uuid"},
        "seq": {"type": "integer", "description": "Grows within the conversation."},
    }
    hints = get_type_hints(event)
    own = [item for item in fields(event) if item.name != "type"]
    properties = where | {item.name: _type_schema(hints[item.name]) for item in own}
    always = [*where, *(item.name for item in own if not item.metadata.get("where_set"))]
    text = " ".join((event.__doc__ or "").split())
    return {"type": "object", "description": text, "required": always, "properties": properties}


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


def _type_schema(hint: Any) -> dict[str, Any]:
    found: dict[str, Any] = resolve_type_hint(hint)  # type: ignore[no-untyped-call]
    return found
