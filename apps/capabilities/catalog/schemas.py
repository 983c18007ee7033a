"""JSON schemas: which ones the input and the output of a capability may have."""

import re
from typing import Any

from apps.agent.tools.patterns import pattern_problem
from apps.core.errors import InvalidInput, TooLarge
from apps.core.text import canonical_json, depth_of, objects_in

MAX_SCHEMA_CHARS = 20_000
MAX_SCHEMA_DEPTH = 12
MAX_EXPANDED = 3_000
MAX_PROPERTIES = 100
MAX_PATTERNS = 50
DIALECT = "https://json-schema.org/draft/2020-12/schema"
PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
COMBINATORS = ("oneOf", "allOf", "anyOf")
STRUCTURE = {
    "type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems",
    "maxItems", "uniqueItems",
}  # fmt: skip
"""The keywords of a schema that take no words."""
FOREIGN = ("$dynamicRef", "$dynamicAnchor", "$anchor", "$id", "$vocabulary")


def clean_schema(value: object, *, field: str = "input_schema") -> dict[str, Any]:
    """A schema that the Messages API takes for a tool. Raises InvalidInput (`invalid_schema`) or TooLarge."""
    if not isinstance(value, dict):
        raise _wrong("must be a JSON object", field)
    if depth_of(value) > MAX_SCHEMA_DEPTH:
        raise _wrong(f"is nested more than {MAX_SCHEMA_DEPTH} levels deep", field)
    size = len(canonical_json(value))
    if size > MAX_SCHEMA_CHARS:
        message = f"{field} has {size:,} characters; at most {MAX_SCHEMA_CHARS:,} are accepted."
        raise TooLarge(message, field=field, limit=MAX_SCHEMA_CHARS)
    _check_top(value, field)
    from apps.agent.tools.schema import (  # loading jsonschema takes a tenth of a second
        UNSUPPORTED,
        schema_problem,
    )

    if problem := schema_problem(value):
        raise _wrong(f"is no valid schema: {problem}", field)
    for node in objects_in(value):
        if found := [name for name in UNSUPPORTED if name in node]:
            raise _wrong(f"must not use {found[0]}, which is not supported", field)
        _check_node(node, field)
    _check_patterns(value, field)
    _check_references(value, field)
    return value


def clean_output_schema(value: object) -> dict[str, Any]:
    """Like an input's; {} where nothing is said about the result."""
    return clean_schema(value, field="output_schema") if value else {}


def with_words_of(known: Any, schema: dict[str, Any]) -> dict[str, Any]:
    """Names, types and limits of `schema`, with the words (descriptions, titles, choices, defaults) of `known`, part by part: what
    that does not say is left out."""
    made: dict[str, Any] = {}
    if not isinstance(known, dict):  # a part may be true or false, or not be there
        known = {}
    for name, value in schema.items():
        if name in STRUCTURE:
            made[name] = value
        elif name == "properties" and isinstance(value, dict):
            had = known.get("properties")
            had = had if isinstance(had, dict) else {}
            made[name] = {
                each: with_words_of(had.get(each), part)
                for each, part in value.items()
                if PROPERTY.fullmatch(each) and isinstance(part, dict)
            }
        elif name == "items" and isinstance(value, dict):
            made[name] = with_words_of(known.get("items"), value)
        elif name == "additionalProperties" and isinstance(value, bool):
            made[name] = value
        elif name in known:
            made[name] = known[name]
    if isinstance(wanted := schema.get("required"), list):
        made["required"] = [each for each in wanted if each in made.get("properties", {})]
    return made


def _wrong(what: str, field: str) -> InvalidInput:
    return InvalidInput(f"{field} {what}.", code="invalid_schema", field=field)


def _check_top(schema: dict[str, Any], field: str) -> None:
    if schema.get("type") != "object":
        raise _wrong('must have "type": "object" at its top', field)
    if found := [name for name in (*COMBINATORS, "$ref", "enum", "not") if name in schema]:
        raise _wrong(f"must not have {found[0]} at its top; describe one object with properties", field)
    if str(schema.get("$schema", DIALECT)).rstrip("#") != DIALECT:
        raise _wrong("must be of draft 2020-12", field)
    if isinstance(properties := schema.get("properties"), dict):
        if len(properties) > MAX_PROPERTIES:
            raise _wrong(f"has more than {MAX_PROPERTIES} properties", field)
        if odd := [name for name in properties if not PROPERTY.fullmatch(name)]:
            raise _wrong(
                f"has a property {odd[0][:80]!r}: names have up to 64 letters, digits, _, . and -", field
            )


def _check_node(node: dict[str, Any], field: str) -> None:
    if found := [name for name in FOREIGN if isinstance(node.get(name), str)]:
        raise _wrong(f"must not use {found[0]}", field)
    reference = node.get("$ref")
    if isinstance(reference, str) and not reference.startswith("#/$defs/"):
        raise _wrong('may refer to its own "#/$defs/…" only', field)


def _check_patterns(schema: dict[str, Any], field: str) -> None:
    patterns = [node["pattern"] for node in objects_in(schema) if isinstance(node.get("pattern"), str)]
    for node in objects_in(schema):
        if isinstance(node.get("patternProperties"), dict):
            patterns += node["patternProperties"]
    if len(set(patterns)) > MAX_PATTERNS:
        raise _wrong(f"has more than {MAX_PATTERNS} different patterns", field)
    for pattern in patterns:
        if problem := pattern_problem(pattern):
            raise _wrong(f"has the pattern {pattern[:80]!r}, which {problem}", field)


def _check_references(schema: dict[str, Any], field: str) -> None:
    """Refuses references that lead nowhere or in a circle, and such as multiply into a huge schema."""
    sizes: dict[str, int] = {}

    def size(node: Any, above: tuple[str, ...]) -> int:
        if isinstance(node, list):
            return 1 + sum(size(item, above) for item in node)
        if not isinstance(node, dict):
            return 1
        total = 1 + sum(size(item, above) for name, item in node.items() if name != "$defs")
        reference = node.get("$ref")
        return total + referred(reference, above) if isinstance(reference, str) else total

    def referred(reference: str, above: tuple[str, ...]) -> int:
        if reference in above:
            raise _wrong("refers to itself; describe nested values to a fixed depth", field)
        if reference not in sizes:
            name = reference.removeprefix("#/$defs/")
            definitions = schema.get("$defs")
            if not isinstance(definitions, dict) or name not in definitions:
                raise _wrong(f"refers to {reference[:80]!r}, which is not there", field)
            sizes[reference] = size(definitions[name], (*above, reference))
        return sizes[reference]

    if size(schema, ()) > MAX_EXPANDED:
        raise _wrong("becomes too large when its references are followed", field)
