"""The server behind the proxy: where it is, with which key it is asked, and the connections to it."""

import asyncio
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

import httpx
from django.conf import settings

from apps.accounts.secrets import secret_get
from apps.agent.model.client import ANTHROPIC_URL, current_endpoint, without_user
from apps.agent.models import ModelCall
from apps.gateway.proxy.credentials import TOKEN, Credentials, Headers
from apps.gateway.proxy.errors import ProxyError

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 3600.0
"""An upstream that says nothing for so long is given up; clients give up long before."""
KEPT_CONNECTIONS = 100

MESSAGES, COUNT, MODELS = "/v1/messages", "/v1/messages/count_tokens", "/v1/models"

_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Upstream:
    """A request's way: its address, its headers with a key, and whether the key is the instance's."""

    url: httpx.URL
    headers: Headers
    kind: str
    spends: bool


def upstream_of(
    credentials: Credentials, method: str, path: str, raw_path: bytes, query: bytes
) -> Upstream:
    """Where a request goes; settings alone decide the server. Reads the database.

    ProxyError (401) where neither the client nor the instance has a key, (403) for what the instance's key does not do.
    """
    endpoint = None if credentials.own_key else current_endpoint()
    known = settings.IZZY_PROXY_UPSTREAM
    if not known:
        known = endpoint.base_url if endpoint else secret_get("anthropic_base_url").rstrip("/")
    base = httpx.URL(without_user(known or ANTHROPIC_URL))
    target = base.raw_path.rstrip(b"/") + raw_path + (b"?" + query if query else b"")
    url = base.copy_with(raw_path=target)
    official = url.host == urlsplit(ANTHROPIC_URL).hostname
    kind = ModelCall.Endpoint.ANTHROPIC if official else ModelCall.Endpoint.CUSTOM
    if endpoint is None:
        return Upstream(url, credentials.headers, kind, spends=False)
    if endpoint.is_offline:
        raise ProxyError(
            401,
            "authentication_error",
            "This Izzy has no key for a model. Send your own beside Izzy's token in X-Izzy-Token.",
        )
    reads_models = method in {"GET", "HEAD"} and (path == MODELS or path.startswith(f"{MODELS}/"))
    if not (reads_models or (method == "POST" and path in {MESSAGES, COUNT})):
        raise ProxyError(
            403,
            "permission_error",
            "Izzy's own key serves messages, count_tokens and models alone; send your own key for the rest.",
        )
    headers = credentials.headers_with(endpoint.api_key)
    return Upstream(url, headers, kind, spends=path == MESSAGES)


def path_check(path: str, query: bytes) -> None:
    """ProxyError for an address that could mean another one upstream (404), or that holds a token of Izzy's (400)."""
    segments = unquote(path).replace("\\", "/").split("/")
    if "." in segments or ".." in segments or "\x00" in path:
        raise ProxyError(404, "not_found_error", "There is no such address.")
    if TOKEN.search(query):
        raise ProxyError(
            400, "invalid_request_error", "Send Izzy's token in a header, never in the address."
        )


def client() -> httpx.AsyncClient:
    """The connections of this event loop. They keep no cookies and follow no redirects."""
    loop = asyncio.get_running_loop()
    if loop not in _clients:
        _clients[loop] = httpx.AsyncClient(
            timeout=httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS, pool=None),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS),
            follow_redirects=False,
            verify=_certificates(),
        )
    return _clients[loop]


@cache
def _certificates() -> ssl.SSLContext:
    """Takes a while to load."""
    return httpx.create_ssl_context()


def warm_up() -> None:
    """Loads what the first request would wait for."""
    _certificates()


def request_of(upstream: Upstream, method: str, body: bytes) -> httpx.Request:
    """A request with these headers alone, and those of the connection."""
    headers: Sequence[tuple[bytes, bytes]] = list(upstream.headers)
    return httpx.Request(method, upstream.url, headers=headers, content=body or None)
