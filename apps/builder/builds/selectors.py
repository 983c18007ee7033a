"""Reads of the builder: builds, their messages, their transcript and what they cost."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, QuerySet
from django.utils import timezone

from apps.agent.model.client import Usage
from apps.agent.models import ToolCall
from apps.agent.selectors import turn_usage
from apps.builder.models import (
    OPEN_STATES,
    Build,
    BuilderMessage,
    DialogueMessage,
    Follower,
    MessageType,
    State,
)
from apps.capabilities.catalog.selectors import secrets_missing, versions_waiting
from apps.capabilities.models import CapabilityVersion
from apps.core.db.prepared import prepared
from apps.core.errors import NotFound
from apps.core.ids import parse_id

UNMADE = (State.FAILED, State.CANCELLED)


def build_get(user_id: UUID, build_id: object) -> Build:
    """Raises NotFound for a foreign or unknown one."""
    rows = Build.objects.for_user(user_id).select_related("capability")
    found = rows.filter(pk=parse_id(build_id)).first()
    if found is None:
        raise NotFound("There is no build with this id.")
    return found


def builds_for(user_id: UUID, *, state: str = "", name: str = "") -> QuerySet[Build]:
    """The user's builds, newest first."""
    rows = Build.objects.for_user(user_id).select_related("capability").order_by("-created_at")
    if state:
        rows = rows.filter(state=state)
    return rows.filter(name=name) if name else rows


def messages_after(build: Build, number: int = 0) -> list[BuilderMessage]:
    """The build's messages above that number, in order."""
    rows = BuilderMessage.objects.for_user(build.user_id).filter(build_id=build.pk, number__gt=number)
    return list(rows.order_by("number"))


def open_questions(build: Build) -> list[BuilderMessage]:
    """Questions still to be answered."""
    if not build.is_open:
        return []
    rows = BuilderMessage.objects.for_user(build.user_id).filter(
        build=build, type=MessageType.QUESTION, read=False
    )
    return list(rows.order_by("number"))


def questions_pressing(user_id: UUID) -> list[tuple[BuilderMessage, float]]:
    """The questions for whose answer a build of the user's waits just now, each with the seconds it still does."""
    rows = BuilderMessage.objects.for_user(user_id).filter(type=MessageType.QUESTION, read=False)
    rows = rows.filter(build__state__in=OPEN_STATES).select_related("build").order_by("created_at")
    now = timezone.now()
    waiting = [
        (row, row.payload.get("seconds", 0) - (now - row.created_at).total_seconds()) for row in rows
    ]
    return [(row, left) for row, left in waiting if left > 0]


def waiting_for_user(user_id: UUID, builds: Iterable[Build]) -> set[UUID]:
    """Those of the builds that wait for the user: by a question, or by a version that is to be approved."""
    listed = list(builds)
    rows = BuilderMessage.objects.for_user(user_id).filter(type=MessageType.QUESTION, read=False)
    asking = rows.filter(build__in=[build.pk for build in listed if build.is_open])
    made = {
        (build.capability_id, build.version): build.pk for build in listed if build.version is not None
    }
    versions = CapabilityVersion.objects.for_user(user_id).select_related("capability__current")
    asked_for = [
        version
        for version in versions.filter(capability__in={capability for capability, _ in made})
        if (version.capability_id, version.number) in made and not version.is_approved
    ]
    newest = versions_waiting(user_id, {version.capability for version in asked_for})
    return set(asking.values_list("build_id", flat=True)) | {
        made[version.capability_id, version.number]
        for version in asked_for
        if version in (version.capability.current, newest.get(version.capability_id))
    }


def secrets_wanted(build: Build) -> list[str]:
    """Secrets that the build's open questions or its version ask for, and that are not stored."""
    names = {name for question in open_questions(build) for name in question.payload.get("secrets", [])}
    if build.version is not None:
        rows = CapabilityVersion.objects.for_user(build.user_id)
        made = rows.filter(capability_id=build.capability_id, number=build.version).first()
        names |= set(made.secrets if made else [])
    return secrets_missing(build.user_id, sorted(names))


