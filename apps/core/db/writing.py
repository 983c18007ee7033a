"""Writing and reading much without holding up others: a transaction that writes holds up all other writers.

What takes long and needs no database (cutting a text into passages, its words, its vector) is worked out before it
begins, and found again inside. A long read takes no lock at all. Many new rows go in with one statement, very many are removed some at a time.
"""

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from decimal import Decimal
from functools import cache, partial
from hashlib import sha256
from operator import attrgetter
from typing import Any, TypeVar
from uuid import UUID

from django.db import connection, models, transaction

from apps.core.log_ids import log_ids

T = TypeVar("T")

writer: ContextVar[UUID | None] = ContextVar("writer", default=None)
"""The user whose rows the transactions of this context write; None where nobody said."""


@contextmanager
def writing_for(user_id: UUID | None) -> Iterator[None]:
    """Transactions begun inside write this user's rows, one at a time; None: those of nobody in particular, such as a sweep's
    over many users. On SQLite, where there is one writer in any case, this changes nothing."""
    token = writer.set(user_id)
    try:
        with log_ids(user=user_id):
            yield
    finally:
        writer.reset(token)


claiming: ContextVar[bool] = ContextVar("claiming", default=False)


class UnlockedWrite(RuntimeError):
    """A write of a user's rows in a transaction that does not hold that user's lock (PostgreSQL alone looks)."""


refusing: ContextVar[bool | None] = ContextVar("refusing", default=None)
"""Whether this context refuses writes without the lock; None: as the process does."""

_servers = False


def refuse_unlocked() -> None:
    """From here on this process refuses writes without the lock. Web processes and workers say so; elsewhere, in a shell or a
    script, the lock of the user whom a statement names is taken with it."""
    global _servers
    _servers = True


def unlocked_refused() -> bool:
    """Whether a write without the lock is refused here."""
    said = refusing.get()
    return _servers if said is None else said


@contextmanager
def claim() -> Iterator[None]:
    """Writes inside go without a user's lock where nobody said whose rows they are: for a conditional update over the rows of
    many users (a lease, a claim of a sweep), which is sound by itself, and for rows that one process alone writes. Say why."""
    token = claiming.set(True)
    try:
        yield
    finally:
        claiming.reset(token)


def lock_for_all(name: str) -> None:
    """Waits until no other transaction holds the lock of this name, and holds it until ours ends: for what is no user's (the
    count of failed sign-ins, the first account). Take it before you read. SQLite's transactions exclude each other anyway."""
    if connection.vendor == "postgresql":
        key = int.from_bytes(sha256(name.encode()).digest()[:4], signed=True)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", (NAMED, key))


LOCK_SECONDS = 30
"""So long a transaction waits for another's locks, as SQLite's does for its writer."""
NAMED = 1
"""The class of advisory locks with a name; users' have none."""


def users_of(rows: "models.QuerySet[Any]") -> Iterator[tuple[UUID, "models.QuerySet[Any]"]]:
    """User by user those of the rows that are theirs: for a sweep, which writes one user's at a time while it holds one."""
    for user_id in list(rows.order_by().values_list("user_id", flat=True).distinct()):
        with writing_for(user_id):
            yield user_id, rows.filter(user_id=user_id)


