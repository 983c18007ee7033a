"""Small ASGI applications around Django, static files (straight from where the apps keep them) among them."""

import json
import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any
from wsgiref.headers import Headers

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from servestatic.asgi import ServeStaticASGI
from servestatic.responders import NotARegularFileError
from servestatic.utils import decode_path_info

from apps.core.errors import TooLarge
from apps.core.http.middleware import https_target
from apps.core.log_ids import log_ids_add

Message = dict[str, Any]


class BodyLimit:
    """Answers 413 to a request whose body has more bytes than `limit` gives for its path, before Django reads any of it."""

    def __init__(self, application: Any, limit: Callable[[str], int]) -> None:
        self.application = application
        self.limit = limit

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        headers, limit = dict(scope["headers"]), self.limit(scope["path"])
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length[:20]) > limit:
            await self._refuse(send, limit)
            return
        if b"content-length" in headers and b"transfer-encoding" not in headers:
            await self.application(scope, receive, send)
            return
        messages = await self._read(receive, limit)
        if messages is None:
            await self._refuse(send, limit)
            return
        waiting = iter(messages)

        async def replay() -> Any:
            return next(waiting, None) or await receive()

        await self.application(scope, replay, send)

    async def _read(self, receive: Any, limit: int) -> list[Message] | None:
        """The messages of a body that does not tell its length; None where it is too long."""
        messages: list[Message] = []
        total, more = 0, True
        while more:
            message = await receive()
            messages.append(message)
            total += len(message.get("body", b""))
            more = message["type"] == "http.request" and message.get("more_body", False)
            if total > limit:
                return None
        return messages

    async def _refuse(self, send: Any, limit: int) -> None:
        error = TooLarge(f"A request may have at most {limit:,} bytes.", limit=limit)
        body = json.dumps(error.to_json()).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": error.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class HttpsAlone:
    """With an https IZZY_PUBLIC_URL, sends what comes over plain http to applications in front of Django there, as
    EdgeSecurityMiddleware does behind it. `beginnings` are those of their paths."""

    def __init__(self, application: Any, *beginnings: str) -> None:
        self.application = application
        self.beginnings = beginnings

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        ours = settings.TLS and scope["path"].startswith(self.beginnings)
        if not ours or not (target := _https_target(scope)):
            await self.application(scope, receive, send)
            return
        status = 301 if scope["method"] in {"GET", "HEAD"} else 308
        headers = [(b"location", target.encode()), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def _https_target(scope: Message) -> str:
    request = ASGIRequest(scope, BytesIO())
    try:
        return https_target(request)
    except DisallowedHost:  # nobody's name: not this machine's own either
        return f"{settings.IZZY_PUBLIC_URL}{request.get_full_path()}"


class HeadWithoutBody:
    """Answers to HEAD leave without their body. Django leaves that to the server, and daphne drops the first part of a
    body only: what follows would be read as the next answer of the connection."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        if scope["method"] != "HEAD":
            await self.application(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self.application(scope, receive, send_without_body)


class Lifespan:
    """Acknowledges start and end to servers that announce them (uvicorn); there is nothing to do."""

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return


Stamp = tuple[int, int, int]


def _headers(headers: Headers, path: str, url: str) -> None:
    headers["X-Content-Type-Options"] = "nosniff"
    # A face that is asked for anew on each page would be drawn late on each.
    headers["Cache-Control"] = "max-age=604800" if path.endswith(".woff2") else "no-cache"


class StaticFiles(ServeStaticASGI):  # type: ignore[misc]  # servestatic's base is untyped
    """Everything the static file finders find, under /static/. Browsers ask each time whether a file changed and get
    a 304: after an update no page mixes old and new parts. Length and date of a file are remembered from the start; one
    that was changed since is looked at anew."""

    def __init__(self, application: Any) -> None:
        self._stamps: dict[str, tuple[str, Stamp]] = {}
        super().__init__(
            application,
            autorefresh=settings.DEBUG,
            allow_all_origins=False,
            add_headers_function=_headers,
        )
        storages = [
            storage for finder in get_finders() for storage in getattr(finder, "storages", {}).values()
        ]
        for storage in reversed(storages):
            self.add_files(storage.location, prefix=settings.STATIC_URL)

    def add_file_to_dictionary(
        self,
        url: str,
        path: str,
        root: "str | os.PathLike[str] | None" = None,
        stat_cache: dict[str, os.stat_result] | None = None,
    ) -> None:
        super().add_file_to_dictionary(url, path, root=root, stat_cache=stat_cache)
        if url in self.files:
            self._stamps[url] = path, _stamp(stat_cache[path] if stat_cache else Path(path).stat())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            if scope["path"].startswith(f"/{settings.STATIC_URL.strip('/')}/"):
                log_ids_add(route="static/")
            self._renew(decode_path_info(scope["path"]))
        await super().__call__(scope, receive, send)

    def _renew(self, url: str) -> None:
        path, known = self._stamps.get(url, ("", None))
        if known is None:
            return
        try:
            stamp = _stamp(Path(path).stat())
            if stamp != known:
                self.files[url] = self.get_static_file(path, url)
                self._stamps[url] = path, stamp
        except (OSError, NotARegularFileError):  # it is gone, for the moment or for good
            self.files.pop(url, None)
            self._stamps[url] = path, (0, 0, 0)


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_mtime_ns, status.st_size, status.st_ino
