"""The names under which browsers may ask for Izzy."""

import socket
from contextlib import closing
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

EVERYWHERE = {"0.0.0.0", "::"}  # noqa: S104  recognised here, not listened on
LOCAL = ["127.0.0.1", "localhost", "[::1]"]
OUTSIDE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""Addresses of no machine (RFC 5737, RFC 3849): the way to them starts at this machine's main address."""


def allowed_hosts(listening: str, public_url: str, further: list[str]) -> list[str]:
    """This machine's own names, the public one, and what the operator adds."""
    own = own_names() if listening in EVERYWHERE else [_bracketed(listening)]
    public = public_host(public_url)
    return list(dict.fromkeys([*LOCAL, *own, *([public] if public else []), *further]))


def own_names() -> list[str]:
    """Name and addresses of this machine in its network."""
    name = socket.gethostname()
    return [name, f"{name}.local", *(_bracketed(found) for found in map(_own_address, OUTSIDE) if found)]


def public_host(url: str) -> str:
    """The host of IZZY_PUBLIC_URL, or "" without one. Raises ImproperlyConfigured for anything but scheme and host."""
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        beyond = parts.path or parts.query or parts.fragment or "@" in parts.netloc or parts.port == 0
    except ValueError:
        beyond, parts = "malformed", urlsplit("")
    if beyond or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ImproperlyConfigured("IZZY_PUBLIC_URL must look like https://izzy.example.org")
    return _bracketed(parts.hostname)


def _own_address(family: socket.AddressFamily) -> str:
    """Asks the routing table; a datagram socket that connects sends nothing."""
    try:
        with closing(socket.socket(family, socket.SOCK_DGRAM)) as probe:
            probe.connect((OUTSIDE[family], 9))
            return str(probe.getsockname()[0])
    except OSError:
        return ""


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
