"""Copies all rows from one database into another of any engine, goes on where it was interrupted, and compares both.

While rows come in, the foreign keys of a server's database stand aside: a table's rows point to others that come later. Then
they are put back, and the database itself checks every one of them. What is still to do stands in the target, in the table
`PROGRESS`, which goes once all is done that belongs to the copy.
"""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.apps import apps
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import DatabaseError, connections, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from apps.core.db.writing import writing_for

SOURCE, TARGET = "copy_source", "copy_target"
PROGRESS = "izzy_copy"
ROWS = 1000
KEEP_NOTHING = {"django_migrations"}


made_after: dict[str, Callable[[BaseDatabaseWrapper], None]] = {}
"""By name what writes, once all rows are there, what is no row of a model (full text). Apps add theirs when they are ready."""


class CopyFailed(Exception):
    """A sentence for the person who copies."""


@contextmanager
def databases_named(**databases: dict[str, Any]) -> Iterator[None]:
    """Within the block databases (entries as in DATABASES) are known by these names; then their connections are closed."""
    known = {name: dict(connections.settings[name]) for name in connections}
    entries = {name: dict(entry) for name, entry in databases.items()}
    added = connections.configure_settings({**known, **entries})
    for name in databases:
        connections.settings[name] = added[name]
    try:
        yield
    finally:
        for name in databases:
            connections[name].close()
            connections[name].close_pool()  # type: ignore[attr-defined]
            del connections[name]
            del connections.settings[name]


@contextmanager
def database_copied(
    source: dict[str, Any], target: dict[str, Any], say: Callable[[str], None], *, view: str = ""
) -> Iterator[int]:
    """Copies one database into another, both as in DATABASES, and yields the number of rows; the source is held until the end.

    The target is empty, or an earlier copy was begun there: one counts as ended once the block has ended well.
    SQLite's file is not written meanwhile; of a server's database the
    rows of one moment are read, or those that the transaction sees which exported the snapshot `view`. Raises CopyFailed, also
    where rows differ afterwards.
    """
    try:
        # Without a writer's lock: only a transaction's first statement may say what it sees.
        with (
            databases_named(**{SOURCE: source, TARGET: target}),
            writing_for(None),
            transaction.atomic(using=SOURCE),
        ):
            if connections[SOURCE].vendor == "postgresql":
                with connections[SOURCE].cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    if view:
                        cursor.execute("SET TRANSACTION SNAPSHOT %s", [view])
            copy = _Copy(say)
            yield copy.run()
            copy.end()
    except (DatabaseError, sqlite3.Error) as error:
        raise CopyFailed(f"The database says: {_said(error)}") from error


def _said(error: Exception) -> str:
    """The server's sentence alone: what it adds (its detail, its context) quotes rows."""
    diagnosis = getattr(error.__cause__, "diag", None)
    return (diagnosis and diagnosis.message_primary) or str(error).strip()


