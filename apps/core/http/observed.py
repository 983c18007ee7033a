"""Gives every request an id for the log's lines and its answer, figures, a span. Outermost of the ASGI applications."""

import re
import secrets
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from django.conf import settings

from apps.core.log_ids import log_activity, log_ids, log_ids_now
from apps.core.metrics.base import counter, gauge, histogram
from apps.core.metrics.processes import metrics_open
from apps.core.traces import Span, span, traces_open

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
ID = re.compile(r"[A-Za-z0-9_.-]{8,64}")
HEADER = b"x-request-id"
UNMATCHED = "unmatched"
GONE = 499
"""The status, in figures and log, of a request whose client left before the answer began."""

REQUESTS = counter("izzy_requests_total", "Requests that were answered.", "method", "route", "status")
SECONDS = histogram(
    "izzy_request_seconds", "Time until the answer of a request began.", "method", "route"
)
UNDER_WAY = gauge("izzy_requests_under_way", "Requests under way, streams among them.")
SOCKETS = gauge("izzy_websockets", "Websockets that are open.")


class Observed:
    """An ASGI application whose requests and sockets have ids, figures and spans."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self._application(scope, receive, send)
            return
        metrics_open()
        traces_open("web")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        with log_ids(request=_request_id(headers)) as ids:
            if scope["type"] == "http":
                await _Exchange(scope, send, ids, headers).run(self._application, receive)
                return
            SOCKETS.add()
            try:
                await self._application(scope, receive, send)
            finally:
                SOCKETS.add(amount=-1)


@dataclass(slots=True)
class _Exchange:
    """One request and its answer."""

    scope: dict[str, Any]
    send: Any
    ids: dict[str, str]  # of `log_ids`; with `route`, once that is known
    headers: dict[str, str]
    status: int = 0
    seconds: float = 0.0
    begun: float = 0.0

    async def run(self, application: Any, receive: Any) -> None:
        self.begun = perf_counter()
        method = self.scope["method"] if self.scope["method"] in METHODS else "other"
        UNDER_WAY.add()
        sender = self.headers if settings.IZZY_BEHIND_PROXY else None
        asked = {"http.request.method": method}
        with span(method, asked, kind="SERVER", headers=sender) as traced:
            try:
                await application(self.scope, receive, self.answer)
            except Exception:
                self._begins(500)
                raise
            finally:
                self._begins(GONE)
                UNDER_WAY.add(amount=-1)
                self._ended(method, traced)

    async def answer(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._begins(int(message["status"]))
            given = list(message.get("headers", []))
            if not any(name.lower() == HEADER for name, _ in given):  # an upstream's own stays
                given.append((HEADER, self.ids["request"].encode()))
            message = {**message, "headers": given}
        await self.send(message)

    def _begins(self, status: int) -> None:
        if not self.status:
            self.status, self.seconds = status, perf_counter() - self.begun

    def _ended(self, method: str, traced: Span) -> None:
        route = self.ids.get("route", UNMATCHED)
        if not route:  # passed on
            traced.name(method)
            return
        status = str(self.status)
        REQUESTS.add(method, route, status)
        SECONDS.observe(self.seconds, method, route)
        traced.name(f"{method} {route}")
        traced.set("http.route", route)
        traced.set("http.response.status_code", self.status)
        if self.status >= 500:
            traced.fail(status)
        for name, value in log_ids_now().items():
            traced.set(f"izzy.{name}", value)
        took = round((perf_counter() - self.begun) * 1000, 1)
        begun = round(self.seconds * 1000, 1)
        log_activity(
            "request",
            f"{method} {route} {status}",
            method=method,
            route=route,
            status=self.status,
            begun_ms=begun,
            took_ms=took,
        )


def _request_id(headers: dict[str, str]) -> str:
    """The one that our proxy gave the request, else a new one."""
    given = headers.get(HEADER.decode(), "") if settings.IZZY_BEHIND_PROXY else ""
    return given if ID.fullmatch(given) else secrets.token_hex(8)
