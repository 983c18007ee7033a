"""Writes down what decay has made of priorities, and archives what faded long ago."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand

from apps.core.db.writing import writing_for
from apps.memory.notes.changes import decay_apply


class Command(BaseCommand):
    """`manage.py decay`: for all users; safe to run at any time."""

    help = "Write the present priorities of all notes; archive those faded and unread for IZZY_ARCHIVE_DAYS."

    def handle(self, *args: Any, **options: Any) -> None:
        archive_after = timedelta(days=settings.IZZY_ARCHIVE_DAYS)
        written = archived = 0
        for user_id in get_user_model().objects.values_list("pk", flat=True):
            with writing_for(user_id):
                changed, put_away = decay_apply(user_id=user_id, archive_after=archive_after)
            written, archived = written + changed, archived + put_away
        self.stdout.write(f"{written} priorities written, {archived} notes archived.")
