"""Asks an encoder with a deadline: whoever waits goes on without it, and the answer may still come."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from apps.search.embedders.base import EmbedderDown, Matrix

ANSWER_SECONDS = 0.75
"""A request waits so long, once: the bundled vectors answer without the encoder."""
LATE_SECONDS = 60.0
"""So long an encoder that owes an answer is not asked again: it may be loading its model."""

_late: dict[str, float] = {}


def answered_within(seconds: float, name: str, ask: Callable[[], Matrix]) -> Matrix:
    """The answer of `ask`. Raises what it raises, or EmbedderDown after that time; it then runs on in its thread."""
    answer: Future[Matrix] = Future()

    def work() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:  # noqa: BLE001 - raised where the answer is waited for
            answer.set_exception(error)
        _late.pop(name, None)

    # No pool: its threads would keep a process from ending until the encoder has answered.
    try:
        threading.Thread(target=work, name=f"encoder {name}", daemon=True).start()
    except RuntimeError as error:  # the system allows no more
        raise EmbedderDown(f"{name} cannot be asked: {error}") from error
    try:
        return answer.result(seconds)
    except TimeoutError:
        _late[name] = time.monotonic()
        if answer.done():
            _late.pop(name, None)
        raise EmbedderDown(f"{name} did not answer within {seconds:g} seconds.") from None


def is_late(name: str) -> bool:
    """Whether an encoder still owes an answer that nobody waits for any more."""
    return time.monotonic() - _late.get(name, -LATE_SECONDS) < LATE_SECONDS
