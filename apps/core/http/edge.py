"""The agreement between the web server and the applications behind it: how long a body may be, how an answer is broken off, and
whether a websocket's client keeps up."""

from django.conf import settings

BACKLOG = 1024
"""Connections that may wait to be taken up: programs open hundreds at once, and the system resets those beyond."""
ABORT = "izzy.abort"
"""An ASGI extension, and the type of the message: close the connection, the answer stays unfinished and the client sees that."""
WRITABLE = "izzy.writable"
"""An ASGI extension of websockets: `event` is set while the client takes what it is sent. Who waits for it sends no more than fits."""
MESSAGES_PREFIX = "/v1/"
MESSAGES_LIMIT = 32_000_000
"""Bytes of a request to the Messages proxy: as many as Anthropic's API takes."""
ATTACHMENTS_PATH = "/api/v1/attachments/"
"""It takes a file for a message, of IZZY_ATTACHMENT_LIMIT at most: one that is a little larger is refused with its name."""
IMPORT_PATHS = frozenset({"/api/v1/import/", "/settings/data/"})
"""They take a file to import, which may be as large as IZZY_IMPORT_LIMIT."""


def body_limit(path: str) -> int:
    """Bytes that the body of a request to this path may have."""
    if path.startswith(MESSAGES_PREFIX):
        return MESSAGES_LIMIT
    limit: int = settings.IZZY_UPLOAD_LIMIT
    place = path.partition("?")[0]
    if place == ATTACHMENTS_PATH:
        return limit + settings.IZZY_ATTACHMENT_LIMIT
    return limit + settings.IZZY_IMPORT_LIMIT if place in IMPORT_PATHS else limit
