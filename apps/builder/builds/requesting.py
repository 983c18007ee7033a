"""Asking for a build: of a new capability, of a change to one, or of a repair; and how much building one user may ask for."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.accounts.services import users_lock
from apps.builder.builds.messages import Origin, build_follow, followers_move, message_add, origin_of
from apps.builder.builds.selectors import build_get
from apps.builder.models import OPEN_STATES, Build, Kind, MessageType, State
from apps.capabilities.catalog.drafts import clean_description
from apps.capabilities.catalog.names import clean_name
from apps.capabilities.catalog.schemas import clean_schema
from apps.capabilities.catalog.selectors import capability_get, execution_get
from apps.capabilities.catalog.versions import capability_begin, capability_locked, capability_rebuild
from apps.capabilities.models import Capability, Status
from apps.capabilities.sandbox.selection import current_backend
from apps.core.errors import Conflict, NotFound, Throttled
from apps.core.jobs.worker import check_worker
from apps.core.text import clean_text

DAY = timedelta(hours=24)
MAX_OPEN = 20
"""Builds of one user that may wait or run; how many of them run at once is IZZY_BUILDS_PER_USER."""


def check_limits(user_id: UUID) -> None:
    """Raises Throttled (`too_many_builds`) where the user has asked for enough within a day, or too much waits.

    Call it in the transaction that adds the build: nobody else adds one of the same user until that ends.
    """
    users_lock([user_id])
    rows = Build.objects.for_user(user_id)
    since = timezone.now() - DAY
    today = rows.filter(created_at__gte=since)
    if today.count() >= settings.IZZY_BUILDS_PER_DAY:
        oldest = today.order_by("-created_at")[
            settings.IZZY_BUILDS_PER_DAY - 1 : settings.IZZY_BUILDS_PER_DAY
        ]
        wait = int((oldest[0].created_at + DAY - timezone.now()).total_seconds()) + 1
        message = (
            f"{settings.IZZY_BUILDS_PER_DAY} builds within a day are the limit (IZZY_BUILDS_PER_DAY). "
            f"The next one may begin in {_duration(wait)}."
        )
        raise Throttled(message, code="too_many_builds", limit=settings.IZZY_BUILDS_PER_DAY, retry_after=wait)
    if rows.filter(state__in=OPEN_STATES).count() >= MAX_OPEN:
        message = f"{MAX_OPEN} builds wait or run already. Wait until one of them has ended, or cancel one."
        raise Throttled(message, code="too_many_builds", limit=MAX_OPEN, retry_after=60)


def held_up(build: Build) -> str:
    """Why a build that waits has not begun, and when it will; "" where nothing holds it up."""
    if build.state != State.QUEUED:
        return ""
    if not check_worker().ok:
        return (
            "Nothing is built at the moment: Izzy's worker is not running. It begins when the worker is back."
        )
    running = Build.objects.unscoped().filter(state=State.RUNNING)
    own = running.filter(user_id=build.user_id).count()
    if own >= settings.IZZY_BUILDS_PER_USER:
        way = "Another build of yours is" if own == 1 else f"{own} builds of yours are"
        return f"{way} under way, and no more may be at once. It begins when one has ended."
    if running.count() >= settings.IZZY_BUILDS:
        return "Other builds are under way. It begins when one of them has ended."
    return ""


def _duration(seconds: int) -> str:
    minutes = -(-seconds // 60)
    if minutes < 120:
        return "a minute" if minutes <= 1 else f"{minutes} minutes"
    return f"{-(-minutes // 60)} hours"


MAX_FEEDBACK_CHARS = 4_000
MAX_REQUEST_CHARS = 4_000
MOMENTS = 3
"""How often another process may come in between before an asker is sent away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """`status` is `active` where the capability is there already (then `build` is None), else `building`; `joined` says
    that the build was under way before."""

    status: str
    capability: Capability
    build: Build | None = None
    joined: bool = False


def build_request(
    *,
    user_id: UUID,
    name: object,
    description: object,
    input_schema: Mapping[str, Any],
    origin: Origin | None = None,
) -> Requested:
    """Has a capability built, once: one that is active is returned, a build under way is joined, a failed or
    disabled one is built again.

    Raises InvalidInput (name, description, schema), Throttled (`too_many_builds`), Conflict (`too_many`,
    `build_under_way`) and SandboxUnavailable, each with what to do.
    """
    clean = clean_name(name)
    wish = clean_description(description), clean_schema(dict(input_schema))
    place = origin or Origin()
    for _ in range(MOMENTS):
        if (joined := _joined(user_id, clean, place)) is not None:
            return joined
        try:
            return _begun(user_id, clean, *wish, place)
        except IntegrityError:
            # Another process has asked for the same name in this moment: join its build.
            continue
    raise Conflict(f"{clean} is being asked for by several at once. Ask again.", code="build_under_way")


