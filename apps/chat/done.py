"""Long answers and builds that have just ended, for those who wait for them elsewhere."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import F
from django.urls import reverse
from django.utils import timezone

from apps.builder.models import Build
from apps.chat.models import OPEN_STATES, Conversation, Turn

LATELY = timedelta(minutes=2)
LONG = timedelta(seconds=20)
"""An answer that is sooner there is waited for on its page."""


def done_lately(user_id: UUID) -> list[dict[str, Any]]:
    """`{id, title, text, url}` of each long turn and each build that ended within LATELY, whatever came of it."""
    since = timezone.now() - LATELY
    talks = Conversation.objects.for_user(user_id).filter(updated_at__gt=since)
    named = {row.pk: str(row) for row in talks.only("title")}
    turns = Turn.objects.owned_by(user_id).filter(conversation_id__in=named, ended_at__gt=since)
    turns = turns.exclude(state__in=OPEN_STATES).filter(ended_at__gt=F("started_at") + LONG)
    done = [
        {
            "id": str(turn.pk),
            "title": "Izzy has answered",
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
