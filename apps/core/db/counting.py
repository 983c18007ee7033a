"""Counts what the database refuses, whichever engine it is."""

from types import TracebackType
from typing import Any

from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property

from apps.core.metrics.base import counter

ERRORS = counter(
    "izzy_database_errors_total", "Errors of the database, by Django's name for their kind.", "kind"
)
RETRIES = counter(
    "izzy_database_retries_total", "Transactions begun again after the database refused them.", "reason"
)


class _Counting(DatabaseErrorWrapper):
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            super().__exit__(exc_type, exc_value, traceback)
        except Exception as error:
            ERRORS.add(type(error).__name__)
            raise


class CountsErrors:
    """A database wrapper whose errors are counted."""

    @cached_property
    def wrap_database_errors(self) -> Any:
        return _Counting(self)
