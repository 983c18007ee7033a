"""The ids of the request, turn, build or job at work, kept beside the code that logs, for its lines of the log."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

NAMES = ("request", "job", "turn", "build", "conversation", "user")
"""The ids that a line may carry, in the order in which they are written."""

_ids: ContextVar[dict[str, str] | None] = ContextVar("log_ids", default=None)
_activity = logging.getLogger("apps.activity")


@contextmanager
def log_ids(**ids: object) -> Iterator[dict[str, str]]:
    """Every line written inside carries these ids (of NAMES) beside those from outside; None is left out.

    Tasks and pool threads that are started inside inherit them. Yields them, `log_ids_add` changes what was yielded.
    """
    known = (_ids.get() or {}) | {name: str(value) for name, value in ids.items() if value is not None}
    token = _ids.set(known)
    try:
        yield known
    finally:
        _ids.reset(token)


def log_ids_add(**ids: object) -> None:
    """Adds ids that become known later, for example the user once a token is read; nothing outside `log_ids`.

    They hold in every task and thread that shares the innermost `log_ids`: a view's thread tells the server's task so. It also
    tells it by `route`, which no line carries, which address of the site (as the URL configuration has it) was asked for; ""
    where another web process answers the request, and counts it.
    """
    if (known := _ids.get()) is not None:
        known.update((name, str(value)) for name, value in ids.items() if value is not None)


def log_ids_now() -> dict[str, str]:
    """The ids that a line written now would carry."""
    known = _ids.get() or {}
    return {name: known[name] for name in NAMES if name in known}


def log_activity(kind: str, text: str, **fields: object) -> None:
    """One line of what ended (`request`, `turn`, `build`, `job`), with figures of its own. See `logging_settings`."""
    if _activity.isEnabledFor(logging.INFO):
        _activity.getChild(kind).info(text, extra={"fields": fields})