WRITERS_SECONDS = 30.0
_WRITERS = (
    "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid <> pg_backend_pid() "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def writers_wait() -> None:
    """Returns when every transaction that was writing at the call, for whomever, has ended; after WRITERS_SECONDS in any case.

    Raises DatabaseError where nothing can be written.
    """
    if connection.vendor != "postgresql":
        with transaction.atomic():
            return
    deadline, writing = time.monotonic() + WRITERS_SECONDS, _writers()
    while (writing := writing & _writers()) and time.monotonic() < deadline:
        time.sleep(0.02)


def _writers() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(_WRITERS)
        return {name for (name,) in cursor.fetchall()}


_results: ContextVar[dict[tuple[Hashable, ...], Any] | None] = ContextVar("precompute", default=None)


@contextmanager
def precompute() -> Iterator[None]:
    """Until its end `once` keeps what it works out; nothing is kept longer, since results hold people's words."""
    token = _results.set({})
    try:
        yield
    finally:
        _results.reset(token)


def once(function: Callable[..., T], *arguments: Hashable) -> T:
    """`function(*arguments)`, worked out a single time within `precompute`. The result is shared: do not change it."""
    results = _results.get()
    if results is None:
        return function(*arguments)
    key = (function, *arguments)
    if key not in results:
        results[key] = function(*arguments)
    result: T = results[key]
    return result


def keep(result: object, function: Callable[..., object], *arguments: Hashable) -> None:
    """Within `precompute`: `once` gives this for the function and its arguments, which was worked out elsewhere."""
    results = _results.get()
    if results is not None:
        results[(function, *arguments)] = result


def json_ordered(value: Any) -> Any:
    """A value for PostgreSQL that a column of type `json` keeps as it is; one of type `jsonb` takes it too."""
    from psycopg.types.json import Json, Jsonb  # not needed on SQLite

    return Json(value.obj if isinstance(value, Jsonb) else value)


def insert_all(rows: Sequence[models.Model]) -> None:
    """Insert new rows of one model, as they are, with one statement; a key that the database gives is not read back."""
    if not rows:
        return
    sql, values, timed = _statement(type(rows[0]))
    for row in rows if timed else ():
        for field in timed:
            field.pre_save(row, add=True)
    _execute(sql, map(values, rows))
    for row in rows:
        row._state.adding = False
        row._state.db = connection.alias


def update_all(
    model: type[models.Model], names: Sequence[str], rows: Sequence[tuple[Any, Sequence[Any]]]
) -> None:
    """Set these fields of many rows, each given by its key and the values, with one statement."""
    if not rows:
        return
    _execute(_update(model, tuple(names)), ((*values, key) for key, values in rows))


def _execute(sql: str, rows: Iterable[Iterable[Any]]) -> None:
    """Executes the statement for each of these rows of values, which the database may not take as they are."""
    in_order = connection.vendor == "postgresql"
    json = json_ordered if in_order else partial(connection.ops.adapt_json_value, encoder=None)
    moment = cache(connection.ops.adapt_datetimefield_value)  # rows written together share their times
    writers: dict[type, Callable[[Any], Any]] = {datetime: moment, list: json, dict: json}
    writers[Decimal] = connection.ops.adapt_decimalfield_value
    if not connection.features.has_native_uuid_field:
        writers[UUID] = attrgetter("hex")
    params = [
        [value if (adapt := writers.get(type(value))) is None else adapt(value) for value in row]
        for row in rows
    ]
    with connection.cursor() as cursor:
        if len(params) == 1:
            cursor.execute(sql, params[0])
        else:
            cursor.executemany(sql, params)


@cache
def _update(model: type[models.Model], names: tuple[str, ...]) -> str:
    quoted = connection.ops.quote_name
    fields: dict[str, Any] = {field.name: field for field in model._meta.concrete_fields}
    columns = [quoted(fields[name].column) for name in names]
    key = quoted(str(model._meta.pk.column))
    values = ", ".join(f"{column} = %s" for column in columns)
    return f"UPDATE {quoted(model._meta.db_table)} SET {values} WHERE {key} = %s"  # noqa: S608  own names


@cache
def _statement(
    model: type[models.Model],
) -> tuple[str, Callable[[models.Model], tuple[Any, ...]], list[Any]]:
    """The statement for a model, what takes its values from a row, and the fields that note when that is made."""
    fields: list[Any] = [
        field for field in model._meta.concrete_fields if not isinstance(field, models.AutoField)
    ]
    names = ", ".join(connection.ops.quote_name(field.column) for field in fields)
    marks = ", ".join(["%s"] * len(fields))
    table = connection.ops.quote_name(model._meta.db_table)
    sql = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608  own names
    timed = [
        field
        for field in fields
        if getattr(field, "auto_now_add", False) or getattr(field, "auto_now", False)
    ]
    return sql, attrgetter(*(field.attname for field in fields)), timed


SLICE = 200
"""Rows of one slice: some ten milliseconds of the write lock."""
PAUSE_SECONDS = 0.002
"""So long between two slices that whoever waits in line is awake and has its turn."""


def in_slices(remove: Callable[[], bool]) -> None:
    """Calls `remove`, one short transaction, for as long as it says that there may be more. Inside a transaction nobody else
    can write in between all the same."""
    while remove():
        if not connection.in_atomic_block:
            time.sleep(PAUSE_SECONDS)


@transaction.atomic
def rows_remove(*kinds: "models.QuerySet[Any]", room: int = SLICE) -> bool:
    """Removes at most `room` rows, of the first kind first; whether there may be more. Rows that others point to come last."""
    for rows in kinds:
        keys = list(rows.order_by().values_list("pk", flat=True)[:room])
        if keys:
            rows.model._base_manager.filter(pk__in=keys).delete()
        room -= len(keys)
        if room <= 0:
            return True
    return False


@contextmanager
def one_view() -> Iterator[None]:
    """All queries inside see the same state, and nobody is kept from writing meanwhile.

    On SQLite `transaction.atomic` takes the write lock when it begins (that is the setting), on PostgreSQL the user's; this
    begins a transaction that only reads. Write nothing inside. May be nested.
    """
    if connection.in_atomic_block:
        yield
        return
    if connection.vendor != "sqlite":
        with writing_for(None), transaction.atomic():
            with connection.cursor() as cursor:  # only a transaction's first statement may say so
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield
        return
    connection.ensure_connection()
    if connection.connection.in_transaction:
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("BEGIN DEFERRED")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")
