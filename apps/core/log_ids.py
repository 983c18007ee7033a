"""The ids of the request, turn, build or job at work, kept beside the code that logs, for its lines of the log."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

NAMES = ("request", "job", "turn", "build", "conversation", "user")
"""The ids that a line may carry, in the order in which they are written."""

_ids: ContextVar[dict[str, str] | None] = ContextVar("log_ids", default=None)
_activity = logging.getLogger("apps.activity")


@contextmanager
def log_ids(**ids: object) -> Iterator[None]:
    """Every line written inside carries these ids (of NAMES) beside those from outside; None is left out.

    Tasks and pool threads that are started inside inherit them.
    """
    token = _ids.set({**(_ids.get() or {}), **_texts(ids)})
    try:
        yield
    finally:
        _ids.reset(token)


def log_ids_add(**ids: object) -> None:
    """Adds ids that become known later, for example the user once a token is read; nothing outside `log_ids`.

    They hold in every task and thread that shares the innermost `log_ids`: a view's thread tells the server's task so.
    """
    if (known := _ids.get()) is not None:
        known.update(_texts(ids))


def log_ids_now() -> dict[str, str]:
    """The ids that a line written now would carry."""
    known = _ids.get() or {}
    return {name: known[name] for name in NAMES if name in known}


def log_activity(kind: str, text: str, **fields: object) -> None:
    """One line of what ended (`request`, `turn`, `build`, `job`), with figures of its own. See `logging_settings`."""
    if _activity.isEnabledFor(logging.INFO):
        _activity.getChild(kind).info(text, extra={"fields": fields})


def _texts(ids: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in ids.items() if value is not None}
