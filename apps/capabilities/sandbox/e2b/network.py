"""What a sandbox may reach, in the words of E2B's API."""

from collections.abc import Iterable
from typing import Any

ALL = "0.0.0.0/0"


def network_for(hosts: Iterable[str]) -> dict[str, Any]:
    """The allow-list of these hosts (`name` or `name:port`; E2B knows names alone); all else is denied. No way in."""
    names = sorted({host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host for host in hosts})
    return {"allow_out": names, "deny_out": [ALL]} if names else {"deny_out": [ALL]}
