"""Every column of every table that may hold words, so that a table nobody thought of is looked into as well."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

from django.apps import apps
from django.conf import settings
from django.db import connection, models

SHORT = 8
"""A character column of at most so many signs holds no words."""
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `owner` is the path of foreign keys to the user, "" where no path leads to one."""

    model: type[models.Model]
    field: str
    owner: str

    @property
    def name(self) -> str:
        """`app_label.model.field`"""
        return f"{self.model._meta.label_lower}.{self.field}"

    def rows(self, user_id: UUID) -> models.QuerySet[Any]:
        """The rows of the user; of everybody where they belong to no user."""
        rows = self.model._base_manager.all()
        return rows.filter(**{self.owner: user_id}) if self.owner else rows

    def texts(self, user_id: UUID) -> Iterator[tuple[Any, str]]:
        """(primary key as the database has it, text) of each row that has some; bytes as far as they are text."""
        name = self.model._meta.get_field(self.field).name
        rows = self.rows(user_id).order_by().values_list("pk", name)
        sql, parameters = rows.query.sql_with_params()
        with connection.cursor() as cursor:
            # Values as the database gives them: turning every key into a UUID takes longer than all the rest.
            cursor.execute(sql, parameters)
            while batch := cursor.fetchmany(_BATCH):
                for pk, value in batch:
                    if value:
                        yield pk, text_of(value)

    def keys(self, raw: Iterable[Any]) -> list[Any]:
        """Primary keys as the database gives them, as Python values."""
        field = self.model._meta.pk
        return [field.to_python(value) for value in raw]


def text_of(value: Any) -> str:
    """A column's value as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode("utf-8", "replace")
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


@cache
def columns() -> tuple[Column, ...]:
    """All columns that may hold words, by name."""
    found = [
        Column(model, field.name, _owner_path(model))
        for model in apps.get_models()
        if model._meta.managed and not model._meta.proxy
        for field in model._meta.concrete_fields
        if _holds_words(field)
    ]
    return tuple(sorted(found, key=lambda column: column.name))


def column(name: str) -> Column:
    """The column with this name; KeyError."""
    return {column.name: column for column in columns()}[name]


def _holds_words(field: "models.Field[Any, Any]") -> bool:
    if field.choices:
        return False
    if isinstance(field, models.CharField):
        return not field.primary_key and (field.max_length or SHORT + 1) > SHORT
    return isinstance(field, models.TextField | models.JSONField | models.BinaryField | models.FileField)


def _owner_path(model: type[models.Model], seen: tuple[type[models.Model], ...] = ()) -> str:
    """`user_id`, `conversation__user_id` …: the shortest path of foreign keys to the user."""
    paths = []
    for field in model._meta.concrete_fields:
        target = field.related_model
        if not isinstance(field, models.ForeignKey) or target is None or target in (*seen, model):
            continue
        if target._meta.label == settings.AUTH_USER_MODEL:
            paths.append(f"{field.name}_id")
        elif rest := _owner_path(target, (*seen, model)):
            paths.append(f"{field.name}__{rest}")
    return min(paths, key=lambda path: path.count("__"), default="")
