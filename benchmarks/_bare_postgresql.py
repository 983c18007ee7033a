"""The least that steps cost on PostgreSQL: bare psycopg over the same rows, with statements prepared and values in binary."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from django.db import connection
from numpy.typing import NDArray

from apps.search.text.analysis import document_terms
from benchmarks._bare import Bare
from benchmarks.report import Timing, measure


class BarePostgreSQL(Bare):
    """A connection to the server's database at hand, without Django."""

    def __init__(self) -> None:
        given = connection.get_connection_params()
        names = ("dbname", "user", "password", "host", "port")
        self.connection: psycopg.Connection[Any] = psycopg.connect(
            **{name: given[name] for name in names if name in given}, autocommit=True
        )
        self.connection.prepare_threshold = 0
        self._cursor = self.connection.cursor(binary=True)

    def __exit__(self, *exc: object) -> None:
        self.connection.execute("DROP TABLE IF EXISTS bare")
        self.connection.close()

    def matching(self, owner: int, question: str) -> None:
        """The owner's passages with any word of a question, their owner inside each lexeme."""
        lexemes = " | ".join(f"'{owner}x{term}'" for term in document_terms(question)[1])
        sql = "SELECT passage_id FROM search_terms WHERE terms @@ %s::tsquery"
        self._cursor.execute(sql, (lexemes,)).fetchall()

    def full_text(self, owner: int, questions: Sequence[str]) -> Timing:
        return measure(lambda n: self.matching(owner, questions[n % len(questions)]))

    def load(self, user: str) -> Timing:
        """All vectors of a user as one value."""
        return measure(lambda _: self.vectors(user), 5)

    def vectors(self, user: str) -> NDArray[np.float32]:
        sql = "SELECT string_agg(vector, '') FROM search_passage WHERE user_id = %s::uuid"
        row = self._cursor.execute(sql, (user,)).fetchone()
        assert row is not None
        return np.frombuffer(row[0], dtype="<f2").reshape(-1, 256).astype(np.float32)

    def _insert(self, rows: list[tuple[int, str]]) -> None:
        with self.connection.transaction():
            self._cursor.executemany(
                "INSERT INTO bare VALUES (%s, %s, %s, to_tsvector('english', %s))",
                [(key, text, bytes(512), text) for key, text in rows],
            )

    def _make_table(self) -> None:
        self.connection.execute("DROP TABLE IF EXISTS bare")
        self.connection.execute(
            "CREATE TABLE bare (id bigint PRIMARY KEY, text text, vector bytea, terms tsvector)"
        )
        self.connection.execute("CREATE INDEX ON bare USING gin (terms)")


def server_process(database: Any) -> Path | None:
    """The file with the CPU time of the process that serves a connection; None where that is on another machine."""
    file = Path(f"/proc/{database.info.backend_pid}/schedstat")
    name = file.with_name("comm")
    return file if name.is_file() and name.read_text().startswith("postgres") else None


def server_cpu(file: Path | None) -> float:
    """Milliseconds so far."""
    return int(file.read_text().split()[0]) / 1e6 if file is not None else 0.0
