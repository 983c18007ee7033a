"""The JSON schema of a tool's input, read from the dataclass that its function takes.

A field's type says what kind of value it is; in `Annotated`, a string describes it and a dict adds keywords of JSON Schema.
"""

from dataclasses import MISSING, fields
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

KINDS = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array"}


def input_schema(arguments: Any) -> dict[str, Any]:
    """The schema of an object with the fields of this dataclass and no others; those without a default are required."""
    hints = get_type_hints(arguments, include_extras=True)
    return {
        "type": "object",
        "properties": {field.name: _schema(hints[field.name]) for field in fields(arguments)},
        "required": [
            field.name
            for field in fields(arguments)
            if field.default is MISSING and field.default_factory is MISSING
        ],
        "additionalProperties": False,
    }


def _schema(hint: Any) -> dict[str, Any]:
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind is Annotated:
        schema = _schema(parts[0])
        for note in parts[1:]:
            schema |= {"description": note} if isinstance(note, str) else note
        return schema
    if kind in (
        Union,
        UnionType,
    ):  # `… | None`: None stands for a field that was left out, and is not accepted itself
        return _schema(next(part for part in parts if part is not NoneType))
    if kind is Literal:
        return {"enum": list(parts)}
    items = {"items": _schema(parts[0])} if kind is list else {}
    return {"type": KINDS[kind], **items}