class _Copy:
    def __init__(self, say: Callable[[str], None]) -> None:
        self.target = connections[TARGET]
        self.say = say

    def run(self) -> int:
        self._begin()
        for model in copied_models():
            self._copy(model)
        for make in made_after.values():
            make(self.target)
        return self._compare()

    def end(self) -> None:
        with self.target.cursor() as cursor:
            cursor.execute(f"DROP TABLE {PROGRESS}")

    def _begin(self) -> None:
        tables = set(self.target.introspection.table_names())
        if tables and PROGRESS not in tables:
            raise CopyFailed("The other database is not empty. Name an empty one.")
        with self.target.cursor() as cursor:
            if self.target.vendor == "postgresql":
                cursor.execute("SHOW server_encoding")
                (encoding,) = cursor.fetchone()
                if encoding != "UTF8":
                    raise CopyFailed(
                        f"The other database has the encoding {encoding}, which cannot hold every text. Name one with UTF8."
                    )
            if not tables:
                cursor.execute(f"CREATE TABLE {PROGRESS} (name text PRIMARY KEY, value text NOT NULL)")
            call_command("migrate", database=TARGET, interactive=False, verbosity=0)
            if self._noted("begun"):
                self.say("Going on with the copy that was begun.")
                return
        with transaction.atomic(using=TARGET), self.target.cursor() as cursor:
            self._loosen(cursor)
            for model in reversed(copied_models()):  # what migrating has written
                cursor.execute(f"DELETE FROM {self._name(model)}")  # noqa: S608  own names
            self._note("begun", "yes")

    def _loosen(self, cursor: Any) -> None:
        if self.target.vendor != "postgresql":
            return
        cursor.execute(
            "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE contype = 'f' AND connamespace = current_schema()::regnamespace"
        )
        keys = cursor.fetchall()
        self._note("keys", json.dumps(keys))
        for table, name, _ in keys:
            cursor.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"')

    def _copy(self, model: type[models.Model]) -> None:
        fields, table = model._meta.concrete_fields, model._meta.db_table
        key = model._meta.pk
        done = self._noted(f"table {table}")
        rows = model._base_manager.using(SOURCE).order_by("pk")
        if done:
            rows = rows.filter(pk__gt=key.to_python(json.loads(done)))
        count = 0
        with self.target.constraint_checks_disabled():
            for batch in batches(rows.values_list(*(field.attname for field in fields))):
                values = [
                    [
                        field.get_db_prep_save(value, self.target)
                        for field, value in zip(fields, row, strict=True)
                    ]
                    for row in batch
                ]
                last = batch[-1][fields.index(key)]
                with transaction.atomic(using=TARGET):
                    self._write(model, values)
                    self._note(f"table {table}", json.dumps(str(last)))
                count += len(batch)
        if count:
            self.say(f"{table}: {count:,} rows")

    def _write(self, model: type[models.Model], rows: list[list[Any]]) -> None:
        names = ", ".join(
            self.target.ops.quote_name(str(field.column)) for field in model._meta.concrete_fields
        )
        with self.target.cursor() as cursor:
            if self.target.vendor == "postgresql":
                try:
                    with (
                        self.target.wrap_database_errors,  # Django's cursors leave this one's errors as they are
                        cursor.copy(f"COPY {self._name(model)} ({names}) FROM STDIN") as copy,
                    ):
                        for row in rows:
                            copy.write_row(row)
                except DatabaseError as error:
                    raise CopyFailed(
                        f"{model._meta.db_table}: the database says: {_said(error)}"
                    ) from error
                return
            marks = ", ".join(["%s"] * len(model._meta.concrete_fields))
            cursor.executemany(
                f"INSERT INTO {self._name(model)} ({names}) VALUES ({marks})",  # noqa: S608  own names
                rows,
            )

    def _compare(self) -> int:
        """Has the database check what came in, and returns the number of rows in all, those of an earlier run too."""
        every, total = copied_models(), 0
        with transaction.atomic(using=TARGET), self.target.cursor() as cursor:
            for sql in self.target.ops.sequence_reset_sql(no_style(), every):
                cursor.execute(sql)
            for table, name, definition in json.loads(self._noted("keys") or "[]"):
                cursor.execute(f'ALTER TABLE {table} ADD CONSTRAINT "{name}" {definition}')
            if self._noted("keys"):
                self._note("keys", "[]")
        self.target.check_constraints()
        for model in every:
            there, here = fingerprint(model, TARGET), fingerprint(model, SOURCE)
            total += here[0]
            if there != here:
                table = model._meta.db_table
                raise CopyFailed(
                    f"{table} differs: {here[0]:,} rows there are, {there[0]:,} came in"
                    + (", with other values." if here[0] == there[0] else ".")
                    + " Empty the other database and begin anew."
                )
        if self.target.vendor == "postgresql":
            with self.target.cursor() as cursor:
                cursor.execute("ANALYZE")
        return total

    def _noted(self, name: str) -> str:
        with self.target.cursor() as cursor:
            cursor.execute(f"SELECT value FROM {PROGRESS} WHERE name = %s", [name])  # noqa: S608
            row = cursor.fetchone()
        return str(row[0]) if row else ""

    def _note(self, name: str, value: str) -> None:
        with self.target.cursor() as cursor:
            cursor.execute(f"DELETE FROM {PROGRESS} WHERE name = %s", [name])  # noqa: S608
            cursor.execute(f"INSERT INTO {PROGRESS} (name, value) VALUES (%s, %s)", [name, value])  # noqa: S608

    def _name(self, model: type[models.Model]) -> str:
        return self.target.ops.quote_name(model._meta.db_table)


def copied_models() -> list[type[models.Model]]:
    """Every model with a table of its own, those of many-to-many relations too."""
    found = apps.get_models(include_auto_created=True)
    return [
        model
        for model in found
        if model._meta.managed and not model._meta.proxy and model._meta.db_table not in KEEP_NOTHING
    ]


def batches(rows: "models.QuerySet[Any, tuple[Any, ...]]") -> Iterator[list[tuple[Any, ...]]]:
    """The rows some at a time, read as one statement."""
    batch: list[tuple[Any, ...]] = []
    for row in rows.iterator(chunk_size=ROWS):
        batch.append(row)
        if len(batch) == ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


def fingerprint(model: type[models.Model], using: str) -> tuple[int, int]:
    """The number of a table's rows, and the sum of their values' hashes, whatever their order and the database's engine."""
    names = [field.attname for field in model._meta.concrete_fields]
    count = total = 0
    for row in model._base_manager.using(using).values_list(*names).iterator(chunk_size=ROWS):
        text = json.dumps([_plain(value) for value in row], sort_keys=True, default=str)
        total += int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
        count += 1
    return count, total % 2**64


def _plain(value: Any) -> Any:
    """A value as both engines give it: bytes may be a view of memory; of the numbers in JSON, a large float comes back as a whole
    one and -0.0 without its sign. An integer that no float can hold stays as it is."""
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    try:
        return float(value) + 0.0
    except OverflowError:
        return value
