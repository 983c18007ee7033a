"""Checks the names of capabilities, and of their secrets and hosts."""

import re
from contextlib import suppress
from ipaddress import ip_address

from apps.agent.tools.base import find_tool
from apps.capabilities.models import MAX_NAME_CHARS
from apps.core.errors import InvalidInput
from apps.core.http.addresses import AddressRefused, canonical_host
from apps.core.text import clean_text

PREFIX = "cap_"
NAME = re.compile(r"[a-z][a-z0-9_]{1,47}")
SECRET = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
HOST = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*"
)
PAGES = frozenset({"new", "install"})
"""Names of pages that stand where a capability's own page would."""
RESERVED_ENVIRONMENT = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "SHELL",
        "TMPDIR",
        "LANG",
        "LC_ALL",
        "TZ",
        "IFS",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
    ]
)
RESERVED_BEGINNINGS = ("PYTHON", "LD_", "IZZY_", "DYLD_")


def clean_name(value: object) -> str:
    """A capability's name: a lower-case letter, then letters, digits and underscores, 2 to 48 characters in all, and
    not the name of a built-in tool."""
    name = clean_text(value, field="name", max_chars=10 * MAX_NAME_CHARS)
    if not NAME.fullmatch(name):
        message = (
            "name must begin with a lower-case letter and have 2 to 48 lower-case letters, digits and underscores, "
            f"for example weather_lookup; {name[:60]!r} does not."
        )
        raise InvalidInput(message, code="invalid_name", field="name")
    if find_tool(name) is not None or name.startswith(PREFIX) or name in PAGES:
        message = f"{name} is taken by Izzy itself. Choose another name."
        if name.startswith(PREFIX):
            message = f"name must not begin with {PREFIX}: that is put before it anyway."
        raise InvalidInput(message, code="reserved_name", field="name")
    return name


def clean_host(value: object) -> str:
    """A host as a version names it: `name` or `name:port`, in lower case; no address, scheme, path or wildcard."""
    text = clean_text(value, field="hosts", max_chars=300).lower()
    host, colon, port = text.partition(":")
    with suppress(AddressRefused):  # which is no name of a host then
        host = host if host.isascii() else canonical_host(host)
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536
    if not HOST.fullmatch(host) or _is_address(host) or (colon and not is_port):
        message = f"{text[:80]!r} is no host. Give names such as api.example.org, with a port where it is not 80 or 443."
        raise InvalidInput(message, code="invalid_host", field="hosts")
    return f"{host}{colon}{port}"


def clean_secret_name(value: object) -> str:
    """A secret's name is that of an environment variable: capital letters, digits and underscores."""
    name = clean_text(value, field="secrets", max_chars=200)
    if not SECRET.fullmatch(name):
        message = f"{name[:80]!r} is no name for a secret: use capital letters, digits and underscores, such as WEATHER_API_KEY."
        raise InvalidInput(message, code="invalid_secret_name", field="secrets")
    if name in RESERVED_ENVIRONMENT or name.startswith(RESERVED_BEGINNINGS):
        raise InvalidInput(
            f"{name} means something to the system. Choose another name.",
            code="invalid_secret_name",
            field="secrets",
        )
    return name


def _is_address(host: str) -> bool:
    """Whether it is an address in any spelling: names end in a label that is not a number (RFC 3696)."""
    last = host.rpartition(".")[2]
    if last.isdigit() or last.startswith("0x"):
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
