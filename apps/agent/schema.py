"""Checks a tool call's input against the tool's JSON schema."""

import json
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from apps.agent.canonical import canonical_json
from apps.agent.results import truncated

MESSAGE_CHARS = 300


def schema_error(schema: dict[str, Any], value: Any) -> str:
    """What is wrong with `value` in one sentence, or "" where it fits."""
    error = best_match(_validator(canonical_json(schema)).iter_errors(value))
    if error is None:
        return ""
    return f"{_place(error)}{_message(error)}"


@lru_cache(maxsize=256)
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema))


def _place(error: ValidationError) -> str:
    path = ".".join(str(part) for part in error.absolute_path)
    return f"`{path}`: " if path else ""


def _message(error: ValidationError) -> str:
    return truncated(str(error.message), MESSAGE_CHARS).split("\n")[0]
