"""SQL that Django's ORM has no word for."""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, Func, Value
from django.db.models.sql.compiler import SQLCompiler


class HasTag(Func):
    """Whether a JSON list of texts holds one, whatever its case: `notes.filter(HasTag("tags", Value("food")))`."""

    output_field = BooleanField()

    def __init__(self, field: str, tag: str) -> None:
        super().__init__(field, Value(tag.lower()))

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> tuple[str, Any]:
        return super().as_sql(
            compiler,
            connection,
            template=self._exists("json_each"),
            arg_joiner=") WHERE LOWER(value) = (",
            **extra,
        )

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> tuple[str, Any]:
        return super().as_sql(
            compiler,
            connection,
            template=self._exists("jsonb_array_elements_text"),
            arg_joiner=") WHERE LOWER(value) = (",
            **extra,
        )

    @staticmethod
    def _exists(function: str) -> str:
        return f"EXISTS (SELECT 1 FROM {function}(%(expressions)s))"
