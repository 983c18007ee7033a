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
from apps.core.http.edge import BACKLOG
from apps.core.http.sharing import bound, can_share, listen_arguments
from apps.core.http.siblings import join
from apps.core.jobs.parent_watch import BEAT_SECONDS, heartbeat, wait_at_gate, watch_parent
from apps.core.keys import refuse_other_keys
from apps.core.registries import drains, warmups

logger = logging.getLogger(__name__)

HTTP_BUFFER = 64 * 1024
ENDING_SECONDS = 5.0


class Command(BaseCommand):
    help = "Runs the web server alone. Any other ASGI server can run izzysite.asgi:application as well."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        listen_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        watch_parent()
        # Here and not above: importing daphne installs its event loop, which no other command wants.
        from daphne.endpoints import build_endpoint_description_strings

        from apps.core.http.server import WebServer

        gc.disable()  # as while the apps were loaded
        application = import_string(settings.ASGI_APPLICATION)
        get_resolver().url_patterns  # noqa: B018  loads the views now and not with the first request
        gc.enable()
        if not wait_at_gate():
            refuse_other_version()
        refuse_other_keys()
        refuse_unlocked()
        endpoints = build_endpoint_description_strings(host=options["host"], port=options["port"])
        shared = listener(options["host"], options["port"])
        server = WebServer(
            listener=shared,
            inner=join(Path(settings.IZZY_DATA_DIR)) if shared else "",
            beat=heartbeat(),
            beat_seconds=BEAT_SECONDS,
            drains=list(drains.values()),
            drain_seconds=settings.IZZY_DRAIN_SECONDS,
            application=application,
            endpoints=[f"{endpoint}:backlog={BACKLOG}" for endpoint in endpoints],
            request_buffer_size=HTTP_BUFFER,
            server_name="izzy",
            ready_callable=lambda: threading.Thread(target=warm_up, name="warm-up", daemon=True).start(),
        )
        server.run()
        if server.failed:
            raise CommandError(f"Cannot listen on {options['host']}:{options['port']}; see above.")
        leave_soon()


def leave_soon() -> None:
    """Ends the process within ENDING_SECONDS. Python would wait for ever for a request's thread that waits in turn for the event
    loop, which has ended: as where the database was out of reach."""
    ending = threading.Timer(ENDING_SECONDS, os._exit, args=[0])
    ending.daemon = True
    ending.start()


def listener(host: str, port: int) -> socket.socket | None:
    """The socket of a process that shares its port with others; None where it has it for itself."""
    if settings.IZZY_WEB_PROCESSES == 1 or not can_share():
        return None
    try:
        shared = bound(host, port)
    except OSError as error:
        raise CommandError(f"Cannot listen on {host}:{port}: {error.strerror or error}.") from error
    shared.listen(BACKLOG)
    return shared


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
