"""Working things out before a transaction that needs them.

A transaction that writes holds up all other writers. What takes long and needs no database (cutting a text into
passages, its words, its vector) is worked out before it begins, and found again inside.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

_results: ContextVar[dict[tuple[Hashable, ...], Any] | None] = ContextVar("beforehand", default=None)


@contextmanager
def beforehand() -> Iterator[None]:
    """Until its end `once` keeps what it works out; nothing is kept longer, since results hold people's words."""
    token = _results.set({})
    try:
        yield
    finally:
        _results.reset(token)


def once(function: Callable[..., T], *arguments: Hashable) -> T:
    """`function(*arguments)`, worked out a single time within `beforehand`. The result is shared: do not change it."""
    results = _results.get()
    if results is None:
        return function(*arguments)
    key = (function, *arguments)
    if key not in results:
        results[key] = function(*arguments)
    result: T = results[key]
    return result


def keep(result: object, function: Callable[..., object], *arguments: Hashable) -> None:
    """Within `beforehand`: `once` gives this for the function and its arguments, which was worked out elsewhere."""
    results = _results.get()
    if results is not None:
        results[(function, *arguments)] = result
