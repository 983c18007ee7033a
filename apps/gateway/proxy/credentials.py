"""Credentials: Izzy's token and the client's own credentials in the headers of a request."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from apps.accounts.access import TOKEN_PREFIX
from apps.gateway.proxy.errors import ProxyError

Headers = Sequence[tuple[bytes, bytes]]

OWN_HEADER = b"x-izzy-token"
KEY_HEADERS = frozenset({b"authorization", b"x-api-key"})
HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
NOT_SENT = HOP_BY_HOP | {b"host", b"content-length", b"cookie", b"expect"}
NOT_ANSWERED = HOP_BY_HOP | {b"set-cookie"}
MOST_TOKEN_BYTES = 200
TOKEN = re.compile(TOKEN_PREFIX.encode() + rb"[\w-]{20}")
"""The beginning of a token of Izzy's, wherever it stands."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Izzy's token (`izzy_…`); the headers to pass on, without it; and whether they hold the client's own key.

    Without a key of the client's, `key_header` is where the instance's goes.
    """

    token: str
    headers: Headers
    own_key: bool
    key_header: bytes = b"authorization"

    def headers_with(self, key: str) -> Headers:
        """The headers with the instance's key."""
        value = key if self.key_header == b"x-api-key" else f"Bearer {key}"
        return [*self.headers, (self.key_header, value.encode("latin-1", "replace"))]


def readable(headers: Headers) -> Headers:
    """The headers of a request whose answer Izzy reads along, with encodings of it alone that Izzy can read."""
    asked = b",".join(text for name, text in headers if name == b"accept-encoding")
    encoding = b"gzip" if b"gzip" in asked else b"identity"
    kept = [(name, text) for name, text in headers if name != b"accept-encoding"]
    return [*kept, (b"accept-encoding", encoding)]


def credentials_of(headers: Headers) -> Credentials:
    """ProxyError (401) where no header holds one of Izzy's tokens."""
    found: dict[bytes, str] = {}
    own_key = False
    for name, value in headers:
        secret = _secret(value)
        if name == OWN_HEADER or (name in KEY_HEADERS and _is_ours(secret)):
            found.setdefault(name, secret.decode("ascii", "replace"))
        elif name in KEY_HEADERS and secret:
            own_key = True
    if not found:
        raise ProxyError(
            401,
            "authentication_error",
            "Send a token of Izzy's (izzy_…) in the header X-Izzy-Token, or in place of the API key.",
        )
    place, token = next((name, found[name]) for name in (OWN_HEADER, *found) if name in found)
    if not _is_ours(token.encode()) or len(token) > MOST_TOKEN_BYTES:
        raise ProxyError(401, "authentication_error", "X-Izzy-Token holds no token of Izzy's.")
    key_header = (
        place if place in KEY_HEADERS else next(iter(found.keys() & KEY_HEADERS), b"authorization")
    )
    return Credentials(token, _passed_on(headers), own_key, key_header)


def _passed_on(headers: Headers) -> Headers:
    """The headers as they came, in their order, but for those of this connection, and whatever holds a token of Izzy's."""
    named = {
        name.strip().lower()
        for key, value in headers
        if key == b"connection"
        for name in value.split(b",")
    }
    return [
        (name, value)
        for name, value in headers
        if name not in NOT_SENT
        and name not in named
        and not name.startswith(b"x-izzy-")
        and not TOKEN.search(value)
    ]


def _secret(value: bytes) -> bytes:
    """The credential in a header, with or without a scheme before it."""
    scheme, _, rest = value.strip().partition(b" ")
    return rest.strip() if scheme.lower() == b"bearer" else value.strip()


def _is_ours(secret: bytes) -> bool:
    return secret.startswith(TOKEN_PREFIX.encode())
