"""`manage.py serve`: everything Izzy needs, in one process tree."""

import errno
import os
import socket
import stat
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import ERROR, run_checks
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection
from django.db.migrations.exceptions import InconsistentMigrationHistory

from apps.accounts.services import setup_note
from apps.core.backups import KEYS
from apps.core.db.alone import alone
from apps.core.db.pool import database_file
from apps.core.db.troubles import CARRIED_OVER, stale_message
from apps.core.health import IZZY, check_data_directory, check_disk, process_ended
from apps.core.http.sharing import bound, can_share, listen_arguments
from apps.core.jobs.running import data_directory_hold
from apps.core.jobs.supervisor import HeartbeatProbe, Probe, Supervisor, WebProbe
from apps.core.keys import refuse_other_keys

PORT_SECONDS = 6.0
"""How long to wait for the port: a server that was killed a moment ago needs this long to let go of it."""


class Command(BaseCommand):
    help = "Runs Izzy: brings the database up to date, then starts the web server and the background worker."
    # The full checks load every address of the site, which takes the web process long enough; `doctor` runs them.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        listen_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = str(options["host"]), int(options["port"])
        # The children read their settings anew: what the command line says must reach them.
        os.environ["IZZY_HOST"], os.environ["IZZY_PORT"] = host, str(port)
        # Of its children: the C library would keep a heap for each of a process's threads, 14 MB under load.
        os.environ.setdefault("MALLOC_ARENA_MAX", "2")
        close_database_file()
        self._check_settings()
        data_directory_hold(Path(settings.IZZY_DATA_DIR))
        wait_for_port(host, port)
        shared = settings.IZZY_WEB_PROCESSES > 1
        if shared and not can_share():
            raise CommandError("IZZY_WEB_PROCESSES above 1 needs Linux, which shares a port fairly.")
        # Nobody else gets it while all start again.
        reserved = bound(host, port, shared=True) if shared else None
        manage = Path(settings.BASE_DIR) / "manage.py"
        probes = web_probes(host, port)
        commands = {**{name: ["web"] for name in probes}, "worker": ["worker"]}
        supervisor = Supervisor(commands, manage, self._say, self._note)
        try:
            for name, probe in probes.items():
                supervisor.start(name, probe)
            update_database()
            refuse_other_keys()
            supervisor.open_gate()
            if supervisor.watch(until=lambda: answers(host, port)):
                address = settings.IZZY_PUBLIC_URL or f"http://{shown_host(host)}:{port}"
                self._say(f"\n  Izzy is running at {address}   (Ctrl+C stops it)")
                if len(probes) > 1:
                    self._say(f"  {len(probes)} web processes share it.")
                if text := setup_note(address):
                    self._say(f"  {text}")
                self._say("")
                supervisor.start("worker", HeartbeatProbe())
                supervisor.watch()
        finally:
            self._say("Stopping.")
            supervisor.stop()
            if reserved is not None:
                reserved.close()

    def _check_settings(self) -> None:
        for finding in run_checks(tags=[IZZY]):
            if finding.level >= ERROR:
                raise CommandError(f"{finding.msg} {finding.hint}")
            self._say(f"Warning: {finding.msg} {finding.hint}")
        if not (found := check_data_directory()).ok:
            raise CommandError(f"{found.message} {found.hint}")
        if not (found := check_disk()).ok:
            self._say(f"Warning: {found.message} {found.hint}")

    def _note(self, name: str, reason: str) -> None:
        process_ended(name, reason)
        connection.close()

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def shown_host(host: str) -> str:
    """How a browser on this machine names the address that is listened on."""
    if host in {"0.0.0.0", "::", ""}:  # noqa: S104
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def web_probes(host: str, port: int) -> dict[str, Probe]:
    """How each web process is asked whether it answers, by its name: one by itself over the port, of several, which share it,
    each by its heartbeat."""
    number = settings.IZZY_WEB_PROCESSES
    if number == 1:
        return {"web": WebProbe(shown_host(host).strip("[]"), port)}
    return {f"web {count}": HeartbeatProbe() for count in range(1, number + 1)}


def answers(host: str, port: int) -> bool:
    with closing(socket.socket(_family(host), socket.SOCK_STREAM)) as probe:
        probe.settimeout(1)
        return probe.connect_ex((shown_host(host).strip("[]"), port)) == 0


def close_database_file() -> None:
    """One that was copied here may be open to everybody who gets into the folder, as may the keys; what SQLite makes beside it is
    as it is."""
    keys = (Path(settings.IZZY_DATA_DIR) / name for name in KEYS)
    for file in (database_file(), *(key for key in keys if not key.is_symlink())):
        # It may be not there yet, or somebody else's: the checks tell what follows from that.
        with suppress(OSError):
            if file is not None and (mode := file.stat().st_mode) & stat.S_IRWXO:
                file.chmod(stat.S_IMODE(mode) & ~stat.S_IRWXO)


def update_database() -> None:
    """Make the database or bring it up to date. Raises CommandError where it is not this version's all the same."""
    try:
        with alone("prepare"):
            call_command("migrate", interactive=False, verbosity=0)
        stale = stale_message()
    except InconsistentMigrationHistory as error:
        stale = str(error)
    if stale:
        raise CommandError(f"{stale} {CARRIED_OVER}")


def wait_for_port(host: str, port: int) -> None:
    """Raise CommandError where the address cannot be listened on, also not after a few seconds."""
    deadline = time.monotonic() + PORT_SECONDS
    while error := _bind_error(host, port):
        if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
            raise CommandError(
                f"Cannot listen on {host}:{port}: {error.strerror or error}. {_advice(error, port)}"
            )
        time.sleep(0.2)


def _advice(error: OSError, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Izzy may run already; else set IZZY_PORT to another, such as {port - 1 if port > 65000 else port + 1}."
    if error.errno == errno.EACCES:
        return "Ports below 1024 are for root: set IZZY_PORT to another, such as 8000."
    return "Look at IZZY_HOST and IZZY_PORT."


def _bind_error(host: str, port: int) -> OSError | None:
    with closing(socket.socket(_family(host), socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error
        except OverflowError:
            return OSError(errno.EINVAL, "A port is a number up to 65535")
        except UnicodeError:
            return OSError(errno.EINVAL, "That is no host name")
    return None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
