"""Ports for servers that tests start as processes of their own."""

import os
import random
import socket
from contextlib import closing
from itertools import cycle

BELOW_THE_SYSTEMS_OWN = range(11_000, 32_000)
"""From 32768 on the system gives ports to whoever connects somewhere: one that was free a moment ago is taken by then."""
SHARES = 8


def _own_ports() -> "cycle[int]":
    """This worker's share of the ports, each once before one comes again: another test's server may not listen yet."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % SHARES
    ports = list(BELOW_THE_SYSTEMS_OWN[worker::SHARES])
    first = random.SystemRandom().randrange(len(ports))
    return cycle(ports[first:] + ports[:first])


_ports = _own_ports()


def free_port() -> int:
    """A port of the loopback interface on which nobody listens, and which no other test was given."""
    for _ in range(100):
        port = next(_ports)
        with closing(socket.socket()) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("there is no free port")
