"""Waiting for the writers under way shows what they have written."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections, transaction

from apps.core.db.writing import writers_wait, writing_for
from apps.core.ids import uuid7
from apps.core.models import InstanceState
from tests.waiting import PATIENCE


@pytest.mark.django_db(transaction=True)
def test_a_transaction_for_any_user_is_waited_for_even_before_it_has_written() -> None:
    began, go_on = threading.Event(), threading.Event()

    def write() -> None:
        try:
            with writing_for(uuid7()), transaction.atomic():
                began.set()
                assert go_on.wait(PATIENCE)
                InstanceState.objects.create(key="waited for")
        finally:
            connections.close_all()

    def wait() -> bool:
        try:
            writers_wait()
            return InstanceState.objects.filter(key="waited for").exists()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        writer = pool.submit(write)
        assert began.wait(PATIENCE)
        waiter = pool.submit(wait)
        with pytest.raises(TimeoutError):
            waiter.result(0.2)
        go_on.set()
        writer.result()
        assert waiter.result()
