"""Explains database errors to the person who runs Izzy. Imports nothing that needs settings."""

from typing import NamedTuple


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
KNOWN = {
    "no such table": NOT_SET_UP,
    "no such column": OTHER_VERSION,
    "has no column named": OTHER_VERSION,
    "already exists": OTHER_VERSION,
    "duplicate column": OTHER_VERSION,
    "file is not a database": DAMAGED,
    "malformed": DAMAGED,
    "is full": Trouble("The disk is full.", "Make room where the data directory lies.", True),
    "disk i/o error": Trouble(
        "The database file cannot be read or written.", "Make room on the disk, or look at its health.", True
    ),
    "unable to open": Trouble(
        "The database file cannot be opened.", "Look at IZZY_DATA_DIR and who may write there.", True
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


def explain(error: Exception) -> Trouble | None:
    """The trouble behind a database's error, None for one that is nobody's but a bug's."""
    said = str(error).lower()
    return next((trouble for part, trouble in KNOWN.items() if part in said), None)
