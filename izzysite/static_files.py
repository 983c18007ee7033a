"""Static files straight from where the apps keep them, below an address that changes with any of them."""

import hashlib
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from wsgiref.headers import Headers

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from servestatic.asgi import ServeStaticASGI
from servestatic.responders import NotARegularFileError
from servestatic.utils import decode_path_info, scantree

from apps.core.log_ids import log_ids_add

Message = dict[str, Any]
Stamp = tuple[int, int, int]

PREFIX = f"/{settings.STATIC_URL.strip('/')}/"
VERSIONED = re.compile(rf"{PREFIX}(?P<version>[0-9a-f]{{8}})/")
KEPT = b"public, max-age=31536000, immutable"


def _roots() -> Iterator[str]:
    """The folders that the finders look through; the first that has a name gives its file."""
    for finder in get_finders():
        for storage in getattr(finder, "storages", {}).values():
            yield str(storage.location)


@cache
def static_version() -> str:
    """8 hexadecimal digits that depend on the names and bytes of all static files, as this process found them first."""
    digest = hashlib.sha256()
    for root in _roots():
        for path in sorted(path for path, _ in scantree(root)):
            data = Path(path).read_bytes()
            digest.update(f"{path.removeprefix(root)}\n{len(data)}\n".encode() + data)
    return digest.hexdigest()[:8]


class VersionedStorage(StaticFilesStorage):
    """Names a file as `/static/<version>/…`, so that modules and faces that name each other by relative paths are of one
    version, too. With DEBUG files change under the process, and names carry no version."""

    def url(self, name: str | None) -> str:
        # The base class calls itself with "" to learn where files begin.
        url = super().url(name)
        return (
            url if settings.DEBUG or not name else url.replace(PREFIX, f"{PREFIX}{static_version()}/", 1)
        )


def _headers(headers: Headers, path: str, url: str) -> None:
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Cache-Control"] = "no-cache"


class StaticFiles(ServeStaticASGI):  # type: ignore[misc]  # servestatic's base is untyped
    """Everything the static file finders find, under /static/. What a page asks for by this process's version a browser
    keeps and never asks for again. By another version or none it asks each time whether the file changed. Length and
    date of a file are remembered from the start; one that was changed since is looked at anew, and not kept."""

    def __init__(self, application: Any) -> None:
        self._stamps: dict[str, tuple[str, Stamp]] = {}
        self._changed: set[str] = set()
        super().__init__(
            application,
            autorefresh=settings.DEBUG,
            allow_all_origins=False,
            add_headers_function=_headers,
        )
        for root in reversed(list(_roots())):
            self.add_files(root, prefix=PREFIX)

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
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await super().__call__(scope, receive, send)
            return
        log_ids_add(route="static/")
        named = VERSIONED.match(scope["path"])
        path = PREFIX + scope["path"][named.end() :] if named else scope["path"]
        url = decode_path_info(path)
        self._renew(url)
        if named and named["version"] == static_version() and url not in self._changed:
            send = _kept(send)
        await super().__call__({**scope, "path": path}, receive, send)

    def _renew(self, url: str) -> None:
        path, known = self._stamps.get(url, ("", None))
        if known is None:
            return
        try:
            stamp = _stamp(Path(path).stat())
            if stamp != known:
                self._changed.add(url)
                self.files[url] = self.get_static_file(path, url)
                self._stamps[url] = path, stamp
        except (OSError, NotARegularFileError):  # it is gone, for the moment or for good
            self._changed.add(url)
            self.files.pop(url, None)
            self._stamps[url] = path, (0, 0, 0)


def _kept(send: Any) -> Any:
    """`send`, whose answer a browser keeps if it is a file's (a 404 comes from Django)."""

    async def send_kept(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] in {200, 206, 304}:
            others = [pair for pair in message["headers"] if pair[0].lower() != b"cache-control"]
            message = {**message, "headers": [*others, (b"cache-control", KEPT)]}
        await send(message)

    return send_kept


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_mtime_ns, status.st_size, status.st_ino
