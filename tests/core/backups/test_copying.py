"""A server's refusal of rows that are copied there is told without a word of anybody's."""

import os
from pathlib import Path

import pytest
from django.db import connection

from apps.core.db.copying import CopyFailed, database_copied
from apps.core.db.engines import sqlite_settings
from apps.core.models import InstanceState
from izzysite.env import database_settings
from tests.peers.postgres import execute, postgres

pytestmark = [
    pytest.mark.long,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("TEST_DATABASE_URL" in os.environ, reason="it begins with a file"),
]


def copy_to(address: str) -> str:
    """The error where it fails."""
    source = sqlite_settings(Path(connection.settings_dict["NAME"]))
    with (
        pytest.raises(CopyFailed) as failed,
        database_copied(source, database_settings(address, 4, "The address"), print),
    ):
        pass
    return str(failed.value)


def test_rows_and_databases_that_do_not_fit_are_told_without_a_text() -> None:
    InstanceState.objects.create(key="Grandmother's walnuts " * 50, value={})  # SQLite bounds no text
    with postgres() as server:
        execute(
            server.url("postgres"),
            "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0",
        )
        assert "has the encoding LATIN1" in copy_to(server.url("latin"))
        told = copy_to(server.url())
    table = InstanceState._meta.db_table
    assert told.startswith(f"{table}: the database says: value too long for type character varying")
    assert "walnuts" not in told
