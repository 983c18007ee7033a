"""Checks values against JSON schemas, of tools or of users, in bounded time: the JSON Schema library with what is unbounded
in it replaced. It is slow to load, so modules needed at start-up import this one where they use it."""

import json
import time
from collections.abc import Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import extend
from referencing.exceptions import Unresolvable

from apps.agent.tools.patterns import MAX_MATCHED_CHARS, PatternRefused, matcher
from apps.core.text import canonical_json, depth_of, objects_in

MESSAGE_CHARS = 300
MAX_INPUT_CHARS = 200_000
MAX_INPUT_DEPTH = 32
CHECK_SECONDS = 0.5
"""Of this thread's processor time: many alternatives on each of many items could take minutes."""
UNSUPPORTED = (
    "unevaluatedProperties",
    "unevaluatedItems",
)  # quadratic in the library, and matched by `re` there

TOO_LONG = "Checking the input against the schema takes too long. Give a smaller one."

_ends: ContextVar[float] = ContextVar("_ends")


class _Unchecked(Exception):
    """The message is a sentence that says why a value cannot be checked."""


def schema_problem(schema: dict[str, Any]) -> str:
    """Why this is no schema of draft 2020-12, "" where it is one; patterns are not looked at."""
    try:
        # Without formats: that of "pattern" would compile it with `re`, which can take very long by itself.
        Draft202012Validator.check_schema(schema, format_checker=None)  # type: ignore[arg-type]
    except SchemaError as error:
        return _sentence(error.absolute_path, error.message[:MESSAGE_CHARS])
    return ""


def schema_error(schema: dict[str, Any], value: Any) -> str:
    """The error in `value` as one sentence, or "" where it fits."""
    _ends.set(time.thread_time() + CHECK_SECONDS)
    try:
        error = best_match(_validator(json.dumps(schema, sort_keys=True)).iter_errors(value))
    except (RecursionError, Unresolvable):
        return "The input cannot be checked against the schema: it refers to itself."
    except OverflowError:
        return "The input holds a number that is too large to be checked against the schema."
    except PatternRefused as refusal:
        return f"The input cannot be checked: the schema has a pattern which {refusal}."
    except _Unchecked as reason:
        return str(reason)
    if error is None:
        return ""
    message = str(error.message).split("\n")[0]
    if len(message) > MESSAGE_CHARS:
        message = f"{message[:MESSAGE_CHARS]}…"
    return _sentence(error.absolute_path, message, quote="`")


def input_error(schema: dict[str, Any], value: Any) -> str:
    """The problem with an input of a capability in one sentence, "" where it fits: `schema_error`, bounded in size too."""
    if not isinstance(value, dict):
        return "The input must be a JSON object."
    if depth_of(value) > MAX_INPUT_DEPTH:
        return f"The input is nested more than {MAX_INPUT_DEPTH} levels deep."
    if len(canonical_json(value)) > MAX_INPUT_CHARS:
        return f"The input has more than {MAX_INPUT_CHARS:,} characters."
    if any(len(name) > MAX_MATCHED_CHARS for node in objects_in(value) for name in node):
        return f"A name in the input has more than {MAX_MATCHED_CHARS:,} characters."
    return schema_error(schema, value)


def _sentence(path: Any, message: str, *, quote: str = "") -> str:
    place = ".".join(str(part) for part in path)
    return (f"{quote}{place}{quote}: " if place else "") + message


def _pattern(_: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(value, str):
        return
    if len(value) > MAX_MATCHED_CHARS:
        length = f"has {len(value):,} characters; at most {MAX_MATCHED_CHARS:,}"
        yield ValidationError(f"{length} can be matched with a pattern")
    elif not matcher(pattern)(value):
        yield ValidationError(f"{value[:100]!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: dict[str, Any], value: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        for pattern, wanted in patterns.items():
            for name in value:
                if _name_matches(pattern, name):
                    yield from validator.descend(value[name], wanted, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, wanted: Any, value: Any, schema: dict[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    more = [
        name
        for name in value
        if name not in named and not any(_name_matches(each, name) for each in patterns)
    ]
    if wanted is False and more:
        names = ", ".join(repr(name[:MESSAGE_CHARS]) for name in more[:MESSAGE_CHARS])
        yield ValidationError(
            f"Additional properties are not allowed ({names} {'was' if len(more) == 1 else 'were'} unexpected)"
        )
    elif isinstance(wanted, dict):
        for name in more:
            yield from validator.descend(value[name], wanted, path=name)


def _name_matches(pattern: str, name: str) -> bool:
    _check_time()
    if len(name) > MAX_MATCHED_CHARS:
        raise _Unchecked(TOO_LONG)
    return matcher(pattern)(name)


def _unique(_: Any, wanted: bool, value: Any, schema: Any) -> Iterator[ValidationError]:
    if (
        wanted
        and isinstance(value, list)
        and len({json.dumps(item, sort_keys=True) for item in value}) < len(value)
    ):
        yield ValidationError("has an item twice")


def _check_time() -> None:
    if time.thread_time() > _ends.get():
        raise _Unchecked(TOO_LONG)


def _timed(check: Any) -> Any:
    def timed(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        _check_time()
        yield from check(validator, wanted, value, schema) or ()

    return timed


def _unsupported(_: Any, wanted: Any, value: Any, schema: dict[str, Any]) -> Iterator[ValidationError]:
    keyword = next(name for name in UNSUPPORTED if name in schema)
    raise _Unchecked(f"The input cannot be checked: the schema has {keyword}, which is not supported.")


_extend: Any = extend  # has no types
_CHECKS = {
    **Draft202012Validator.VALIDATORS,
    **dict.fromkeys(UNSUPPORTED, _unsupported),
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique,
}
_Validator: Any = _extend(Draft202012Validator, {name: _timed(check) for name, check in _CHECKS.items()})


@lru_cache(maxsize=256)
def _validator(schema: str) -> Draft202012Validator:
    validator: Draft202012Validator = _Validator(json.loads(schema))
    return validator
