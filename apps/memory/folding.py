"""Comparing texts whatever their case, in any language, the same in Python and in SQLite."""

import sqlite3
import unicodedata
from typing import Any

from django.db.backends.signals import connection_created

SQL_NAME = "izzy_fold"
_DOTS = str.maketrans({"\u0131": "i", "\u0307": None})
"""The Turkish letters i: with and without a dot they count as one."""


def fold(text: str) -> str:
    """The text as it is compared: compatibility forms unified (NFKC), case folded, accents kept.

    So "STRASSE" is in "Hauptstraße" and "istanbul" in "İSTANBUL", but "cafe" is not in "café".
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold().translate(_DOTS))


def fold_in_sqlite() -> None:
    """Make `fold` known as a SQL function to every SQLite connection that is opened from now on."""
    connection_created.connect(_register, dispatch_uid="memory-fold")


def _register(*, connection: Any, **kwargs: Any) -> None:
    if connection.vendor == "sqlite":
        raw: sqlite3.Connection = connection.connection
        raw.create_function(SQL_NAME, 1, fold, deterministic=True)
