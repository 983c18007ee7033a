"""`manage.py doctor` before anything was set up, and what it says of the address."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from pytest_django import Settings

from izzysite.management.commands.doctor import check_address


def test_on_an_empty_database_it_says_what_to_do(tmp_path: Path) -> None:
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "izzysite.settings",
        "IZZY_DATA_DIR": str(tmp_path),
        "COLUMNS": "300",
    }
    command = [sys.executable, "manage.py", "doctor"]
    done = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "The database is not set up yet." in done.stdout
    assert "manage.py migrate" in done.stdout
    assert "The check itself failed" not in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.django_db
def test_a_narrow_window_cuts_no_address(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.IZZY_HOST = "a-host-whose-name-is-longer-than-its-column.invalid"
    monkeypatch.setenv("COLUMNS", "60")
    with contextlib.suppress(SystemExit):
        call_command("doctor")
    said = capsys.readouterr().out
    assert "…" not in said.replace("https://…", "")
    assert connection.display_name in said.partition("\n┏")[0]


class Site(BaseHTTPRequestHandler):
    """Izzy at /healthz, as far as the doctor looks; a page of somebody else's where `body` is one."""

    body = b'{"status": "ok"}'

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def site(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Site]]:
    handler = type("Handler", (Site,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        settings.IZZY_HOST, settings.IZZY_PORT = "127.0.0.1", server.server_port
        yield handler
        server.shutdown()


def test_it_tells_izzy_from_somebody_else_at_its_address(site: type[Site]) -> None:
    assert check_address().ok
    site.body = b"<h1>Another site</h1>"
    result = check_address()
    assert not result.ok
    assert "IZZY_PORT" in result.hint


def test_it_says_where_nothing_listens(settings: Settings) -> None:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        settings.IZZY_HOST, settings.IZZY_PORT = "127.0.0.1", probe.getsockname()[1]
    result = check_address()
    assert not result.ok
    assert "Nothing answers" in result.message
