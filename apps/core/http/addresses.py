"""From a host's name to addresses that may be connected to: public ones only.

Whoever fetches what a page, a model or a capability named asks here, connects to the *address* that comes back and
never resolves the name again, so a name that answers differently the second time (DNS rebinding) gains nothing.
Names in `IZZY_PRIVATE_HOSTS` are exempt: hosts of their own network that the operator allows on purpose.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import ClassVar

from django.conf import settings

from apps.core.errors import IzzyError

IPAddress = IPv4Address | IPv6Address

DEFAULT_PORTS = {"http": 80, "https": 443}
RESOLVE_SECONDS = 10.0
MAX_ADDRESSES = 8

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_DOTTED_QUAD = re.compile(r"(0|[1-9][0-9]{0,2})(\.(0|[1-9][0-9]{0,2})){3}", re.ASCII)

_PUBLIC_V6 = ipaddress.IPv6Network("2000::/3")
"""All that IANA has given out for global unicast; everything outside is local, mapped, translated or reserved."""

_REFUSED = tuple(
    ipaddress.ip_network(block)
    for block in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; metadata of some clouds
        "127.0.0.0/8",
        "168.63.129.16/32",  # host services of Azure, inside an otherwise public block
        "169.254.0.0/16",  # link-local, metadata
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "2001::/23",  # protocol assignments, Teredo
        "2001:db8::/32",
        "2002::/16",  # 6to4: an IPv4 address, also a private one, in disguise
        "3fff::/20",
    )
)
"""The special-purpose registries of IANA (RFC 6890 and its successors), whatever this Python's tables know."""

_resolver = ThreadPoolExecutor(max_workers=8, thread_name_prefix="resolve")
"""Its own threads: a name whose servers do not answer holds up nobody but other look-ups."""


class AddressRefused(IzzyError):
    """The host may not be connected to, whoever asks. `extra` has the `host` as it was given."""

    default_code: ClassVar[str] = "address_refused"
    default_message: ClassVar[str] = "This address is not on the public internet."
    status = 400


class NameNotFound(IzzyError):
    """The name does not resolve, or not within `RESOLVE_SECONDS`."""

    default_code: ClassVar[str] = "name_not_found"
    default_message: ClassVar[str] = "There is no host of this name."
    status = 400


@dataclass(frozen=True, slots=True)
class ResolvedAddress:
    """Where to connect: `address` is an IP address as text. `host` is the canonical name it was checked for (what
    TLS and the Host header must name)."""

    host: str
    address: str
    port: int


@dataclass(frozen=True, slots=True)
class PrivateHost:
    """One entry of `IZZY_PRIVATE_HOSTS`. No `port`: any; no `address`: what the name resolves to, unchecked."""

    host: str
    port: int | None = None
    address: str | None = None


async def resolve_public(
    host: str, port: int, *, also: Iterable[PrivateHost] = ()
) -> list[ResolvedAddress]:
    """The checked addresses of `host`, in the order of the resolver, at most eight; never an empty list.

    `host` is a name or an IP address (IPv6 with or without brackets). `also` are hosts allowed for this call beside
    those of `IZZY_PRIVATE_HOSTS`. Raises `AddressRefused` where the name is malformed or *any* of its addresses is
    not public, and `NameNotFound`.
    """
    name = canonical_host(host)
    if not 0 < port < 65536:
        raise AddressRefused(f"{port} is not a port.", host=host)
    private = _private(name, port, also)
    if private and private.address:
        return [ResolvedAddress(name, private.address, port)]
    literal = ip_literal(name)
    found = [str(literal)] if literal else await _look_up(name, port)
    if not private:
        if not literal and "." not in name:
            message = f"{host} is a name of a local network; only public hosts can be reached."
            raise AddressRefused(message, host=host)
        if not all(is_public(ipaddress.ip_address(address)) for address in found):
            is_what = "is" if literal else "leads to"
            raise AddressRefused(
                f"{host} {is_what} an address that is not on the public internet.", host=host
            )
    return [ResolvedAddress(name, address, port) for address in found[:MAX_ADDRESSES]]


