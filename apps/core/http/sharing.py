"""One port for several processes: on Linux the kernel deals connections out among those that listen, and passes over one that has
died or not begun yet."""

import socket
import sys
from argparse import ArgumentParser

from django.conf import settings


def listen_arguments(parser: ArgumentParser) -> None:
    """Adds the options of a command that listens."""
    parser.add_argument("--host", default=settings.IZZY_HOST, help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=settings.IZZY_PORT, help="port (%(default)s)")


def can_share() -> bool:
    return sys.platform == "linux"


def bound(host: str, port: int, *, shared: bool) -> socket.socket:
    """A socket that is bound to a port; to a shared one others may be bound in the same way. It does not listen yet. OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # By name, as accepted connections take it over: else asyncio's own loop delays small answers.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made
