"""The JSON Schema library, with what is unbounded in it replaced. Imported where it is needed: it is slow to load."""

import json
import re
import time
from collections.abc import Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import extend
from referencing.exceptions import Unresolvable

from apps.agent.canonical import canonical_json

from .patterns import MATCHED_CHARS

MAX_MESSAGE_CHARS = 300
CHECK_SECONDS = 2.0
"""Of this thread's processor time, for one input: many alternatives, tried on each of many items, could take minutes."""

_ends: ContextVar[float] = ContextVar("_ends")


def schema_problem(schema: dict[str, Any]) -> str:
    """Why this is no schema of draft 2020-12, "" where it is one."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return _told(error.absolute_path, error.message[:MAX_MESSAGE_CHARS])
    return ""


def value_problem(schema: dict[str, Any], value: dict[str, Any]) -> str:
    """What is wrong with an input in one sentence, "" where it fits."""
    _ends.set(time.thread_time() + CHECK_SECONDS)
    try:
        error = best_match(_validator(canonical_json(schema)).iter_errors(value))
    except (RecursionError, Unresolvable):
        return "The input cannot be checked against the schema: it refers to itself."
    except OverflowError:
        return "The input holds a number that is too large to be checked against the schema."
    except _TooLongError:
        return "Checking the input against the schema takes too long. Give a smaller one."
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


class _TooLongError(Exception):
    pass


def _timed(check: Any) -> Any:
    def timed(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        if time.thread_time() > _ends.get():
            raise _TooLongError
        yield from check(validator, wanted, value, schema) or ()

    return timed


_extend: Any = extend  # has no types
_CHECKS = {**Draft202012Validator.VALIDATORS, "pattern": _pattern, "uniqueItems": _unique}
_Validator: Any = _extend(Draft202012Validator, {name: _timed(check) for name, check in _CHECKS.items()})


@lru_cache(maxsize=256)
def _validator(schema: str) -> Draft202012Validator:
    validator: Draft202012Validator = _Validator(json.loads(schema))
    return validator
