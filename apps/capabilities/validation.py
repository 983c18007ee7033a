"""The JSON Schema library, with what is unbounded in it replaced. Imported where it is needed: it is slow to load."""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import extend
from referencing.exceptions import Unresolvable

from apps.agent.canonical import canonical_json

from .patterns import MATCHED_CHARS

MAX_MESSAGE_CHARS = 300


def schema_problem(schema: dict[str, Any]) -> str:
    """Why this is no schema of draft 2020-12, "" where it is one."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return _told(error.absolute_path, error.message[:MAX_MESSAGE_CHARS])
    return ""


def value_problem(schema: dict[str, Any], value: dict[str, Any]) -> str:
    """What is wrong with an input in one sentence, "" where it fits."""
    try:
        error = best_match(_validator(canonical_json(schema)).iter_errors(value))
    except (RecursionError, Unresolvable):
        return "The input cannot be checked against the schema: it refers to itself."
    if error is None:
        return ""
    message = str(error.message).split("\n")[0]
    if len(message) > MAX_MESSAGE_CHARS:
        message = f"{message[:MAX_MESSAGE_CHARS]}…"
    return _told(error.absolute_path, message, quote="`")


def _told(path: Any, message: str, *, quote: str = "") -> str:
    place = ".".join(str(part) for part in path)
    return (f"{quote}{place}{quote}: " if place else "") + message


def _pattern(_: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(value, str):
        return
    if len(value) > MATCHED_CHARS:
        yield ValidationError(
            f"has {len(value):,} characters; at most {MATCHED_CHARS} can be matched with a pattern"
        )
    elif not re.search(pattern, value):
        yield ValidationError(f"{value[:100]!r} does not match {pattern!r}")


def _unique(_: Any, wanted: bool, value: Any, schema: Any) -> Iterator[ValidationError]:
    if (
        wanted
        and isinstance(value, list)
        and len({json.dumps(item, sort_keys=True) for item in value}) < len(value)
    ):
        yield ValidationError("has an item twice")


_extend: Any = extend  # has no types
_Validator: Any = _extend(Draft202012Validator, {"pattern": _pattern, "uniqueItems": _unique})


@lru_cache(maxsize=256)
def _validator(schema: str) -> Draft202012Validator:
    validator: Draft202012Validator = _Validator(json.loads(schema))
    return validator
