"""SQL that Django's ORM has no word for."""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, Func, Value
from django.db.models.sql.compiler import SQLCompiler


class HasTag(Func):
    """Whether a JSON list of texts holds one, whatever its case: `notes.filter(HasTag("tags", "food"))`."""

    output_field = BooleanField()
    template = "EXISTS (SELECT 1 FROM %(function)s(%(expressions)s))"
    arg_joiner = ") WHERE LOWER(value) = ("

    def __init__(self, field: str, tag: str) -> None:
        super().__init__(field, Value(tag.lower()))

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> tuple[str, Any]:
        return self.as_sql(compiler, connection, function="json_each", **extra)

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> tuple[str, Any]:
        return self.as_sql(compiler, connection, function="jsonb_array_elements_text", **extra)
