"""Old transcripts go; what a build was, made and cost stays."""

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.agent.models import ToolCall
from apps.builder.models import OPEN_STATES, Build, BuilderMessage, DialogueMessage, MessageType

AT_ONCE = 200
"""Builds per transaction, so that nobody waits long for the write lock."""


def transcripts_prune() -> None:
    """Sweep: removes the rounds of builds that ended IZZY_BUILD_TRANSCRIPT_DAYS ago: the talk with the model, tool calls with
    code and output, lines of progress. The build itself stays with its questions, answers and end, its model calls with
    tokens and cost, and the files of its version."""
    before = timezone.now() - timedelta(days=settings.IZZY_BUILD_TRANSCRIPT_DAYS)
    while _prune(before):
        pass


@transaction.atomic
def _prune(before: object) -> bool:
    """One portion; whether there may be more."""
    old = Build.objects.unscoped().filter(ended_at__lt=before, has_transcript=True)
    chosen = list(old.exclude(state__in=OPEN_STATES).values_list("pk", flat=True)[:AT_ONCE])
    DialogueMessage.objects.unscoped().filter(build_id__in=chosen).delete()
    ToolCall.objects.unscoped().filter(turn_id__in=chosen).delete()
    BuilderMessage.objects.unscoped().filter(build_id__in=chosen, type=MessageType.PROGRESS).delete()
    Build.objects.unscoped().filter(pk__in=chosen).update(has_transcript=False)
    return len(chosen) == AT_ONCE
