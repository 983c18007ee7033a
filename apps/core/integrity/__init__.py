"""Checks that rows, files and the search index fit together, and repairs: each app registers its checks.

A check only reads. Its findings are looked for twice, some time apart, so that what a process is just changing is none. What
can be made anew from the rows is repaired on request; what a user wrote is never removed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import models
from django.utils.module_loading import autodiscover_modules

from apps.core.db.writing import one_view
from apps.core.registries import Registry

USERS_AT_ONCE = 500
ROWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong. No word of a user's stands in it: it is logged, printed and kept."""

    about: str  # the row (`memory_memory 0197…`), file or index that it is about
    message: str  # in one sentence: what is wrong
    repair: str = ""  # what --fix does about it, "" where it is left to a person
    advice: str = ""  # what a person can do
    user_id: UUID | None = None
    subject: Any = None  # what the check's `fix` needs to know

    @property
    def key(self) -> tuple[str, str]:
        """The same for the same finding of a later look."""
        return self.about, self.message


@dataclass(frozen=True, slots=True)
class Check:
    """`find(user_id)` yields what is wrong with one user's data, with None with everybody's and the instance's.

    `fix(findings)` repairs findings of one user (or of none) that say how, in short transactions; whether it has is looked
    at afterwards. Checks run in the order of their names within `order`.
    """

    title: str  # for people: what it looks at
    find: Callable[[UUID | None], Iterable[Finding]]
    fix: Callable[[Sequence[Finding]], None] | None = None
    order: int = 50  # lower ones first: they repair what others build upon


integrity_checks: Registry[Check] = Registry()
"""name (`search: postings`) -> Check."""

disposable: set[str] = set()
"""Labels (`chat.TurnEvent`) of models whose rows are worth nothing once the row that they belong to is gone."""


def rows_of(model: type[models.Model], user_id: UUID | None) -> models.QuerySet[Any]:
    """The user's rows of a model, everybody's with None; what a manager would hide is among them."""
    rows: models.QuerySet[Any] = model._base_manager.all()
    return rows.filter(user_id=user_id) if user_id else rows


def keys_of(rows: models.QuerySet[Any]) -> Iterator[tuple[UUID, UUID]]:
    """Ids of rows with those of their users, in no order."""
    return rows.order_by().values_list("pk", "user_id").iterator(ROWS_AT_ONCE)


def findings(
    rows: models.QuerySet[Any], message: str, *, repair: str = "", advice: str = "", kind: Any = None
) -> Iterator[Finding]:
    """The same of each of these rows, which have a user; `subject` is (`kind`, the row's id)."""
    for key, owner in keys_of(rows):
        yield Finding(
            about=row_name(rows.model, key),
            message=message,
            repair=repair,
            advice=advice,
            user_id=owner,
            subject=(kind, key),
        )


def checks() -> list[tuple[str, Check]]:
    """All checks by name, in their order. Each app has its own in a module `integrity`, which is loaded here and not before."""
    from . import machine, rows

    integrity_checks.register("database: file", machine.FILE)
    integrity_checks.register("database: foreign keys", rows.FOREIGN_KEYS)
    integrity_checks.register("database: rules", rows.CONSTRAINTS)
    integrity_checks.register("database: owners", rows.OWNERS)
    integrity_checks.register("leases", machine.LEASES)
    autodiscover_modules("integrity")
    return sorted(integrity_checks.items(), key=lambda item: (item[1].order, item[0]))


def row_name(row: models.Model | type[models.Model], key: object = None) -> str:
    """The name of a row in findings: its table and its key."""
    return f"{row._meta.db_table} {getattr(row, 'pk', None) if key is None else key}"


def owner_of(findings: Sequence[Finding]) -> UUID:
    """The user whose findings these are: each call of `fix` has those of one."""
    user_id = findings[0].user_id
    assert user_id is not None  # noqa: S101 - the check's findings are users'
    return user_id


def users_each(user_id: UUID | None) -> Iterator[UUID]:
    """The user, or everybody; without those whose account is being deleted, which goes slice by slice."""
    users = get_user_model()._base_manager.filter(leaving_at=None).order_by("pk")
    if user_id is not None:
        users = users.filter(pk=user_id)
    last: UUID | None = None
    while True:
        rows = users if last is None else users.filter(pk__gt=last)
        some = list(rows.values_list("pk", flat=True)[:USERS_AT_ONCE])
        yield from some
        if len(some) < USERS_AT_ONCE:
            return
        last = some[-1]


def per_user(
    look: Callable[[UUID], Iterable[Finding]],
) -> Callable[[UUID | None], Iterator[Finding]]:
    """`find` of a check that looks at one user at a time, each as of one moment."""

    def find(user_id: UUID | None) -> Iterator[Finding]:
        for each in users_each(user_id):
            with one_view():
                found = list(look(each))
            yield from found

    return find
