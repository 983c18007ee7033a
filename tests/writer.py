"""Requests in tests refuse a write without its user's lock, as a web process does; a test itself may call services as it likes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from django.test.client import AsyncClientHandler, ClientHandler

from apps.core.db.writing import refusing, writer


@contextmanager
def requests_refuse_unlocked() -> Iterator[None]:
    answer, answer_async = ClientHandler.__call__, AsyncClientHandler.__call__

    def by_surface(handler: ClientHandler, environ: dict[str, Any]) -> Any:
        before, nobody = refusing.set(True), writer.set(None)
        try:
            return answer(handler, environ)
        finally:
            refusing.reset(before)
            writer.reset(nobody)

    async def by_surface_async(handler: AsyncClientHandler, scope: dict[str, Any]) -> Any:
        before, nobody = refusing.set(True), writer.set(None)
        try:
            return await answer_async(handler, scope)
        finally:
            refusing.reset(before)
            writer.reset(nobody)

    with (
        patch.object(ClientHandler, "__call__", by_surface),
        patch.object(AsyncClientHandler, "__call__", by_surface_async),
    ):
        yield