def build_later(build: Build) -> UUID | None:
    """The id of the newest attempt at the same capability after this one."""
    rows = Build.objects.owned_by(build.user_id).filter(capability_id=build.capability_id)
    newest = rows.filter(created_at__gt=build.created_at).order_by("-created_at").first()
    return None if newest is None else newest.pk


def build_usage(build: Build) -> Usage:
    """Tokens and cost of its model calls so far."""
    return turn_usage(user_id=build.user_id, turn_id=build.pk)


def build_seconds(build: Build) -> float | None:
    """How long it has been built, in seconds; None before it began."""
    if build.started_at is None:
        return None
    return ((build.ended_at or timezone.now()) - build.started_at).total_seconds()


@dataclass(frozen=True, slots=True)
class Step:
    """One round of the builder: what its model said, and the tool calls it made."""

    round: int
    text: str
    calls: list[ToolCall]


def transcript(build: Build) -> list[Step]:
    """Every round of the build, in order."""
    calls: dict[int, list[ToolCall]] = {}
    rows = ToolCall.objects.for_user(build.user_id).filter(turn_id=build.pk)
    for call in rows.order_by("round", "position"):
        calls.setdefault(call.round, []).append(call)
    said = DialogueMessage.objects.for_user(build.user_id).filter(build=build, role="assistant")
    said = said.exclude(stop_reason="max_rounds")  # the loop's own words to a chat's user
    return [
        Step(message.round, text_of(json.loads(message.blocks)), calls.get(message.round, []))
        for message in said.order_by("position")
    ]


def text_of(blocks: Iterable[dict[str, Any]]) -> str:
    """The text blocks, joined."""
    return "\n\n".join(block["text"] for block in blocks if block.get("type") == "text").strip()


def conversations_of(build: Build) -> list[UUID]:
    """The conversations in which the build was asked for, the first one first."""
    rows = Follower.objects.owned_by(build.user_id).filter(build_id=build.pk).order_by("pk")
    return list(dict.fromkeys(rows.values_list("conversation_id", flat=True)))


def builds_in(user_id: UUID, conversation_id: UUID) -> list[dict[str, str | None]]:
    """`{turn, build_id, replaces}` of the builds that were asked for in that conversation, oldest first; `replaces` is the
    attempt of the same turn in whose place it was made."""
    rows = Follower.objects.owned_by(user_id).filter(conversation_id=conversation_id)
    attempts: dict[tuple[UUID, UUID], Build] = {}
    found: list[dict[str, str | None]] = []
    for row in rows.select_related("build").order_by("pk"):
        key = row.turn_id, row.build.capability_id
        before = attempts.get(key)
        replaces = str(before.pk) if before is not None and before.state in UNMADE else None
        found.append({"turn": str(row.turn_id), "build_id": str(row.build_id), "replaces": replaces})
        attempts[key] = row.build
    return found


def builds_waiting() -> bool:
    """Whether there are builds that nobody runs."""
    return bool(_waiting())


@prepared
def _waiting() -> QuerySet[Build, UUID]:
    return Build.objects.unscoped().filter(Build.lease_free()).values_list("pk", flat=True)[:1]


def builds_queued() -> QuerySet[Build]:
    """The builds of all users that have not begun."""
    return Build.objects.unscoped().filter(state__in=OPEN_STATES, state=State.QUEUED)


def builds_running() -> QuerySet[Build]:
    """Those that some process works on."""
    return Build.objects.unscoped().filter(state__in=OPEN_STATES, state=State.RUNNING)


def builder_stats(user_id: UUID) -> dict[str, Any]:
    """`{total, done, failed, cancelled, open}`."""
    rows = Build.objects.for_user(user_id).order_by()
    counts = dict(rows.values_list("state").annotate(number=Count("pk")))
    return {
        "total": sum(counts.values()),
        **{state.value: counts.get(state, 0) for state in (State.DONE, State.FAILED, State.CANCELLED)},
        "open": sum(counts.get(state, 0) for state in OPEN_STATES),
    }