def canonical_host(host: str) -> str:
    """The one spelling of a host: lower case, ASCII (IDNA), no brackets, no dot at its end; an IP address in its
    shortest form. Raises `AddressRefused` for what is neither a name nor an IP address in its usual form: user
    parts, ports, zones, spaces, and numbers that some resolvers read as IPv4 (`2130706433`, `0x7f.1`, `0177.0.0.1`).
    """
    if host.startswith("["):
        return str(_ip_v6(host.removeprefix("[").removesuffix("]"), host))
    if ":" in host:
        return str(_ip_v6(host, host))
    name = _ascii(host).removesuffix(".")
    labels = name.split(".")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise AddressRefused(f"{host!r} is not the name of a host.", host=host)
    if _NUMBER.fullmatch(labels[-1]):
        return str(_ip_v4(name, host))
    return name


def is_public(address: IPAddress) -> bool:
    """Whether the address is globally routable unicast and no other address in disguise."""
    if isinstance(address, IPv6Address) and address not in _PUBLIC_V6:
        return False
    if any(address.version == block.version and address in block for block in _REFUSED):
        return False
    return address.is_global and not address.is_multicast


def ip_literal(name: str) -> IPAddress | None:
    """The IP address that a canonical host is, or None for a name."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def private_hosts(entries: Iterable[str] | None = None) -> list[PrivateHost]:
    """The entries of `IZZY_PRIVATE_HOSTS`, or of `entries`: `host`, `host:port`, `host=address`,
    `host:port=address`, with IPv6 hosts in brackets. Raises `AddressRefused` for one that is malformed."""
    if entries is None:
        entries = settings.IZZY_PRIVATE_HOSTS
    return [_private_entry(entry) for entry in entries]


def _private_entry(entry: str) -> PrivateHost:
    place, _, address = (part.strip() for part in entry.partition("="))
    host, port = place, None
    if place.count(":") == 1 or "]:" in place:
        host, _, digits = place.rpartition(":")
        port = int(digits) if re.fullmatch(r"[0-9]{1,5}", digits, re.ASCII) else 0
    if port is not None and not 0 < port < 65536:
        raise AddressRefused(f"{entry!r} is not of the form host:port=address.", host=entry)
    if address and not ip_literal(address):
        raise AddressRefused(f"{address!r} is not an IP address.", host=entry)
    return PrivateHost(canonical_host(host), port, address or None)


def _private(name: str, port: int, also: Iterable[PrivateHost]) -> PrivateHost | None:
    for entry in [*also, *private_hosts()]:
        if entry.host == name and entry.port in {None, port}:
            return entry
    return None


def _ascii(host: str) -> str:
    """As browsers do (UTS 46): full-width digits, other dots and ligatures become what they stand for."""
    if host.isascii():
        return host.lower()
    import idna  # for the few that are not ASCII: its tables take a while to load

    try:
        return idna.encode(host, uts46=True).decode()
    except (idna.IDNAError, UnicodeError) as error:
        raise AddressRefused(f"{host!r} is not the name of a host.", host=host) from error


def _ip_v4(name: str, host: str) -> IPv4Address:
    """Only the usual form counts: what else resolvers take for an address differs from one to the other."""
    if not _DOTTED_QUAD.fullmatch(name):
        raise AddressRefused(f"{host} is a number, not the name of a host.", host=host)
    try:
        return IPv4Address(name)
    except ValueError as error:
        raise AddressRefused(f"{host} is not an IP address.", host=host) from error


def _ip_v6(text: str, host: str) -> IPv6Address:
    try:
        address = IPv6Address(text)
    except ValueError as error:
        raise AddressRefused(f"{host!r} is not the name of a host.", host=host) from error
    if address.scope_id:
        raise AddressRefused(f"{host} names a network card of this machine.", host=host)
    return address


async def _look_up(name: str, port: int) -> list[str]:
    loop = asyncio.get_running_loop()
    asked = loop.run_in_executor(_resolver, _addresses, name, port)
    try:
        found = await asyncio.wait_for(asked, RESOLVE_SECONDS)
    except TimeoutError as error:
        raise NameNotFound(f"Nobody says where {name} is.", host=name) from error
    except (OSError, UnicodeError) as error:
        raise NameNotFound(f"There is no host called {name}.", host=name) from error
    if not found:
        raise NameNotFound(f"There is no host called {name}.", host=name)
    return found


def _addresses(name: str, port: int) -> list[str]:
    answers = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    # A zone (`fe80::1%eth0`) belongs to link-local addresses alone; without it they parse, and are refused.
    return list(dict.fromkeys(str(answer[4][0]).partition("%")[0] for answer in answers))
