"""Small registries through which what lies above reaches what lies below; filled in `AppConfig.ready`."""

from collections.abc import Awaitable, Callable
from operator import itemgetter
from typing import Any, TypeVar
from uuid import UUID

from apps.core.health import CheckResult

T = TypeVar("T")


class Registry(dict[str, T]):
    """Named entries in the order of their names. Registering a name again replaces it."""

    def register(self, name: str, entry: T) -> None:
        entries = sorted({**self, name: entry}.items(), key=itemgetter(0))
        self.clear()
        self.update(entries)


account_deleters: Registry[Callable[[UUID], int]] = Registry()
"""name -> fn(user_id) -> number of things removed: what an account's deletion must clear beyond its cascading rows
(search index, files, caches). Called inside the deleting transaction, before the rows go."""

batch_deleters: Registry[Callable[[UUID], bool]] = Registry()
"""name -> fn(user_id) -> whether there may be more: removes, in one short transaction, some of the rows that a user may have
tens of thousands of. Called again and again before an account's deletion, so that the transaction that ends it is
short; whatever they leave goes with that. Nothing but rows: what lies beside them is for `account_deleters`."""

connection_tests: Registry[Callable[[], CheckResult]] = Registry()
"""name (for example `model`) -> fn() -> CheckResult; run by the buttons of the instance page. Up to 20 seconds."""

stats_providers: Registry[Callable[[UUID], dict[str, Any]]] = Registry()
"""name -> fn(user_id) -> JSON-ready figures; `/stats/` answers all of them by name."""

choices: Registry[Callable[[], list[tuple[str, str]]]] = Registry()
"""name -> fn() -> [(value, label)] that a form of a lower app offers: `toolsets`, `tools`, `models`."""

warmups: Registry[Callable[[], None]] = Registry()
"""name -> fn(): slow imports and loads, run once in the background after the web process has begun to answer."""

drains: Registry[Callable[[float], Awaitable[None]]] = Registry()
"""name -> fn(seconds): called in the web process's event loop when it is about to stop. Takes up nothing new, and returns when what
was begun has ended, or after so many seconds."""

undecided: Registry[Callable[[UUID], int]] = Registry()
"""name -> fn(user_id) -> how much waits for the user's yes or no on a page; the sidebar counts it on every page."""

owners: Registry[Callable[[UUID, UUID], bool]] = Registry()
"""name (`conversation`) -> fn(user_id, id) -> whether the user has a row of that kind with this id; for ids that point
to the right."""

words: Registry[Callable[[UUID, UUID], str]] = Registry()
"""name (`turn`) -> fn(user_id, id) -> what the user said there, "" where it is not theirs; for ids that point to the right."""
