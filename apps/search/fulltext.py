"""The full-text index: postings of each owner's terms, in SQLite's FTS5.

A term is held as `<owner number>x<stem>`, so that a query reads the postings of its owner alone, however much others
have stored. The table is contentless and keeps neither positions nor counts: ranking counts a term once per passage.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from django.db import connection
from numpy.typing import NDArray

Ids = NDArray[np.int64]

MERGE_PAGES = 300

_INSERT = "INSERT INTO search_terms(rowid, terms) VALUES (?, ?)"
_DELETE = "INSERT INTO search_terms(search_terms, rowid, terms) VALUES ('delete', ?, ?)"
_MERGE = "INSERT INTO search_terms(search_terms, rank) VALUES ('merge', ?)"
_MATCH = "SELECT rowid FROM search_terms WHERE search_terms MATCH ?"


def postings_add(owner: int, rows: Iterable[tuple[int, str]]) -> None:
    """Add passages, given as (id, stems separated by spaces)."""
    _write(_INSERT, owner, rows)


def postings_remove(owner: int, rows: Iterable[tuple[int, str]]) -> None:
    """Remove passages; the stems must be those they were added with."""
    _write(_DELETE, owner, rows)


def _write(statement: str, owner: int, rows: Iterable[tuple[int, str]]) -> None:
    prefix = f" {owner}x"
    values = [(rowid, prefix.join(["", *terms.split()])) for rowid, terms in rows if terms]
    with connection.cursor() as cursor:
        cursor.connection.executemany(statement, values)


def postings(owner: int, term: str, *, prefix: bool = False) -> Ids:
    """Ids of the owner's passages with a stem (or, with `prefix`, with any stem that begins so), ascending."""
    match = f'"{owner}x{term}"' + ("*" if prefix else "")
    with connection.cursor() as cursor:
        rows = cursor.connection.execute(_MATCH, (match,)).fetchall()
    return np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))


def terms_found(owner: int, terms: Sequence[str]) -> bool:
    """Whether any of the stems is indexed for the owner; for receipts of deletion."""
    return any(len(postings(owner, term)) for term in terms)


def segments_merge() -> None:
    """Bring all postings into one segment, which drops the terms of removed passages for good.

    In steps of MERGE_PAGES pages, each a short transaction of its own, so that nobody waits to write: what 'optimize'
    does in one. About 0.2 s for 200,000 passages. SQLite only; the table must not be written in an open transaction.
    """
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        bare = cursor.connection
        pages = -MERGE_PAGES  # a negative number begins a merge of everything
        while True:
            before = bare.total_changes
            bare.execute(_MERGE, (pages,))
            if bare.total_changes - before < 2:
                return
            pages = MERGE_PAGES
