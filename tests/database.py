"""The test database between two tests that commit."""

from functools import cache
from typing import Any

from django.db import connection, transaction

from apps.core.db.writing import claim

KEPT = {"django_migrations", "django_content_type", "auth_permission"}
"""Tables that migrating writes and no test changes."""


def empty_tables(*_: Any) -> None:
    """Deletes what a test has committed. Django's own flush empties every table, also those without a row, and then makes
    all content types and permissions anew, which takes longer than most tests."""
    with connection.cursor() as cursor:
        cursor.execute(_filled())
        tables = [row[0] for row in cursor.fetchall()]
        if not tables:
            return
        with claim(), connection.constraint_checks_disabled(), transaction.atomic():
            for table in tables:
                cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")


@cache
def _filled() -> str:
    """The query for the names of the tables that have a row."""
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    return " UNION ALL ".join(
        f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {connection.ops.quote_name(table)})"
        for table in sorted(set(tables) - KEPT)
    )
