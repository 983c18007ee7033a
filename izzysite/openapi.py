"""Adds to the views' OpenAPI description how to sign in, and the one shape of errors."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerExtension
from drf_spectacular.plumbing import (
    append_meta,
    build_basic_type,
    build_choice_description_list,
    list_hash,
    resolve_type_hint,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from apps.agent.turn.events import EVENT_TYPES, Event
from apps.core.http.rest import Described
from apps.core.http.shapes import Checked, OpenInput, OrDefault, Query, Shape

ERROR_SCHEMA = {
    "type": "object",
    "required": ["code", "message", "extra"],
    "properties": {
        "code": {"type": "string", "description": "Stable, for programs.", "example": "not_found"},
        "message": {"type": "string", "description": "For people."},
        "extra": {
            "type": "object",
            "additionalProperties": True,
            "description": "Details, such as `field`.",
        },
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
    target_class = "apps.accounts.access.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "izzy_…"}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself
    target_class = "apps.accounts.access.BrowserSessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": "izzy_session"}


class ShapeDescription(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]  # registers itself
    """The shapes that validate and dump, as components."""

    target_class = "apps.core.http.rest.Described"

    def get_name(self, auto_schema: Any, direction: Any) -> str:
        return str(self.target.shape.__name__)

    def get_identity(self, auto_schema: Any, direction: Any) -> Any:
        return self.target.shape

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        shape: type[Shape] = self.target.shape
        properties = {
            field.alias or name: _field_schema(
                shape, field, lambda part: auto_schema.resolve_serializer(Described(part), direction).ref
            )
            for name, field in shape.model_fields.items()
        }
        if issubclass(shape, Query):  # where a parameter is absent there is no null
            for shown in properties.values():
                shown.pop("nullable", None)
        schema: dict[str, Any] = {"type": "object", "properties": properties, **shape.openapi}
        required = [
            field.alias or name for name, field in shape.model_fields.items() if field.is_required()
        ]
        if required and not self.target.partial:
            schema.setdefault("required", required)
        if shape.__dict__.get("__doc__"):
            schema["description"] = " ".join(str(shape.__doc__).split())
        if direction == "request" and shape.model_config.get("extra") == "forbid":
            schema["additionalProperties"] = False
        return schema


def _field_schema(shape: type[Shape], field: FieldInfo, component: Any) -> dict[str, Any]:
    schema = _schema(field.annotation, component, field.metadata)
    meta: dict[str, Any] = dict(field.json_schema_extra or {})  # type: ignore[arg-type]  # never a function here
    if field.description:
        choices = f"\n\n{schema['description']}" if "enum" in schema and "description" in schema else ""
        meta["description"] = field.description + choices
    if issubclass(shape, OpenInput) and field.default not in (None, PydanticUndefined):
        meta["default"] = field.default
    return append_meta(schema, meta)


def _schema(hint: Any, component: Any, marks: Iterable[Any] = ()) -> dict[str, Any]:
    """The OpenAPI 3.0 schema of a field's type with its bounds."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _schema(parts[0], component, [*parts[1:], *marks])
    if origin in (Union, UnionType):
        (kind,) = [part for part in parts if part is not NoneType]
        return append_meta(_schema(kind, component, marks), {"nullable": True})
    if own := [mark.schema for mark in marks if isinstance(mark, Checked)]:
        return dict(_written(own[0], component))
    schema = _plain_schema(hint, origin, parts, component)
    if OrDefault in marks:
        schema["nullable"] = True
    sizes = "Items" if origin is list else "Length"
    names = {"ge": "minimum", "le": "maximum", "min_length": f"min{sizes}", "max_length": f"max{sizes}"}
    for mark in marks:
        schema |= {
            name: value for key, name in names.items() if (value := getattr(mark, key, None)) is not None
        }
    return schema


def _written(part: Any, component: Any) -> Any:
    """A description written out, in which types may stand for theirs."""
    if isinstance(part, Mapping):
        return {name: _written(value, component) for name, value in part.items()}
    if isinstance(part, list):
        return [_written(value, component) for value in part]
    return part if isinstance(part, str | int | float | None) else _schema(part, component)


