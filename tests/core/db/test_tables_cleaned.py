"""After a purge PostgreSQL's tables are written anew, unless somebody may still see what was in them."""

import threading

import pytest
from django.db import connection, transaction

from apps.core.models import InstanceState
from apps.core.purging import remains
from tests.waiting import PATIENCE

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite's file is cleaned otherwise"),
]


def test_they_are_cleaned_where_nobody_looks() -> None:
    InstanceState.objects.create(key="any", value={})
    assert remains._vacuumed()


def test_they_wait_for_a_transaction_of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remains, "WAIT_SECONDS", 0.2)
    InstanceState.objects.create(key="any", value={})
    looking, over = threading.Event(), threading.Event()

    def look() -> None:
        try:
            with transaction.atomic():
                with connection.cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                InstanceState.objects.count()
                looking.set()
                over.wait(PATIENCE)
        finally:
            connection.close()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        assert looking.wait(PATIENCE)
        assert not remains._vacuumed()
    finally:
        over.set()
        thread.join(PATIENCE)
    assert remains._vacuumed()
