"""Static files served in front of Django, straight from where the apps keep them."""

from typing import Any
from wsgiref.headers import Headers

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from servestatic.asgi import ServeStaticASGI


def _headers(headers: Headers, path: str, url: str) -> None:
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Cache-Control"] = "no-cache"


class StaticFiles(ServeStaticASGI):  # type: ignore[misc]  # servestatic's base is untyped
    """Everything the static file finders find, under /static/. Browsers ask each time whether a file changed and get
    a 304: after an update no page mixes old and new parts."""

    def __init__(self, application: Any) -> None:
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
