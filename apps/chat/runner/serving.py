"""Starts the runner with the server, and ends its turns in order when the server stops."""

import asyncio
import logging
import sys
from typing import Any
from weakref import WeakSet

from apps.chat.runner.registry import registry

logger = logging.getLogger(__name__)

ASGIApp = Any
_started: "WeakSet[asyncio.AbstractEventLoop]" = WeakSet()


class WithRunner:
    """An ASGI application whose first request also starts the runner, so that what a crash left is taken up."""

    def __init__(self, application: ASGIApp) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        loop = asyncio.get_running_loop()
        if loop not in _started and scope["type"] in {"http", "websocket"}:
            _started.add(loop)
            registry().start()
            _close_with_reactor()
        return await self.application(scope, receive, send)


def _close_with_reactor() -> None:
    """Under daphne: before the reactor stops, running turns end as interrupted and their text is stored."""
    reactor = sys.modules.get("twisted.internet.reactor")
    if reactor is None or not getattr(reactor, "running", False):
        return
    from twisted.internet.defer import Deferred

    closing = registry()
    getattr(reactor, "addSystemEventTrigger")(  # noqa: B009  the module is the reactor
        "before", "shutdown", lambda: Deferred.fromFuture(asyncio.ensure_future(closing.close()))
    )
