"""Ports for servers that tests start as processes of their own."""

import random
import socket
from contextlib import closing

BELOW_THE_SYSTEMS_OWN = range(11_000, 32_000)
"""From 32768 on the system gives ports to whoever connects somewhere: one that was free a moment ago is taken by then."""


def free_port() -> int:
    """A port of the loopback interface on which nobody listens."""
    for port in random.sample(BELOW_THE_SYSTEMS_OWN, 100):
        with closing(socket.socket()) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("there is no free port")
