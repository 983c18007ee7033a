"""The checks of `izzy doctor`. Other parts add checks by a function in PROVIDERS."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from izzy_cli.client import Client

PROVIDERS = ("izzy_cli.hooks.doctor:checks",)
"""Functions `(client: Client) -> Iterable[Check]`, called when the server has answered and the token is accepted."""


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `hint` says what to do where it is not `ok`; `optional` ones do not make the doctor fail."""

    name: str
    ok: bool
    message: str
    hint: str = ""
    optional: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def provided(client: Client) -> Iterator[Check]:
    """The checks of other parts."""
    for provider in PROVIDERS:
        module, _, name = provider.partition(":")
        if _exists(module):
            found: Iterable[Check] = getattr(import_module(module), name)(client)
            yield from found


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
