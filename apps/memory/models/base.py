"""Base models of a user's memory."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

from apps.core.ids import uuid7
from apps.core.models import UserOwned

from .choices import Origin

KEEP_DELETED = timedelta(days=30)
"""How long a deleted note or file can be restored."""


class Owned(UserOwned):
    """A row of one user. Its model has an index that begins with the user, so the foreign key needs none."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, db_index=False, related_name="+"
    )

    class Meta:
        abstract = True


class Revision(UserOwned):
    """A state that a note or file had, kept when a change replaced it.

    Versions count from 1. A row holds version `version` and tells which change ended it; the newest version is the note
    or file itself.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    version = models.PositiveIntegerField()
    content = models.TextField(blank=True)
    actor = models.CharField(max_length=16, choices=Origin)
    reason = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        abstract = True


def is_gone(deleted_at: datetime | None) -> bool:
    """Whether what was deleted then can not be restored any more."""
    return deleted_at is not None and deleted_at <= timezone.now() - KEEP_DELETED
