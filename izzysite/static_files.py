"""Static files served in front of Django, straight from where the apps keep them."""

import os
from pathlib import Path
from typing import Any
from wsgiref.headers import Headers

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from servestatic.asgi import ServeStaticASGI
from servestatic.responders import NotARegularFileError
from servestatic.utils import decode_path_info

Stamp = tuple[int, int, int]


def _headers(headers: Headers, path: str, url: str) -> None:
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Cache-Control"] = "no-cache"


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