@transaction.atomic
def _joined(user_id: UUID, name: str, origin: Origin) -> Requested | None:
    """The build of that name that is under way, which has one more to be told. Its row is held: it does not end meanwhile."""
    rows = Build.objects.for_user(user_id).select_for_update().filter(name=name, state__in=OPEN_STATES)
    if (build := rows.first()) is None:
        return None
    build_follow(build=build, origin=origin)
    return Requested(status="building", capability=build.capability, build=build, joined=True)


@transaction.atomic
def _begun(user_id: UUID, clean: str, description: str, schema: dict[str, Any], origin: Origin) -> Requested:
    """Raises IntegrityError where another process has begun one of the same name since it was looked for."""
    found = Capability.objects.for_user(user_id).select_for_update().filter(name=clean).first()
    if found is not None and found.status == Status.ACTIVE:
        return Requested(status="active", capability=found)
    _check(user_id)
    if found is None:
        found = capability_begin(user_id=user_id, name=clean, description=description, input_schema=schema)
    else:
        found = capability_rebuild(
            user_id=user_id, capability_id=found.pk, description=description, input_schema=schema
        )
    build = _build(found, Kind.NEW, description, schema, origin)
    return Requested(status="building", capability=found, build=build)


@transaction.atomic
def build_change(
    *,
    user_id: UUID,
    name: object,
    feedback: object = "",
    execution_id: object = None,
    origin: Origin | None = None,
) -> Build:
    """Has a new version built of a capability that has one, which stays in use until then.

    `feedback` says what to do differently; with `execution_id`, a failed run of it, it is a repair: feedback may be empty,
    and the turn that the run was for is told of the build where no other origin is given. Raises NotFound, InvalidInput,
    Conflict (`build_under_way`, `no_version`, `not_failed`), Throttled, SandboxUnavailable.
    """
    execution = None if execution_id is None else execution_get(user_id, execution_id)
    words = clean_text(
        feedback, field="feedback", max_chars=MAX_FEEDBACK_CHARS, allow_empty=execution is not None
    )
    capability = capability_locked(user_id, capability_get(user_id, name).pk)
    if execution is not None and execution.capability_id != capability.pk:
        raise NotFound("There is no run of this capability with this id.")
    if execution is not None and execution.state != execution.State.FAILED:
        raise Conflict("That run did not fail, so there is nothing to repair.", code="not_failed")
    if capability.current is None:
        message = f"{capability.name} has no version that could be changed. Have it built first."
        raise Conflict(message, code="no_version")
    if (under_way := open_build(capability)) is not None:
        message = f"{capability.name} is being built right now. Wait until that has ended."
        raise Conflict(message, code="build_under_way", build=str(under_way.pk))
    _check(user_id)
    if execution is not None and origin is None:
        origin = origin_of(user_id, execution.conversation_id, execution.turn_id)
    kind = Kind.CHANGE if execution is None else Kind.REPAIR
    wish = capability.description, capability.input_schema
    build = _build(capability, kind, *wish, origin or Origin(), feedback=words)
    if execution is not None:
        build.execution_id = execution.pk
        build.save(update_fields=["execution_id"])
    return build


@transaction.atomic
def build_retry(*, user_id: UUID, build_id: object) -> Requested:
    """Asks for the same once more, for the same conversations. Conflict (`not_failed`) while it goes on or where it
    succeeded; else raises as `build_request` and `build_change`."""
    build = build_get(user_id, build_id)
    if build.is_open or build.state == State.DONE:
        raise Conflict("This build did not fail.", code="not_failed")
    origin = Origin(conversation_id=build.conversation_id, turn_id=build.turn_id, request=build.request)
    if build.kind == Kind.NEW:
        requested = build_request(
            user_id=user_id,
            name=build.name,
            description=build.description,
            input_schema=build.input_schema,
            origin=origin,
        )
    else:
        again = build_change(
            user_id=user_id,
            name=build.name,
            feedback=build.feedback,
            execution_id=build.execution_id,
            origin=origin,
        )
        requested = Requested(status="building", capability=build.capability, build=again)
    if requested.build is not None:
        followers_move(before=build, to=requested.build)
    return requested


def open_build(capability: Capability) -> Build | None:
    """The build of it that waits or runs."""
    rows = Build.objects.for_user(capability.user_id).filter(capability=capability, state__in=OPEN_STATES)
    return rows.first()


def _check(user_id: UUID) -> None:
    check_limits(user_id)
    current_backend()


def _build(
    capability: Capability,
    kind: Kind,
    description: str,
    schema: Mapping[str, Any],
    origin: Origin,
    *,
    feedback: str = "",
) -> Build:
    build = Build.objects.create(
        user_id=capability.user_id,
        capability=capability,
        name=capability.name,
        kind=kind,
        description=description,
        input_schema=dict(schema),
        request=origin.request[:MAX_REQUEST_CHARS],
        feedback=feedback,
        conversation_id=origin.conversation_id,
        turn_id=origin.turn_id,
    )
    build_follow(build=build, origin=origin)
    message_add(build=build, type=MessageType.PROGRESS, payload={"stage": "queued", "text": "Asked for"})
    return build
