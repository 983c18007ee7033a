"""Requests to the server, and its refusals as sentences. The token is in no message."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any

from izzy_cli import __version__
from izzy_cli.config import API, Account, present
from izzy_cli.errors import ConnectionLost, Exit, Problem

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS = 10.0
SECONDS = 60.0
"""How long an answer may keep us waiting; streams send a sign of life every 15 seconds."""
LONG_SECONDS = 900.0
"""The same for what takes as long as it takes: a turn, a tool's run, a purge."""
PATIENCE_SECONDS = 120.0
"""A server that asks to wait longer than this (429) is not asked again."""
TRIES = 4
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
MAX_EVENT_BYTES = 20_000_000

Params = Mapping[str, str | int | bool | None]


@dataclass(frozen=True)
class Answer:
    """The server's answer: `content` as it came, `value` as JSON."""

    status: int
    content: bytes

    @cached_property
    def value(self) -> Any:
        return json.loads(self.content)


class Client:
    """One server, one token. Every method raises Problem."""

    def __init__(self, account: Account, *, note: Callable[[str], None] | None = None) -> None:
        """`note` is told why a request waits."""
        self.url = account.url
        self._note = note or (lambda text: print(text, file=sys.stderr))
        self._token = account.token
        self._http: httpx.Client | None = None

    def get(self, path: str, params: Params | None = None) -> Answer:
        return self.request("GET", path, params=params)

    def post(self, path: str, body: object = None, *, seconds: float = SECONDS) -> Answer:
        return self.request("POST", path, body=body, seconds=seconds)

    def patch(self, path: str, body: object) -> Answer:
        return self.request("PATCH", path, body=body)

    def delete(self, path: str) -> Answer:
        return self.request("DELETE", path)

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: object = None,
        seconds: float = SECONDS,
        **sent: Any,
    ) -> Answer:
        """A request to `/api/v1/` + path, waited out where there were too many. `sent` are httpx's own (data, files)."""
        if body is not None:
            sent["json"] = body
        with self._answered(method, path, seconds, params=_given(params), **sent) as response:
            content = self._read(response)
            if response.status_code != 204:
                self._is_json(response)
            return Answer(response.status_code, content)

    @contextmanager
    def stream(
        self, method: str, path: str, *, params: Params | None = None, seconds: float = SECONDS
    ) -> Iterator[Iterator[bytes]]:
        """The bytes of an answer as they come. ConnectionLost where it breaks off."""
        with self._answered(method, path, seconds, params=_given(params)) as response:
            yield self._pieces(response)

    @contextmanager
    def events(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[Iterator[Answer]]:
        """The data of server-sent events as they come, each an answer of its own. ConnectionLost where the stream
        breaks off."""
        sent: dict[str, Any] = {"headers": {"Accept": "text/event-stream", **(headers or {})}}
        if body is not None:
            sent["json"] = body
        with self._answered(method, path, SECONDS, **sent) as response:
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                raise self._not_izzy(response)
            yield self._events(response)

    def probe(self, path: str) -> Answer:
        """The answer of an address beside `/api/v1/`, whatever its status."""
        with self._open("GET", f"{self.url}{path}", SECONDS) as response:
            content = self._read(response)
            self._is_json(response)
            return Answer(response.status_code, content)

    def close(self) -> None:
        if self._http is not None:
            self._http.close()

    @contextmanager
    def _answered(
        self, method: str, path: str, seconds: float, **sent: Any
    ) -> "Iterator[httpx.Response]":
        """A response that is no refusal."""
        for attempt in range(1, TRIES + 1):
            with self._open(method, f"{self.url}{API}/{path}", seconds, **sent) as response:
                wait = _retry_after(response)
                if wait is None or wait > PATIENCE_SECONDS or attempt == TRIES:
                    if not response.is_success:
                        raise self._refusal(response)
                    yield response
                    return
            self._note(f"The server asks to slow down: going on in {wait:.0f} s.")
            time.sleep(wait)

    @contextmanager
    def _open(self, method: str, url: str, seconds: float, **sent: Any) -> "Iterator[httpx.Response]":
        httpx = _httpx()
        timeout = httpx.Timeout(seconds, connect=CONNECT_SECONDS)
        try:
            with self._client().stream(method, url, timeout=timeout, **sent) as response:
                yield response
        except httpx.ProxyError:
            raise Problem(
                "The proxy that the environment names refuses the connection.", Exit.UNREACHABLE
            ) from None
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Problem(self._unreachable(str(error)), Exit.UNREACHABLE) from None
        except httpx.TimeoutException:
            message = f"Izzy at {self.url} did not answer within {seconds:.0f} seconds."
            raise ConnectionLost(message) from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            raise Problem(f"{self.url} is not the address of a server.", Exit.USAGE) from None
        except httpx.TransportError:
            raise ConnectionLost(f"The connection to {self.url} broke.") from None

    def _client(self) -> "httpx.Client":
        if self._http is None:
            import ssl

            httpx = _httpx()
            # To read the certificates of the world takes a while, and nobody asks for one here.
            verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if self.url.startswith("http:") else True
            headers = {"User-Agent": f"izzy-cli/{__version__}"}
            if self._token:
                headers["Authorization"] = f"Bearer {self._token}"
            try:
                self._http = httpx.Client(headers=headers, verify=verify)
            except (
                ValueError,
                ImportError,
                OSError,
            ):  # of a proxy or certificates, perhaps with a password
                message = "The proxy or the certificates that the environment names cannot be used."
                raise Problem(message, Exit.UNREACHABLE) from None
        return self._http

    def _unreachable(self, reason: str) -> str:
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            return f"The certificate of {self.url} is not trusted. Name its authority in SSL_CERT_FILE."
        if "SSL" in reason or "TLS" in reason or "handshake" in reason:
            return f"There is no TLS at {self.url}. Is it http:// instead of https://?"
        if "name" in reason.lower() or "nodename" in reason.lower():
            return f"There is no host of the name in {self.url}."
        proxied = "Is it running there?"
        if any(os.environ.get(name) or os.environ.get(name.lower()) for name in PROXIES):
            proxied = "Is it running there, and does the proxy that the environment names lead there?"
        return f"Izzy does not answer at {self.url}. {proxied}"

    def _read(self, response: "httpx.Response") -> bytes:
        return b"".join(self._pieces(response))

    def _pieces(self, response: "httpx.Response") -> Iterator[bytes]:
        try:
            yield from response.iter_bytes()
        except _httpx().DecodingError:
            raise self._not_izzy(response) from None

    def _events(self, response: "httpx.Response") -> Iterator[Answer]:
        data: list[bytes] = []
        for line in self._lines(response):
            if line.startswith(b"data:"):
                data.append(line.removeprefix(b"data:").removeprefix(b" "))
                if sum(map(len, data)) > MAX_EVENT_BYTES:
                    raise self._not_izzy(response)
            elif not line and data:
                event = Answer(response.status_code, b"\n".join(data))
                data.clear()
                yield event

    def _lines(self, response: "httpx.Response") -> Iterator[bytes]:
        """The lines of a stream of events. Line feeds end them, not what else ends a line for Python: words may hold that."""
        held = bytearray()
        for piece in self._pieces(response):
            held += piece
            if b"\n" in piece:
                *lines, rest = held.split(b"\n")
                yield from (bytes(line.removesuffix(b"\r")) for line in lines)
                held = rest
            if len(held) > MAX_EVENT_BYTES:
                raise self._not_izzy(response)

    def _is_json(self, response: "httpx.Response") -> None:
        if response.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise self._not_izzy(response)

    def _not_izzy(self, response: "httpx.Response") -> Problem:
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        said = "a web page" if kind == "text/html" else "something else"
        message = (
            f"What answers at {self.url} is not Izzy: it gave {said}. Check the address: izzy login"
        )
        return Problem(message, Exit.UNREACHABLE)

    def _refusal(self, response: "httpx.Response") -> Problem:
        """The server's own sentence, or one about a server that is not Izzy."""
        status = response.status_code
        if response.is_redirect:
            target = response.headers.get("location", "another address").partition("?")[0]
            message = f"{self.url} leads on to {target}. Sign in with that server's address: izzy login"
            return Problem(message, Exit.UNREACHABLE)
        try:
            body = json.loads(self._read(response))
            code, message = str(body["code"]), str(body["message"])
            extra = body.get("extra") or {}
        except (ValueError, KeyError, TypeError, AttributeError):
            if status == 413:
                return Problem("The server, or a proxy before it, takes nothing that large.")
            if status in {502, 503, 504}:
                message = f"The proxy at {self.url} does not reach Izzy ({status})."
                return Problem(message, Exit.UNREACHABLE)
            if status >= 500:
                return Problem(f"The server failed ({status}). Its log says more.")
            return self._not_izzy(response)
        if status == 401:
            message = f"{message} Sign in again: izzy login"
        elif code == "missing_scope":
            message = f"{message} Make one that has it under Settings → API tokens."
        elif status == 429 and extra.get("retry_after"):
            message = f"{message} Try again in {extra['retry_after']} seconds."
        exits = {401: Exit.SIGNED_OUT, 403: Exit.SIGNED_OUT, 404: Exit.NOT_FOUND}
        return Problem(message, exits.get(status, Exit.FAILURE), code=code, extra=extra)


def connect() -> Client:
    """A client of the server that the person is signed in to."""
    return Client(present())


def _httpx() -> ModuleType:
    """httpx without its own command line, which takes longer to load than all the rest of it."""
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # to import it fails, which httpx expects
    import httpx

    return httpx


def _given(params: Params | None) -> dict[str, str | int | bool]:
    return {name: value for name, value in (params or {}).items() if value is not None and value != ""}


def _retry_after(response: "httpx.Response") -> float | None:
    """Seconds after which to ask again; None where the answer is not that there were too many requests."""
    if response.status_code != 429:
        return None
    given = response.headers.get("retry-after", "")
    return max(1.0, float(given)) if given.isascii() and given.isdigit() else 5.0
