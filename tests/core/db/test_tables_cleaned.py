"""After a purge PostgreSQL's tables are written anew, unless somebody may still see what was in them."""

import threading
from collections.abc import Callable, Iterator

import pytest
from django.db import connection, transaction
from django.utils import timezone

from apps.core.db.writing import LOCK_SECONDS
from apps.core.models import InstanceState
from apps.core.purging import remains
from apps.search.backends import postgresql
from tests.waiting import PATIENCE

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite's file is cleaned otherwise"),
]


def test_they_are_cleaned_where_nobody_looks() -> None:
    InstanceState.objects.create(key="any", value={})
    assert remains._vacuumed()


@pytest.fixture
def looking() -> Iterator[Callable[[], None]]:
    """Somebody looks at the rows of one moment, as a backup does, until the test calls it."""
    begun, over = threading.Event(), threading.Event()

    def look() -> None:
        try:
            with transaction.atomic():
                with connection.cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                InstanceState.objects.count()
                begun.set()
                over.wait(PATIENCE)
        finally:
            connection.close()

    def end() -> None:
        over.set()
        thread.join(PATIENCE)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        assert begun.wait(PATIENCE)
        yield end
    finally:
        end()


def test_they_wait_for_a_transaction_of_before(
    looking: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remains, "WAIT_SECONDS", 0.2)
    InstanceState.objects.create(key="any", value={})
    assert not remains._vacuumed()
    looking()
    assert remains._vacuumed()


def test_a_purge_during_a_backup_is_done_and_the_index_is_written_anew_later(
    looking: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "MERGE_LOCK_SECONDS", 1)
    before = timezone.now()
    remains.scrub_request()
    assert remains.scrubbed_at(before) is None
    assert indexes() == [("search_terms_postings", True)]
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == (f"{LOCK_SECONDS}s",)
    looking()
    remains.sweep()
    assert remains.scrubbed_at(before) is not None


def indexes() -> list[tuple[str, bool]]:
    """Those of full text, and whether each is whole."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexrelid::regclass::text, indisvalid FROM pg_index "
            "WHERE indexrelid::regclass::text LIKE 'search_terms_postings%'"
        )
        return list(cursor.fetchall())