def _plain_schema(hint: Any, origin: Any, parts: tuple[Any, ...], component: Any) -> dict[str, Any]:
    if origin is list:
        return {"type": "array", "items": _schema(parts[0], component)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(parts[1], component)}
    if hint is Any:
        return {}
    if origin is Literal:
        return _choices_schema([(value, value) for value in parts])
    if issubclass(hint, Enum):
        return _choices_schema(getattr(hint, "choices", [(each.value, each.value) for each in hint]))
    if issubclass(hint, Shape):
        return dict(component(hint))
    return dict(build_basic_type(hint) or {})


def _choices_schema(choices: list[tuple[Any, Any]]) -> dict[str, Any]:
    return {
        "type": "string",
        "enum": [value for value, _ in choices],
        "description": build_choice_description_list(choices),
        "x-spec-enum-id": list_hash(choices),
    }


def complete(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Post-processing hook: adds the shape of errors and of a turn's events, and to each operation the statuses of its errors,
    whether it needs its body, the parameters of pages, its summary in a line, and its kind."""
    schemas = result.setdefault("components", {}).setdefault("schemas", {})
    names = {f"{event.__name__}Event": event for event in EVENT_TYPES.values()}
    schemas |= {name: _event_schema(event) for name, event in names.items()}
    references = [{"$ref": f"#/components/schemas/{name}"} for name in names]
    schemas["TurnEvent"] = {"oneOf": references, "discriminator": {"propertyName": "type"}}
    schemas["Error"] = ERROR_SCHEMA
    for path, operations in result.get("paths", {}).items():
        for method, operation in operations.items():
            # A body of which something is required cannot be left out.
            if {"required", "oneOf", "anyOf"} & set(
                schemas.get(_component(operation.get("requestBody", {})), ())
            ):
                operation["requestBody"]["required"] = True
            if is_page := _component(operation["responses"].get("200", {})).endswith("Page"):
                operation["parameters"] = [*operation.get("parameters", []), *PAGE_PARAMETERS]
            for status, text in _errors_of(path, method, operation, is_page).items():
                operation["responses"].setdefault(status, {"description": text})
            for status, response in operation["responses"].items():
                if status >= "400":
                    response.setdefault("content", ERROR_CONTENT)
            operation["tags"] = [path.removeprefix("/api/v1/").partition("/")[0]]
            sentence, rest = _parted(operation.pop("description", ""))
            operation.setdefault("summary", sentence)
            if rest:
                operation["description"] = rest
    return result


def _component(message: dict[str, Any]) -> str:
    """The name of the component that a request or a response is, "" for none."""
    reference = message.get("content", {}).get("application/json", {}).get("schema", {}).get("$ref", "")
    return str(reference).rpartition("/")[2]


def _errors_of(path: str, method: str, operation: dict[str, Any], is_page: bool) -> dict[str, str]:
    found = ANY | ANY_TROUBLE
    parameters = operation.get("parameters", [])
    names_row = any(each["schema"].get("format") == "uuid" for each in parameters)
    if "{" in path or names_row or "requestBody" in operation or is_page:
        found |= NAMED  # a body may name rows too, and a page may lie behind the last
    if "requestBody" in operation:
        found |= CHECKED | WITH_BODY
    elif parameters:
        found |= CHECKED
    return found if method == "get" else found | CHANGES


def _event_schema(event: type[Event]) -> dict[str, Any]:
    where = {
        "type": {"type": "string", "enum": [event.type]},
        "conversation": {"type": "string", "format": "uuid"},
        "turn": {"type": "string", "format": "uuid"},
        "seq": {"type": "integer", "description": "Grows within the conversation."},
    }
    hints = get_type_hints(event)
    own = [item for item in fields(event) if item.name != "type"]
    types = {item.name: resolve_type_hint(hints[item.name]) for item in own}  # type: ignore[no-untyped-call]
    always = [*where, *(item.name for item in own if not item.metadata.get("where_set"))]
    text = " ".join((event.__doc__ or "").split())
    return {"type": "object", "description": text, "required": always, "properties": where | types}


def _parted(text: str) -> tuple[str, str]:
    """The first sentence as a plain line, and what else there is to say, without the line breaks of the source."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    sentence, _, rest = paragraphs[0].partition(". ")
    more = [part for part in (rest, *paragraphs[1:]) if part]
    return sentence.rstrip(".;").replace("`", ""), "\n\n".join(more)
