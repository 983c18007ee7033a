"""The first lines of what a client of the proxy sends: where to, and what to pass on."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

HOP_BY_HOP = frozenset(
    {"connection", "proxy-connection", "proxy-authorization", "keep-alive", "te", "upgrade"}
)


class BadRequest(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Head:
    """`forwarded` is what the server is to get instead of the client's head; empty for CONNECT."""

    method: str
    host: str
    port: int
    path: str
    length: int
    forwarded: bytes

    @property
    def tunnel(self) -> bool:
        return self.method == "CONNECT"


def parse_head(data: bytes) -> Head:
    """Raises BadRequest. Only `CONNECT host:port` and `METHOD http://host[:port]/path` are understood."""
    text = data.decode("latin-1")
    if any(not char.isprintable() and char != "\t" for char in text.replace("\r\n", "")):
        raise BadRequest("Control characters are not understood.")
    try:
        first, *rest = text.split("\r\n")
        method, target, version = first.split(" ")
    except ValueError:
        raise BadRequest("That is no HTTP request.") from None
    if not version.startswith("HTTP/1.") or not method.isalpha():
        raise BadRequest("Only HTTP/1.1 is understood.")
    if method == "CONNECT":
        host, port = _authority(target, 443)
        return Head(method, host, port, "", 0, b"")
    if not target.lower().startswith("http://"):
        raise BadRequest("Give the whole http:// address; for https use CONNECT.")
    return _plain(method, target, rest)


def _plain(method: str, target: str, lines: list[str]) -> Head:
    try:
        authority, path, query = urlsplit(target)[1:4]
    except ValueError:  # brackets that hold no address
        raise BadRequest("The address is malformed.") from None
    host, port = _authority(authority, 80)
    whole = (path or "/") + (f"?{query}" if query else "")
    headers = [_header(line) for line in lines if line]
    kept = [(name, value) for name, value in headers if name.lower() not in HOP_BY_HOP | {"host"}]
    lengths = [value for name, value in headers if name.lower() == "content-length"]
    length = int(lengths[0]) if lengths and re.fullmatch(r"[0-9]{1,15}", lengths[0]) else 0
    shown = [("Host", authority), *kept, ("Connection", "close")]
    text = f"{method} {whole} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in shown)
    return Head(method, host, port, whole, length, f"{text}\r\n".encode("latin-1"))


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name or name != name.strip():
        raise BadRequest("A header is malformed.")
    return name, value.strip()


def _authority(text: str, usual: int) -> tuple[str, int]:
    """No user name: `http://allowed.example@127.0.0.1/` names 127.0.0.1."""
    if "@" in text or not text:
        raise BadRequest("The address must not hold a user name.")
    host, colon, port = text.rpartition(":")
    if not colon or port.endswith("]"):
        return text, usual
    if not port.isascii() or not port.isdigit() or not host:
        raise BadRequest("The port is malformed.")
    return host, int(port[:6])
