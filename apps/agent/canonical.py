"""Canonical JSON: the same value is always the same text, whatever order its keys were read back in."""

import json
from typing import Any


def canonical_json(value: Any) -> str:
    """`value` as JSON text with sorted keys and no spaces; what chat stores of the blocks it sends."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical(value: Any) -> Any:
    """A copy of `value` with the keys of every object sorted."""
    return json.loads(canonical_json(value))
