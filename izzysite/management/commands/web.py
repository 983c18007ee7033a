"""`manage.py web`: the web server alone (pages, REST and websockets), as `serve` starts it."""

import gc
import logging
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections
from django.urls import get_resolver
from django.utils.module_loading import import_string

from apps.core.db.troubles import refuse_other_version
from apps.core.db.writing import refuse_unlocked
from apps.core.http.server import LEAVING_SECONDS, WebServer
from apps.core.http.sharing import bound, can_share, listen_arguments
from apps.core.http.siblings import join, leave
from apps.core.jobs.parent_watch import BEAT_SECONDS, heartbeat, wait_at_gate, watch_parent
from apps.core.keys import refuse_other_keys
from apps.core.registries import drains, warmups

logger = logging.getLogger(__name__)

ENDING_SECONDS = 5.0


class Command(BaseCommand):
    help = "Runs the web server alone. Any other ASGI server can run izzysite.asgi:application as well."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        listen_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        watch_parent()
        gc.disable()  # as while the apps were loaded
        application = import_string(settings.ASGI_APPLICATION)
        get_resolver().url_patterns  # noqa: B018  loads the views now and not with the first request
        gc.enable()
        if not wait_at_gate():
            refuse_other_version()
        refuse_other_keys()
        refuse_unlocked()
        sockets = listeners(options["host"], options["port"])
        server = WebServer(
            application,
            ready=lambda: threading.Thread(target=warm_up, name="warm-up", daemon=True).start(),
            beat=heartbeat(),
            beat_seconds=BEAT_SECONDS,
            drains=list(drains.values()),
            drain_seconds=settings.IZZY_DRAIN_SECONDS,
            ending=lambda: leave_within(LEAVING_SECONDS + ENDING_SECONDS),
        )
        try:
            server.run(sockets)
        finally:
            leave()
            leave_within(ENDING_SECONDS)


def listeners(host: str, port: int) -> list[socket.socket]:
    """The socket to listen at; where processes share it, also this one's own. CommandError where the address is not to be had."""
    shared = settings.IZZY_WEB_PROCESSES > 1 and can_share()
    try:
        sockets = [bound(host, port, shared=shared)]
    except OSError as error:
        raise CommandError(f"Cannot listen on {host}:{port}: {error.strerror or error}.") from error
    if shared:
        address = join(Path(settings.IZZY_DATA_DIR))
        sockets.append(socket.socket(socket.AF_UNIX))
        sockets[-1].bind(address)
        Path(address).chmod(0o600)
    return sockets


def leave_within(seconds: float) -> None:
    """Ends the process after so many seconds at most. Python would wait for ever for a request's thread that waits in turn for the event loop, which
    has ended: as where the database was out of reach."""
    ending = threading.Timer(seconds, os._exit, args=[0])
    ending.daemon = True
    ending.start()


def warm_up() -> None:
    """Loads what is slow once the process answers, so that the first message does not wait for it."""
    for name, warm in warmups.items():
        begun = time.perf_counter()
        try:
            warm()
        except Exception:  # a part that cannot be loaded now reports itself when it is used
            logger.exception("warm-up of %s failed", name)
        else:
            logger.debug("warm-up of %s took %.2f s", name, time.perf_counter() - begun)
    connections.close_all()
    # What is loaded now stays: a full collection that walks through all of it stops every request for a tenth of a second.
    gc.collect()
    gc.freeze()
