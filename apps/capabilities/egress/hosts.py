"""Which hosts may be reached: names with a port each, or 80 and 443 where none is named."""

from collections.abc import Iterable
from dataclasses import dataclass

from apps.core.errors import InvalidInput
from apps.core.http.addresses import AddressRefused, canonical_host

ANY_PUBLIC = "*"
USUAL_PORTS = frozenset({80, 443})


@dataclass(frozen=True, slots=True)
class HostRule:
    host: str
    port: int | None = None

    def permits(self, host: str, port: int) -> bool:
        return host == self.host and (port in USUAL_PORTS if self.port is None else port == self.port)

    def __str__(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"


def host_rule(text: str) -> HostRule:
    """From `name` or `name:port`. Raises InvalidInput."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or port.endswith("]"):
        host, port = text.strip(), ""
    try:
        name = canonical_host(host)
        number = int(port) if port.isascii() and port.isdigit() else 0
    except (AddressRefused, ValueError):
        raise InvalidInput(f"{text[:100]!r} is no host. Give names such as api.example.org.") from None
    if colon and port and not 0 < number < 65536:
        raise InvalidInput(f"{text[:100]!r} has no valid port.", field="hosts")
    return HostRule(name, number or None)


class AllowList:
    """Grows while the sandbox of a build runs; the entry `*` permits any host that is public."""

    def __init__(self, entries: Iterable[str]) -> None:
        self._rules: list[HostRule] = []
        self._any = False
        self.add(entries)

    def add(self, entries: Iterable[str]) -> None:
        for entry in entries:
            if entry == ANY_PUBLIC:
                self._any = True
            else:
                self._rules.append(host_rule(entry))

    def permits(self, host: str, port: int) -> bool:
        """`host` in its canonical spelling."""
        return (self._any and port in USUAL_PORTS) or any(rule.permits(host, port) for rule in self._rules)

    def __str__(self) -> str:
        return ", ".join(map(str, self._rules)) or "none"
