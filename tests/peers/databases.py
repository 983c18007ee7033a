"""The database of a data directory that a process of its own uses: a file in it, or with `make test DB=postgresql` one on the
server, named after the directory."""

import hashlib
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.waiting import PATIENCE


class Database:
    """Looks at rows and changes them, as another process does. Parameters are written `?`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = "data_" + hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:24]

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which a process with this data directory finds it; the server's database is made when it is missing."""
        if not _server():
            return {}
        if not _on_server("SELECT 1 FROM pg_database WHERE datname = %s", self.name):
            _on_server(f"CREATE DATABASE {self.name}")
        return {"DATABASE_URL": _url(self.name)}

    def copy(self, folder: Path) -> None:
        """The database of a copy of the directory. A file is copied with the directory."""
        if _server():
            _on_server(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", self.name
            )
            _on_server(f"CREATE DATABASE {Database(folder).name} TEMPLATE {self.name}")

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        if _server():
            return _on(_url(self.name), query.replace("?", "%s"), *values)
        with closing(sqlite3.connect(self.folder / "izzy.sqlite3", timeout=PATIENCE)) as database:
            return database.execute(query, values).fetchall()

    def texts(self) -> dict[str, str]:
        """By table of the server, all that its rows hold, as text; a file is looked through where it lies."""
        if not _server():
            return {}
        tables = self.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        whole = "SELECT coalesce(string_agg(row_::text, ' '), '') FROM {} row_"
        return {name: self.rows(whole.format(name))[0][0] for (name,) in tables}

    def execute(self, statement: str, *values: Any) -> int:
        """Returns how many rows it changed."""
        if _server():
            return len(_on(_url(self.name), f"{statement.replace('?', '%s')} RETURNING 1", *values))
        with (
            closing(sqlite3.connect(self.folder / "izzy.sqlite3", timeout=PATIENCE)) as database,
            database,
        ):
            return database.execute(statement, values).rowcount


def _server() -> str:
    return os.environ.get("TEST_DATABASE_URL", "")


def _url(name: str) -> str:
    return f"{_server().rpartition('/')[0]}/{name}"


def _on_server(statement: str, *values: Any) -> list[tuple[Any, ...]]:
    return _on(_url("postgres"), statement, *values)


def _on(url: str, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    import psycopg  # what the tests on SQLite need not wait for

    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []
