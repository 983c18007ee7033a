"""Functions that fail."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def fails_first(function: Callable[P, T], error: Exception | None = None) -> Callable[P, T]:
    """The function, whose first call fails; ValueError("broken") where no other error is given."""
    broken = [error or ValueError("broken")]

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if broken:
            raise broken.pop()
        return function(*args, **kwargs)

    return call
