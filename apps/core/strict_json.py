"""JSON as its standard has it, without what Python reads beyond it."""

import json
import math
from typing import Any


def strict_loads(text: str) -> Any:
    """The value of a JSON text. Raises ValueError for anything else, NaN, the infinities and numbers beyond a float's
    range included (no database and no other parser takes them back), and RecursionError for about 1,000 levels."""
    return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits[:20]} is out of range")
    return value
