"""Izzy as an app of the browser: manifest, icons, service worker, offline page."""

import json
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from izzysite.static_files import static_version
from scripts.icons import drawn, png

pytestmark = pytest.mark.django_db


def test_the_manifest_names_icons_that_are_there(client: Client) -> None:
    answer = client.get("/manifest.webmanifest")
    body = json.loads(answer.content)
    assert answer["Content-Type"] == "application/manifest+json"
    assert (body["name"], body["start_url"], body["display"]) == ("Izzy", "/", "standalone")
    assert {icon["purpose"] for icon in body["icons"]} == {"any", "maskable"}
    for icon in body["icons"]:
        name = icon["src"].removeprefix("/static/").removeprefix(f"{static_version()}/")
        path = Path(str(finders.find(name)))
        size = int.from_bytes(path.read_bytes()[16:20], "big")
        assert icon["sizes"] == f"{size}x{size}"


def test_the_icons_are_what_the_script_draws() -> None:
    path = Path(str(finders.find("img/icon-192.png")))
    assert path.read_bytes() == png(drawn(192, round_corners=True))


def test_the_service_worker_keeps_the_offline_page_and_nothing_of_anybody(client: Client) -> None:
    answer = client.get("/service-worker.js")
    text = answer.content.decode()
    kept = json.loads(text.split("const KEPT = ")[1].split(";\n")[0])
    assert answer["Content-Type"].startswith("text/javascript")
    assert kept[0] == "/offline/"
    assert all(url == "/offline/" or url.startswith("/static/") for url in kept)
    assert 'caches.match("/offline/")' in text
    page = client.get("/offline/").content.decode()
    assert "You are offline" in page
    for url in kept[1:]:
        if url.endswith((".css", ".js")):
            assert url in page
