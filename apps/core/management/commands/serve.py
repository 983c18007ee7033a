"""`manage.py serve`: everything Izzy needs, in one process tree."""

import os
import socket
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.core.checks import unsafe_settings
from apps.core.registries import console_notes
from apps.core.supervisor import Supervisor

PORT_SECONDS = 6.0
"""How long to wait for the port: a server that was killed a moment ago needs this long to let go of it."""


class Command(BaseCommand):
    help = "Runs Izzy: brings the database up to date, then starts the web server and the background worker."
    # The full checks load every address of the site, which takes the web process long enough; `doctor` runs them.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default=settings.IZZY_HOST, help="address to listen on (%(default)s)")
        parser.add_argument("--port", type=int, default=settings.IZZY_PORT, help="port (%(default)s)")

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = str(options["host"]), int(options["port"])
        # The children read their settings anew: what the command line says must reach them.
        os.environ["IZZY_HOST"], os.environ["IZZY_PORT"] = host, str(port)
        for warning in unsafe_settings(None):
            self._say(f"Warning: {warning.msg} {warning.hint}")
        wait_for_port(host, port)
        manage = Path(settings.BASE_DIR) / "manage.py"
        supervisor = Supervisor({"web": ["web"], "worker": ["worker"]}, manage, self._say)
        try:
            supervisor.start("web")
            call_command("migrate", interactive=False, verbosity=0)
            supervisor.open_gate()
            if supervisor.watch(until=lambda: answers(host, port)):
                self._greet(host, port)
                supervisor.start("worker")
                supervisor.watch()
        finally:
            self._say("Stopping.")
            supervisor.stop()

    def _greet(self, host: str, port: int) -> None:
        address = settings.IZZY_PUBLIC_URL or f"http://{shown_host(host)}:{port}"
        self._say(f"\n  Izzy is running at {address}   (Ctrl+C stops it)")
        for _, note in console_notes:
            if text := note(address):
                self._say(f"  {text}")
        self._say("")

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def shown_host(host: str) -> str:
    """How a browser on this machine names the address that is listened on."""
    if host in {"0.0.0.0", "::", ""}:  # noqa: S104
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def answers(host: str, port: int) -> bool:
    with closing(socket.socket(_family(host), socket.SOCK_STREAM)) as probe:
        probe.settimeout(1)
        return probe.connect_ex((shown_host(host).strip("[]"), port)) == 0


def wait_for_port(host: str, port: int) -> None:
    """Raise CommandError where the address cannot be listened on, also not after a few seconds."""
    deadline = time.monotonic() + PORT_SECONDS
    while error := _bind_error(host, port):
        if time.monotonic() > deadline:
            raise CommandError(
                f"Cannot listen on {host}:{port}: {error}. Is it in use? Try --port {port + 1}."
            )
        time.sleep(0.2)


def _bind_error(host: str, port: int) -> str:
    with closing(socket.socket(_family(host), socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            return getattr(error, "strerror", "") or str(error)
    return ""


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
