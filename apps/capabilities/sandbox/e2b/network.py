"""A sandbox's network rules in terms of E2B's API."""

from collections.abc import Collection
from typing import Any

from apps.capabilities.sandbox.layers.index import PUBLIC_FILES, PUBLIC_INDEX

ALL = "0.0.0.0/0"
ANY_PUBLIC = "*"
PRIVATE = ["10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"]
PACKAGE_HOSTS = (PUBLIC_INDEX, PUBLIC_FILES)


def network_for(hosts: Collection[str]) -> dict[str, Any]:
    """The allow-list of these hosts (`name` or `name:port`; E2B knows names alone); all else is denied. `*` is any
    public host."""
    if ANY_PUBLIC in hosts:
        return {"deny_out": PRIVATE}
    names = sorted({host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host for host in hosts})
    return {"allow_out": names, "deny_out": [ALL]} if names else {"deny_out": [ALL]}
