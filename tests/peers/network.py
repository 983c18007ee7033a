"""Hosts of their own on this machine: network namespaces on one bridge, any two of which can be cut off from each other.

The bridge lies in a namespace too: a change of this machine's interfaces breaks off what browsers beside load. What is to reach the
hosts runs in a thread that has entered it (`Network.run`). Needs Linux, root and `ip` (iproute2); `network` skips where
they are missing, and fails in CI.
"""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

NET = "10.213.77"
NETWORK_NAMESPACE = 0x40000000  # CLONE_NEWNET; os.setns is of Python 3.12


@dataclass(frozen=True)
class Host:
    """A namespace with an address of its own."""

    name: str
    address: str
    hub: str
    """The namespace of the bridge."""
    cable: str
    """Its end of the cable there."""

    def command(self, *command: str, user: int = 0) -> list[str]:
        """The command, so that it runs on this host, as this user."""
        who = [f"--setuid={user}", f"--setgid={user}"] if user else []
        return ["nsenter", f"--net=/run/netns/{self.name}", *who, "--", *command]

    def cut_off(self, other: "Host") -> None:
        """Everything that the two send each other is lost from now on, without a word to either. Any two, not more."""
        for host in (self, other):
            _ip("-n", host.hub, "link", "set", host.cable, "type", "bridge_slave", "isolated", "on")

    def heal(self, other: "Host") -> None:
        for host in (self, other):
            _ip("-n", host.hub, "link", "set", host.cable, "type", "bridge_slave", "isolated", "off")


@dataclass(frozen=True)
class Network:
    hosts: list[Host]
    hub: str
    address: str
    """At which the hosts reach what runs at the hub."""

    def run(self, work: Callable[[], None]) -> None:
        """Runs it at the hub, in a thread; what it starts is there too."""
        with ThreadPoolExecutor(1, initializer=_enter, initargs=(self.hub,)) as pool:
            pool.submit(work).result()


@contextmanager
def network(number: int) -> Iterator[Network]:
    """Makes this many hosts that reach each other."""
    missing = [each for each in ("ip", "nsenter") if shutil.which(each) is None]
    missing += ["root"] if os.geteuid() else []
    if missing:
        why = f"needs {' and '.join(missing)}"
        if os.environ.get("CI") and os.geteuid() == 0:
            pytest.fail(why)
        pytest.skip(why)
    hub, address = f"izzy{os.getpid()}", f"{NET}.254"
    with ExitStack() as stack:
        _ip("netns", "add", hub)
        stack.callback(_ip, "netns", "del", hub)
        _ip("-n", hub, "link", "set", "lo", "up")
        _ip("-n", hub, "link", "add", "hub", "type", "bridge")
        _ip("-n", hub, "addr", "add", f"{address}/24", "dev", "hub")
        _ip("-n", hub, "link", "set", "hub", "up")
        yield Network([_host(stack, hub, place) for place in range(1, number + 1)], hub, address)


def _host(stack: ExitStack, hub: str, place: int) -> Host:
    host = Host(f"{hub}-{place}", f"{NET}.{place}", hub, f"v{place}")
    _ip("netns", "add", host.name)
    stack.callback(_ip, "netns", "del", host.name)
    _ip("-n", hub, "link", "add", host.cable, "type", "veth", "peer", "name", "eth0", "netns", host.name)
    _ip("-n", hub, "link", "set", host.cable, "master", "hub", "up")
    _ip("-n", host.name, "link", "set", "lo", "up")
    _ip("-n", host.name, "addr", "add", f"{host.address}/24", "dev", "eth0")
    _ip("-n", host.name, "link", "set", "eth0", "up")
    return host


def _enter(name: str) -> None:
    """Puts this thread, and what it starts, into the namespace."""
    with Path("/run/netns", name).open() as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), NETWORK_NAMESPACE):
            raise OSError(ctypes.get_errno(), "setns")


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (arguments, done.stderr)
