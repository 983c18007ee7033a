"""Checks of what the tables themselves promise: foreign keys, CHECK constraints, and that rows which belong together have one
owner."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, cast
from uuid import UUID

from django.apps import apps
from django.conf import settings
from django.db import connection, models, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.sql import Query

from apps.core.db.soundness import foreign_keys_hold

from . import Check, Finding, disposable, row_name

NO_ADVICE = "Look at the row in the admin; what it says is kept."


def own_models() -> Iterator[type[models.Model]]:
    """The models that have a table here."""
    for model in apps.get_models(include_auto_created=True):
        if model._meta.managed and not model._meta.proxy:
            yield model


def owner_field(model: type[models.Model]) -> str:
    """The column that says whose a row is, "" where none does."""
    for field in model._meta.concrete_fields:
        if field.is_relation and field.name == "user" and field.related_model is apps.get_model(_USER):
            return str(field.attname)
    return "pk" if model is apps.get_model(_USER) else ""


_USER = settings.AUTH_USER_MODEL


def _scoped(model: type[models.Model], user_id: UUID | None) -> tuple[models.QuerySet[Any], str] | None:
    """The rows of a user, or all; and the column of their owner. None where the user can have none."""
    owner, rows = owner_field(model), model._base_manager.all()
    if user_id is None:
        return rows, owner
    return (rows.filter(**{owner: user_id}), owner) if owner else None


def foreign_keys_find(user_id: UUID | None) -> Iterator[Finding]:
    """Rows that point to a row which is gone."""
    if foreign_keys_hold():
        return
    for model in own_models():
        scoped = _scoped(model, user_id)
        for field in _foreign_keys(model) if scoped else ():
            rows, owner = scoped or (model._base_manager.none(), "")
            parent, column = field.related_model, field.target_field.attname
            there = parent._base_manager.filter(**{column: OuterRef(field.attname)})
            lost = rows.filter(~Exists(there), **{f"{field.attname}__isnull": False}).order_by()
            columns = ["pk", *([owner] if owner not in {"", "pk"} else [])]
            gone_user = parent is apps.get_model(_USER)
            for key, *whose in lost.values_list(*columns).iterator():
                yield Finding(
                    about=row_name(model, key),
                    message=f"Its {field.name} is gone: no {parent._meta.verbose_name} has that id.",
                    repair=_repair_of(model, field),
                    advice=NO_ADVICE,
                    user_id=None if gone_user or not whose else whose[0],
                    subject=(model, field.name, key),
                )


def _foreign_keys(model: type[models.Model]) -> list[Any]:
    return [field for field in model._meta.concrete_fields if field.remote_field is not None]


def _repair_of(model: type[models.Model], field: Any) -> str:
    if field.null:
        return f"Empties {field.name}; the row stays."
    label = model._meta.label
    return "Removes the row, which is of no use alone." if label in disposable else ""


def foreign_keys_fix(findings: Sequence[Finding]) -> None:
    def kind(finding: Finding) -> tuple[str, str]:
        model, name, _ = finding.subject
        return model._meta.label, name

    for _, group in groupby(sorted(findings, key=kind), key=kind):
        some = [finding.subject for finding in group]
        model, name, keys = some[0][0], some[0][1], [key for _, _, key in some]
        with transaction.atomic():
            rows = model._base_manager.filter(pk__in=keys)
            if model._meta.get_field(name).null:
                rows.update(**{name: None})
            else:
                rows.delete()


def constraints_find(user_id: UUID | None) -> Iterator[Finding]:
    """Rows that a CHECK constraint of their table forbids."""
    for model in own_models():
        scoped = _scoped(model, user_id)
        for constraint in model._meta.constraints if scoped else ():
            if not isinstance(constraint, models.CheckConstraint):
                continue
            query = Query(model=model, alias_cols=False)
            where = query.build_where(cast("Q", constraint.condition))
            sql, parameters = where.as_sql(query.get_compiler(connection=connection), connection)
            rows, owner = scoped or (model._base_manager.none(), "")
            columns = ["pk", *([owner] if owner not in {"", "pk"} else [])]
            # As it stands in the table: what it neither allows nor forbids (NULL) is allowed.
            broken = rows.extra(where=[f"NOT ({sql})"], params=parameters).order_by()  # noqa: S610  own names
            for key, *whose in broken.values_list(*columns).iterator():
                yield Finding(
                    about=row_name(model, key),
                    message=f"It breaks the rule {constraint.name} of its table.",
                    advice=NO_ADVICE,
                    user_id=whose[0] if whose else None,
                )


def owners_find(user_id: UUID | None) -> Iterator[Finding]:
    """Rows that point to a row of another user."""
    for model in own_models():
        scoped = _scoped(model, user_id)
        if scoped is None or scoped[1] in {"", "pk"}:
            continue
        rows, owner = scoped
        for field in _foreign_keys(model):
            theirs = owner_field(field.related_model)
            if theirs in {"", "pk"}:
                continue
            strange = rows.filter(**{f"{field.attname}__isnull": False})
            strange = strange.exclude(**{owner: F(f"{field.name}__{theirs}")}).order_by()
            for key, whose in strange.values_list("pk", owner).iterator():
                yield Finding(
                    about=row_name(model, key),
                    message=f"Its {field.name} belongs to another user.",
                    advice=NO_ADVICE,
                    user_id=whose,
                )


FOREIGN_KEYS = Check("Rows point to rows that are there", foreign_keys_find, foreign_keys_fix, order=20)
CONSTRAINTS = Check("Rows keep the rules of their tables", constraints_find, order=21)
OWNERS = Check("Rows that belong together have one owner", owners_find, order=22)
