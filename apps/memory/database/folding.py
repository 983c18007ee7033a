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
    folded = _composed(_composed(text).casefold())
    if "\u0131" in folded or "\u0307" in folded:
        return _composed(folded.translate(_DOTS))
    return folded


def _composed(text: str) -> str:
    return text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)


def fold_in_sqlite() -> None:
    """Make `fold` known as a SQL function to every SQLite connection that is opened from now on."""
    connection_created.connect(_register, dispatch_uid="memory-fold")


def _register(*, connection: Any, **kwargs: Any) -> None:
    if connection.vendor == "sqlite":
        raw: sqlite3.Connection = connection.connection
        raw.create_function(SQL_NAME, 1, fold, deterministic=True)
