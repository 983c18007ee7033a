"""Explains to the person who runs Izzy what is wrong with the database: errors, and tables of another version."""

import logging
import sqlite3
from typing import NamedTuple

from django.apps import apps
from django.core.management.base import CommandError
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.db.migrations.loader import MigrationLoader

from apps.core.errors import Unavailable

logger = logging.getLogger(__name__)


class Trouble(NamedTuple):
    """`message` says in one sentence what is; `hint` what to do about it."""

    message: str
    hint: str
    passing: bool = False
    """Whether it has nothing to do with what was asked for, and goes when somebody looks after the machine."""


NOT_SET_UP = Trouble(
    "The database is not set up yet.", "Run `manage.py migrate`, or start with `manage.py serve`."
)
OTHER_VERSION = Trouble(
    "The database was made by another version of Izzy.",
    "See *Updates* in docs/operations.md.",
)
DAMAGED = Trouble(
    "The database file is damaged, or is no database.",
    "Restore it from a backup, see *Backups* in docs/operations.md.",
)
CARRIED_OVER = (
    "What is in it is as it was: take it out with `export_memories` of the version that made it and bring that in here."
    " *Updates* in docs/operations.md says how."
)
FULL = Trouble("The disk is full.", "Make room where the data directory lies.", True)
KNOWN = {
    "no such table": NOT_SET_UP,
    "no such column": OTHER_VERSION,
    "has no column named": OTHER_VERSION,
    "already exists": OTHER_VERSION,
    "duplicate column": OTHER_VERSION,
    "file is not a database": DAMAGED,
    "malformed": DAMAGED,
    "is full": FULL,
    "disk i/o error": Trouble(
        "The database file cannot be read or written.",
        "Make room on the disk, or look at its health.",
        True,
    ),
    "unable to open": Trouble(
        "The database file cannot be opened.",
        "Look at IZZY_DATA_DIR and who may write there. From a disk that takes no writes, copy the whole directory to another and "
        "set IZZY_DATA_DIR to that: SQLite writes beside the file to read it.",
        True,
    ),
    "readonly": Trouble(
        "The database file cannot be written.",
        "Give it to the user that Izzy runs as, or set IZZY_DATA_DIR.",
        True,
    ),
    "is locked": Trouble(
        "Another program holds the database.", "End what else has the file open, and try again.", True
    ),
}
"""A part of SQLite's message, in lower case -> its trouble."""
CLOSED = Trouble(
    "A file of the data directory cannot be written or read.",
    "Look at who may do so, and whether its disk takes writes.",
    True,
)
FILES = {
    "no space left": FULL,
    "quota exceeded": FULL,
    "read-only file system": CLOSED,
    "permission denied": CLOSED,
}
"""A part of what the system says of a file, in lower case -> its trouble."""

AWAY = Trouble(
    "PostgreSQL does not answer.", "Start it, or look at DATABASE_URL and the network between.", True
)
REFUSED = Trouble(
    "PostgreSQL does not let Izzy in.",
    "Look at user and password in DATABASE_URL, and at pg_hba.conf.",
    True,
)
BUSY = Trouble("Something else held what this would have changed.", "Try again.", True)
STATES = {
    "08": AWAY,
    "57P": AWAY,
    "28": REFUSED,
    "3D000": Trouble(
        "PostgreSQL has no database of that name.",
        "Make it (createdb), or correct the name at the end of DATABASE_URL.",
        True,
    ),
    "53100": Trouble("PostgreSQL's disk is full.", "Make room where its data directory lies.", True),
    "53200": Trouble(
        "PostgreSQL is out of memory.", "Give its machine more, or its settings less.", True
    ),
    "53300": Trouble(
        "PostgreSQL takes no more connections.",
        "Raise its max_connections, or lower IZZY_DB_CONNECTIONS (so many for each process).",
        True,
    ),
    "25006": Trouble(
        "PostgreSQL takes no writes: it is a standby, or set to read-only.",
        "Point DATABASE_URL at the primary, or look at default_transaction_read_only.",
        True,
    ),
    "58030": Trouble(
        "PostgreSQL cannot read or write its files.", "Look at its disk and its log.", True
    ),
    "XX00": Trouble(
        "PostgreSQL's files are damaged.",
        "Restore it from a backup, see *Backups* in docs/operations.md.",
    ),
    "40": BUSY,
    "55P03": BUSY,
    "42P01": NOT_SET_UP,
    "42703": OTHER_VERSION,
    "42P07": OTHER_VERSION,
    "42701": OTHER_VERSION,
}
"""The beginning of a SQLSTATE of PostgreSQL's -> its trouble."""
UNREACHED = (
    *("connection refused", "server closed the connection", "the connection is closed"),
    *("connection is lost", "couldn't get a connection", "connection timeout", "timeout expired"),
    *("failed to resolve host", "no route to host", "connection not open", "consuming input failed"),
)
"""Parts of what its client says where no server has said anything."""
SAID = {
    "password authentication failed": "28P01",
    "too many clients": "53300",
    "does not exist": "3D000",
}
"""Parts of what a server says that refuses a connection, which comes without its SQLSTATE."""


