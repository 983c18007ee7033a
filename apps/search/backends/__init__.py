"""Where passages and their full text are kept: in the database at hand, as `base.Storage` says."""

from django.db import connection

from .base import Batch, Head, Ids, OccasionRow, Row, Space, Stem, Storage


def _storage() -> Storage:
    if connection.vendor == "postgresql":
        from .postgresql import PostgreSQL

        return PostgreSQL()
    from .sqlite import SQLite

    return SQLite()


backend = _storage()

__all__ = ["Batch", "Head", "Ids", "OccasionRow", "Row", "Space", "Stem", "Storage", "backend"]
