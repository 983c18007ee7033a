"""`/metrics`: who may read it, what it shows, and that its documentation is whole."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings as django_settings
from django.db import DatabaseError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.models import User
from apps.core.http import observed as _observed  # noqa: F401  declares the figures of requests
from apps.core.metrics import processes
from apps.core.metrics.base import figures, queues
from apps.core.metrics.exposition import SHARED
from apps.memory.models import CaptureWindow

SECRET = "a-token-for-the-figures"


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, settings: Settings) -> Iterator[None]:
    settings.IZZY_DATA_DIR = tmp_path
    yield
    processes.metrics_close()


def scraped(client: Client) -> dict[str, float]:
    response = client.get("/metrics")
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/plain; version=")
    lines = response.content.decode().splitlines()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))
    }


@pytest.fixture
def scraper(db: None, settings: Settings) -> Client:
    settings.IZZY_METRICS_TOKEN = SECRET
    return Client(headers={"authorization": f"Bearer {SECRET}"})


@pytest.mark.django_db
@pytest.mark.parametrize("sent", ["", "Bearer", f"Bearer {SECRET}", "Bearer izzy_made-up"])
def test_without_a_token_that_is_set_nobody_reads_the_figures(sent: str) -> None:
    response = Client(headers={"authorization": sent}).get("/metrics")
    assert response.status_code == 401
    assert "izzy_" not in response.content.decode().replace("izzy_made-up", "")
    assert response["WWW-Authenticate"].startswith("Bearer")


def test_another_token_than_the_one_that_is_set_is_refused(scraper: Client) -> None:
    for wrong in (SECRET[:-1], SECRET + "x", SECRET.upper(), "é"):
        response = Client(headers={"authorization": f"Bearer {wrong}"}).get("/metrics")
        assert response.status_code == 401, wrong


def test_a_superuser_needs_the_scope_admin_and_nobody_else_may(
    admin: User, alice: User, api: Callable[..., Client], sign_in: Callable[[User], Client]
) -> None:
    assert scraped(api(admin, "admin"))["izzy_database_up"] == 1
    assert api(admin, "read", "write").get("/metrics").status_code == 403
    assert api(alice).get("/metrics").status_code == 403
    kept = api(admin, "admin")
    User.objects.filter(pk=admin.pk).update(is_superuser=False)
    assert kept.get("/metrics").status_code == 403
    User.objects.filter(pk=admin.pk).update(is_superuser=True)
    assert sign_in(admin).get("/metrics").status_code == 401


def test_rows_that_wait_are_shown_with_their_age(scraper: Client, alice: User) -> None:
    now = timezone.now()
    for hours in (-2, -1, 1):
        CaptureWindow.objects.create(
            user=alice, conversation_id=uuid4(), due_at=now + timedelta(hours=hours)
        )
    found = scraped(scraper)
    assert found['izzy_queue_rows{queue="capture"}'] == 2
    assert 7200 <= found['izzy_queue_overdue_seconds{queue="capture"}'] < 7300
    assert found['izzy_queue_rows{queue="imports"}'] == 0


def test_a_scrape_asks_the_database_twice_a_queue_at_most(scraper: Client) -> None:
    with CaptureQueriesContext(
        connection,
    ) as asked:
        scraped(scraper)
    assert 0 < len(asked) <= 2 * len(queues)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="EXPLAIN QUERY PLAN is SQLite's")
def test_no_queue_is_found_by_going_through_a_table(scraper: Client, settings: Settings) -> None:
    settings.IZZY_EMBEDDER = "ollama:some-model"
    with CaptureQueriesContext(connection) as asked:
        scraped(scraper)
    statements = [query["sql"] for query in asked if "SELECT" in query["sql"]]
    assert len(statements) >= len(queues)
    for statement in statements:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
            plan = [row[3] for row in cursor.fetchall()]
        scans = [step for step in plan if re.match(r"SCAN (?!\(?subquery)", step)]
        assert [step for step in scans if "INDEX" not in step] == [], statement


def test_a_database_that_does_not_answer_is_a_figure_too(
    scraper: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> Any:
        raise DatabaseError("gone")

    monkeypatch.setitem(queues, "capture", gone)
    found = scraped(scraper)
    assert found["izzy_database_up"] == 0
    assert "izzy_disk_free_bytes" in found


def test_the_table_of_figures_is_whole() -> None:
    text = (Path(django_settings.BASE_DIR) / "docs" / "operations.md").read_text()
    rows = re.findall(r"^\| `(izzy_\w+)` \| (\w+) \|(.*?)\|", text, re.MULTILINE)
    documented = {name: (kind, labels.strip()) for name, kind, labels in rows}
    ours = [figure for name, figure in figures.items() if name.startswith("izzy_")]
    counted = {
        figure.name: (figure.kind, ", ".join(f"`{label}`" for label in figure.labels)) for figure in ours
    }
    assert {name: documented.get(name) for name in counted} == counted
    assert {name for name, (kind, _) in documented.items() if kind == "rows"} == set(SHARED)
    assert set(documented) == set(counted) | set(SHARED)
