"""The agreement between the web server and the applications behind it: how long a body may be, and how an answer is broken off."""

from django.conf import settings

ABORT = "izzy.abort"
"""An ASGI extension, and the type of the message: close the connection, the answer stays unfinished and the client sees that."""
MESSAGES_PREFIX = "/v1/"
MESSAGES_LIMIT = 32_000_000
"""Bytes of a request to the Messages proxy: as many as Anthropic's API takes."""
IMPORT_PATHS = frozenset({"/api/v1/import/", "/settings/data/"})
"""They take a file to import, which may be as large as IZZY_IMPORT_LIMIT."""


def body_limit(path: str) -> int:
    """Bytes that the body of a request to this path may have."""
    if path.startswith(MESSAGES_PREFIX):
        return MESSAGES_LIMIT
    limit: int = settings.IZZY_UPLOAD_LIMIT
    return limit + settings.IZZY_IMPORT_LIMIT if path.partition("?")[0] in IMPORT_PATHS else limit
