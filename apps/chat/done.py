"""Long answers and builds that have just ended, for those who wait for them elsewhere."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import F
from django.urls import reverse
from django.utils import timezone

from apps.builder.models import Build
from apps.chat.models import Conversation, Turn, TurnStatus

LATELY = timedelta(minutes=2)
LONG = timedelta(seconds=20)
"""An answer that is sooner there is waited for on its page."""
TITLES = {
    TurnStatus.DONE: "Izzy has answered",
    TurnStatus.FAILED: "Izzy could not answer",
    TurnStatus.INTERRUPTED: "Izzy could not answer",
}
"""By how a turn ended; who stopped one knows."""


def done_lately(user_id: UUID) -> list[dict[str, Any]]:
    """`{id, title, text, url}` of each long turn, unless it was stopped, and each build that ended within LATELY."""
    since = timezone.now() - LATELY
    talks = Conversation.objects.for_user(user_id).filter(updated_at__gt=since)
    named = {row.pk: str(row) for row in talks.only("title")}
    turns = Turn.objects.owned_by(user_id).filter(conversation_id__in=named, ended_at__gt=since)
    turns = turns.filter(state__in=TITLES, ended_at__gt=F("started_at") + LONG)
    done = [
        {
            "id": str(turn.pk),
            "title": TITLES[TurnStatus(turn.state)],
            "text": named[turn.conversation_id],
            "url": reverse("chat:conversation", args=[turn.conversation_id]),
        }
        for turn in turns
    ]
    builds = Build.objects.for_user(user_id).filter(ended_at__gt=since)
    return done + [
        {
            "id": str(build.pk),
            "title": "A build is done",
            "text": f"{build.name.replace('_', ' ')}: {build.get_state_display().lower()}",
            "url": reverse("builder:build", args=[build.pk]),
        }
        for build in builds
    ]
