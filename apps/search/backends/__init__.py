"""Where passages and their full text are kept: in the database at hand, as `base.Storage` says."""

from django.db import connection

from .base import Batch, Head, Ids, OccasionRow, Postings, Row, Space, Stem, Storage


def _storage() -> Storage:
    if connection.vendor == "postgresql":
        from .postgresql import PostgreSQL

        return PostgreSQL()
    from .sqlite import SQLite

    return SQLite()


def _postings() -> Postings:
    if connection.vendor == "postgresql":
        from .postgresql_postings import PostgreSQLPostings

        return PostgreSQLPostings()
    from .sqlite_postings import SQLitePostings

    return SQLitePostings()


backend = _storage()
postings_held = _postings()
"""For checking; search goes by `backend`."""

__all__ = [
    "Batch",
    "Head",
    "Ids",
    "OccasionRow",
    "Postings",
    "Row",
    "Space",
    "Stem",
    "Storage",
    "backend",
    "postings_held",
]
