"""Checks of the database file, and of leases."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from uuid import UUID

from django.apps import apps
from django.db import DatabaseError
from django.db.models import Case, Q, When
from django.db.models.functions import Now

from apps.core.db.soundness import Damage, damages, index_rebuild
from apps.core.db.troubles import DAMAGED, explain
from apps.core.db.writing import claim
from apps.core.jobs.leases import LEASE, RELEASED, Leased

from . import Check, Finding, row_name
from .rows import owner_field

OVER, FORGOTTEN = timedelta(minutes=1), timedelta(minutes=10)
"""A process that is at work extends its lease every few seconds. A sweep clears away those that are over; it comes every five
minutes, so that one which is there much longer was forgotten."""
AHEAD = 4 * LEASE


def file_find(user_id: UUID | None) -> Iterator[Finding]:
    """The engine's findings about its own file."""
    if user_id is not None:
        return
    for damage in _damages():
        yield Finding(
            about=f"index {damage.of_index}" if damage.of_index else "database file",
            message=f"The database file is damaged: {damage.report}.",
            repair="Writes the index anew." if damage.of_index else "",
            advice="Stop Izzy, keep a copy of the file, and restore the newest backup that is whole "
            "(docs/operations.md, Backups).",
            subject=damage.of_index,
        )


def _damages() -> Iterator[Damage]:
    try:
        yield from damages()
    except DatabaseError as error:
        if explain(error) is not DAMAGED:
            raise
        yield Damage(str(error))


def file_fix(findings: Sequence[Finding]) -> None:
    for name in {finding.subject for finding in findings}:
        index_rebuild(name)


def leased_models() -> list[type[Leased]]:
    return [model for model in apps.get_models() if issubclass(model, Leased)]


def leases_find(user_id: UUID | None) -> Iterator[Finding]:
    """Leases that nobody alive can hold: long over, or from before the clock was set back."""
    for model in leased_models():
        owner = owner_field(model)
        if user_id is not None and not owner:
            continue
        rows = model._base_manager.filter(**({owner: user_id} if user_id else {})).exclude(runner="")
        rows = rows.annotate(ahead=Case(When(_ahead(), then=True), default=False))
        columns = ["pk", "ahead", *([owner] if owner else [])]
        stale = rows.filter(over() | _ahead()).order_by().values_list(*columns)
        for key, ahead, *whose in stale.iterator():
            yield Finding(
                about=row_name(model, key),
                message="Its lease reaches further ahead than any process writes one."
                if ahead
                else "Its lease is over and no process has given it back.",
                repair="Gives the lease back, so that any process can take it.",
                user_id=whose[0] if whose else None,
                subject=(model, key),
            )


def over(since: timedelta = FORGOTTEN) -> Q:
    return Q(lease_until__lt=Now() - since) | Q(lease_until=None)


def _ahead() -> Q:
    return Q(lease_until__gt=Now() + AHEAD)


def leases_fix(findings: Sequence[Finding]) -> None:
    for finding in findings:
        model, key = finding.subject
        with claim():  # under the same condition: it may have been taken meanwhile
            model._base_manager.filter(over() | _ahead(), pk=key).exclude(runner="").update(**RELEASED)


def leases_clear() -> None:
    """Sweep: gives back the leases of processes that died. Everybody counts them as free long since."""
    for model in leased_models():
        gone = model._base_manager.filter(over(OVER)).exclude(runner="").order_by()
        for key in list(gone.values_list("pk", flat=True)):
            with claim():  # as above
                model._base_manager.filter(over(OVER), pk=key).exclude(runner="").update(**RELEASED)


FILE = Check("The database file is whole", file_find, file_fix, order=10)
LEASES = Check("Leases are held by the living", leases_find, leases_fix, order=30)
