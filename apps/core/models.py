"""The base of rows that users own."""

from collections.abc import Iterable
from typing import Any, ClassVar, TypeVar, cast
from uuid import UUID

from django.conf import settings
from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from apps.core.db.writing import json_ordered
from apps.core.ids import uuid7

M = TypeVar("M", bound=models.Model)


def choices_checked(model: type[M]) -> type[M]:
    """Give each column of `model` that has choices a CHECK constraint, `<table>_<column>_known`, from those choices."""
    options = model._meta
    checks = []
    for field in options.concrete_fields:
        if field.choices:
            known = [str(value) for value, _ in field.flatchoices]
            values = [*known, ""] if field.blank and "" not in known else known
            condition = models.Q(**{f"{field.name}__in": values})
            name = f"{options.db_table}_{field.column}_known"
            checks.append(models.CheckConstraint(condition=condition, name=name))
    options.constraints = [*options.constraints, *checks]
    options.original_attrs["constraints"] = options.constraints  # What migrations are made from.
    return model


class OrderedJSONField(models.JSONField):
    """JSON whose objects keep the order of their keys on PostgreSQL too, as people see it: the fields of a form, the input of a
    call. PostgreSQL compares no such values: for what is looked for by its content take `JSONField`."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        return "json" if connection.vendor == "postgresql" else super().db_type(connection)

    def get_db_prep_value(
        self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False
    ) -> Any:
        found = super().get_db_prep_value(value, connection, prepared)
        return json_ordered(found) if connection.vendor == "postgresql" else found

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        if connection.vendor == "postgresql":  # psycopg has read it
            return value
        return super().from_db_value(value, expression, connection)


class UnscopedQuery(RuntimeError):
    """A query over users' rows that does not say whose."""


class OwnedManager(models.Manager[M]):
    """The manager of rows that belong to one user: a query starts with `for_user` or `owned_by`.

    `all()`, `filter()`, `get()` and every other query without a user raise UnscopedQuery; work over all users
    (sweeps, migrations of data, statistics of the instance) says `unscoped()`.
    """

    def for_user(self, user: models.Model | UUID) -> models.QuerySet[M]:
        """The rows of `user`, an instance or its id."""
        return self.unscoped().filter(user_id=cast("UUID", getattr(user, "pk", user)))

    def owned_by(self, user: models.Model | UUID) -> models.QuerySet[M]:
        """The same rows, for a query that finds what it wants by something else: ids, a conversation, a turn.

        SQLite keeps no statistics here and takes every user for one with ten rows: it would look through all that a user
        has for the few that were asked for.
        """
        owner = cast("UUID", getattr(user, "pk", user))
        # The owner's column as a value that no index finds: SQLite takes a unary plus for that.
        sign = "+" if connections[self.db].vendor == "sqlite" else ""
        column = models.Func(
            "user_id", template=f"{sign}%(expressions)s", output_field=models.UUIDField()
        )
        return cast("models.QuerySet[M]", self.unscoped().alias(_owner=column).filter(_owner=owner))

    def unscoped(self) -> models.QuerySet[M]:
        return super().get_queryset()

    def create(self, **values: Any) -> M:
        return self.unscoped().create(**values)

    def bulk_create(self, objs: Iterable[M], *args: Any, **options: Any) -> list[M]:
        return self.unscoped().bulk_create(objs, *args, **options)

    def get_queryset(self) -> models.QuerySet[M]:
        raise UnscopedQuery(f"{self.model.__name__}: say whose rows, with for_user(user) or unscoped()")


class UserOwned(models.Model):
    """A row of one user; it goes when the user goes.

    `everything` is what Django itself uses (admin, related managers, validation); our code uses `objects`.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")

    everything = models.Manager()
    objects = OwnedManager()

    class Meta:
        abstract = True


class InstanceState(models.Model):
    """Small facts about the installation itself, by key: the set-up token's hash, the worker's heartbeat."""

    instance_wide = True  # no user's rows

    key = models.CharField(max_length=64, primary_key=True)
    value = models.JSONField(default=dict)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.key


@choices_checked
class IntegrityRun(models.Model):
    """One run of `check_integrity` that somebody asked for in the admin; the worker does it.

    `beat_at` is when the worker that does it last said so. `findings` are the first of them, as `CheckOutcome.to_json` gives them; `found` and `left` count all.
    """

    instance_wide = True  # no user's rows

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting for the worker"
        RUNNING = "running", "Under way"
        DONE = "done", "Done"
        FAILED = "failed", "Could not look"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    state = models.CharField(max_length=16, choices=State, default=State.WAITING)
    fix = models.BooleanField(default=False, verbose_name="repair")
    asked_by = models.CharField(max_length=150, blank=True, default="")
    step = models.CharField(max_length=200, blank=True, default="", help_text="What is looked at now.")
    findings = models.JSONField(default=list)
    found = models.PositiveIntegerField(default=0)
    left = models.PositiveIntegerField(default=0)
    error = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now, verbose_name="asked for")
    beat_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "integrity check"
        ordering: ClassVar = ["-created_at"]

    def __str__(self) -> str:
        return f"integrity check of {self.created_at:%Y-%m-%d %H:%M} UTC"
