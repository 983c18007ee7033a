"""Where nothing can be written (a full disk, lost permissions): what is read still comes, and the rest is told in words."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client

from apps.accounts.models import User
from apps.memory.models import Memory

pytestmark = pytest.mark.django_db(transaction=True)

NOTE = {"content": "The boiler was serviced in May"}


def writable(yes: bool) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"PRAGMA query_only={'OFF' if yes else 'ON'}")
        else:  # as at a server that follows another
            cursor.execute(f"SET default_transaction_read_only TO {'off' if yes else 'on'}")


def test_programs_read_on_and_are_told_why_nothing_is_saved(
    alice: User, api: Callable[..., Client]
) -> None:
    client = api(alice)
    assert client.post("/api/v1/memories/", NOTE, content_type="application/json").status_code == 201
    client = api(alice)  # with a token whose first use is to be noted
    writable(False)
    try:
        read = client.get("/api/v1/memories/")
        refused = client.post("/api/v1/memories/", NOTE, content_type="application/json")
    finally:
        writable(True)
    assert (read.status_code, read.json()["count"]) == (200, 1)
    assert refused.status_code == 503
    assert refused.json()["code"] == "database_unavailable"
    said = "cannot be written" if connection.vendor == "sqlite" else "takes no writes"
    assert said in refused.json()["message"]
    assert client.post("/api/v1/memories/", NOTE, content_type="application/json").status_code == 201
    assert Memory.objects.for_user(alice).count() == 2
