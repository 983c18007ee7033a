"""Figures of a user's memory that the worker has counted, so that no page counts it."""

from django.conf import settings
from django.db import models
from django.utils import timezone


class MemorySummary(models.Model):
    """Figures of a user's memory as of `made_at`; made anew from what is there, so it is no part of an export.

    `figures` are those of `summary.counting.Counted`, without words of notes; `tags` and `categories` are the commonest, each with
    how many active notes have it. `made_from` tells what the figures were made from; the worker looks again at `due_at`.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    figures = models.JSONField(default=dict)
    tags = models.JSONField(default=list)
    categories = models.JSONField(default=list)
    made_from = models.CharField(max_length=100, blank=True, default="")
    made_at = models.DateTimeField(default=timezone.now)
    due_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "memory summaries"
        indexes = [models.Index(fields=["due_at"], name="memory_summary_due")]

    def __str__(self) -> str:
        return f"summary of {self.pk}"
