"""What the web server and the applications behind it agree on: how long a body may be, and how an answer is broken off."""

from django.conf import settings

ABORT = "izzy.abort"
"""An ASGI extension, and the type of the message: close the connection, the answer stays unfinished and the client sees that."""
MESSAGES_PREFIX = "/v1/"
MESSAGES_LIMIT = 32_000_000
"""Bytes of a request to the Messages proxy: as many as Anthropic's API takes."""


def body_limit(path: str) -> int:
    """Bytes that the body of a request to this path may have."""
    return MESSAGES_LIMIT if path.startswith(MESSAGES_PREFIX) else settings.IZZY_UPLOAD_LIMIT
