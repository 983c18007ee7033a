"""Sweeps: periodic upkeep that the worker runs, registered by the apps in `AppConfig.ready`.

Rows are the queue: a sweep finds again whatever a crash left undone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Sweep:
    name: str
    function: Callable[[], None]
    every: timedelta


_sweeps: dict[str, Sweep] = {}


def register_sweep(name: str, function: Callable[[], None], every: timedelta) -> None:
    """Have the worker call `function` (synchronous, idempotent, quick when nothing is due) every so often.

    It runs first right after the worker's start. What it raises is logged and does not stop the others.
    Registering a name again replaces it.
    """
    _sweeps[name] = Sweep(name, function, every)


def sweeps() -> list[Sweep]:
    return sorted(_sweeps.values(), key=lambda sweep: sweep.name)