def sqlstate(error: BaseException) -> str:
    """The five characters by which PostgreSQL names an error, "" where there are none."""
    return str(getattr(error.__cause__ or error, "sqlstate", None) or "")


def explain(error: BaseException) -> Trouble | None:
    """The trouble behind an error of the database or of a file, None for one that is nobody's but a bug's."""
    said, state = str(error).lower(), sqlstate(error)
    if isinstance(error, OSError):
        return next((trouble for part, trouble in FILES.items() if part in said), None)
    of_a_backup = isinstance(error, sqlite3.Error)  # its file is SQLite's, whatever the database is
    if connections[DEFAULT_DB_ALIAS].vendor == "postgresql" and not of_a_backup:
        if not state and "connection" in said and "failed" in said:
            state = next((state for part, state in SAID.items() if part in said), "")
        if not state and any(part in said for part in UNREACHED):
            return AWAY
        return next((trouble for start, trouble in STATES.items() if state.startswith(start)), None)
    return next((trouble for part, trouble in KNOWN.items() if part in said), None)


def unavailable(error: Exception) -> Unavailable | None:
    """The refusal for users where the machine is in trouble, such as a full disk; the log has the reason. The same request will do
    when that is over. None for all other errors."""
    trouble = explain(error)
    if trouble is None or not trouble.passing:
        return None
    logger.error("%s %s", trouble.message, trouble.hint, exc_info=error)
    if trouble is BUSY:
        return Unavailable(f"{trouble.message} {trouble.hint}", code="database_busy")
    message = f"{trouble.message} Nothing can be saved until that is mended."
    return Unavailable(message, code="database_unavailable")


def log_failure(error: BaseException, what: str) -> None:
    """Logs the failure of work that is done again and again: with its traceback, but where the machine is in trouble, as a log must
    not fill its disk."""
    trouble = explain(error)
    if trouble and trouble.passing:
        logger.error("%s: %s %s", what, trouble.message, trouble.hint)
    else:
        logger.error(what, exc_info=error)


def stale_tables(using: str = DEFAULT_DB_ALIAS) -> list[str]:
    """A phrase (`memory_memory: no column kind`) for each table that differs from its model; a query per table."""
    found, connection = [], connections[using]
    with connection.cursor() as cursor:
        present = set(connection.introspection.table_names(cursor))
        for model in apps.get_models(include_auto_created=True):
            options = model._meta
            if options.proxy or not options.managed:
                continue
            if options.db_table not in present:
                found.append(f"no table {options.db_table}")
                continue
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(options.db_table)} WHERE 1 = 0")  # noqa: S608
            names = {column[0] for column in cursor.description}
            wanted = {field.column for field in options.local_concrete_fields if field.column}
            found += [f"{options.db_table}: no column {name}" for name in sorted(wanted - names)]
            if names <= wanted:
                continue  # Django would parse the statement that made the table to describe it: a second for all of them
            found += [
                f"{options.db_table}: a column {column.name} too many"
                for column in connection.introspection.get_table_description(cursor, options.db_table)
                # One that may be left out, or has a default, holds nothing up.
                if column.name not in wanted and not column.null_ok and column.default is None
            ]
    return found


def unknown_migrations(using: str = DEFAULT_DB_ALIAS) -> list[str]:
    """Migrations of Izzy's apps that the database has and this version does not: those of a newer one."""
    loader = MigrationLoader(connections[using])
    ours = {config.label for config in apps.get_app_configs() if config.name.startswith("apps.")}
    known = set(loader.disk_migrations or ())
    return [
        f"migration {label}.{name}"
        for label, name in sorted(loader.applied_migrations or ())
        if label in ours and (label, name) not in known
    ]


def stale_message(using: str = DEFAULT_DB_ALIAS) -> str:
    """The fault that `serve` and `doctor` report, "" for none, whatever the list of migrations says: until the first release
    those of a checkout may differ from yesterday's under the same name, and a database made then lacks columns."""
    found = [*unknown_migrations(using), *stale_tables(using)]
    if not found:
        return ""
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"The database was made by another version of Izzy ({found[0]}{more})."


def refuse_other_version() -> None:
    """Raises CommandError where the tables are another version's, or not there yet: half of what is asked for would fail. One that
    is away says so itself."""
    try:
        if "accounts_user" not in connections[DEFAULT_DB_ALIAS].introspection.table_names():
            raise CommandError(f"{NOT_SET_UP.message} {NOT_SET_UP.hint}")
        stale = stale_message()
    except DatabaseError:
        return
    if stale:
        raise CommandError(f"{stale} {CARRIED_OVER}")
