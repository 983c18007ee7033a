"""Asking for a build: of a new capability, of a change to one, or of a repair; and how much building one user may ask for."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.accounts.services import users_lock
from apps.builder.builds.messages import BuildOrigin, build_follow, message_add, origin_of
from apps.builder.builds.selectors import build_get
from apps.builder.models import OPEN_STATES, Build, Follower, Kind, MessageType, State
from apps.capabilities.catalog.drafts import clean_description, clean_name
from apps.capabilities.catalog.files import CapabilityRefused
from apps.capabilities.catalog.schemas import clean_schema
from apps.capabilities.catalog.selectors import capability_get, execution_get
from apps.capabilities.catalog.versions import capability_begin, capability_locked
from apps.capabilities.models import Capability, Execution, Status
from apps.capabilities.runs.tools import is_unseen
from apps.capabilities.sandbox.running import current_backend
from apps.core.errors import Conflict, NotFound, Throttled
from apps.core.jobs.worker import check_worker
from apps.core.text import clean_text

MAX_FEEDBACK_CHARS = 4_000
MAX_REQUEST_CHARS = 4_000
MOMENTS = 3  # another process may come in between so often before an asker is sent away
DAY = timedelta(hours=24)
MAX_OPEN = 20  # of one user that may wait or run; how many of them run at once is IZZY_BUILDS_PER_USER


def _check(user_id: UUID) -> None:
    """Raises Throttled (`too_many_builds`) where the user has asked for enough within a day, or too much waits, and
    SandboxUnavailable.

    Call it in the transaction that adds the build: nobody else adds one of the same user until that ends.
    """
    users_lock([user_id])
    rows = Build.objects.for_user(user_id)
    today = rows.filter(created_at__gte=timezone.now() - DAY).order_by("-created_at")
    most = settings.IZZY_BUILDS_PER_DAY
    if oldest := today[most - 1 : most]:
        wait = int((oldest[0].created_at + DAY - timezone.now()).total_seconds()) + 1
        minutes, hours = -(-wait // 60), -(-wait // 3600)
        begins = (
            f"{hours} hours" if minutes >= 120 else "a minute" if minutes <= 1 else f"{minutes} minutes"
        )
        message = f"{most} builds within a day are the limit (IZZY_BUILDS_PER_DAY). The next one may begin in {begins}."
        raise Throttled(message, code="too_many_builds", limit=most, retry_after=wait)
    if rows.filter(state__in=OPEN_STATES).count() >= MAX_OPEN:
        message = (
            f"{MAX_OPEN} builds wait or run already. Wait until one of them has ended, or cancel one."
        )
        raise Throttled(message, code="too_many_builds", limit=MAX_OPEN, retry_after=60)
    current_backend()


def held_up(build: Build) -> str:
    """Why a build that waits has not begun, and when it will; "" where nothing holds it up."""
    if build.state != State.QUEUED:
        return ""
    if not check_worker().ok:
        return "Nothing is built at the moment: Izzy's worker is not running. It begins when the worker is back."
    running = Build.objects.unscoped().filter(state=State.RUNNING)
    own = running.filter(user_id=build.user_id).count()
    if own >= settings.IZZY_BUILDS_PER_USER:
        way = "Another build of yours is" if own == 1 else f"{own} builds of yours are"
        return f"{way} under way, and no more may be at once. It begins when one has ended."
    if running.count() >= settings.IZZY_BUILDS:
        return "Other builds are under way. It begins when one of them has ended."
    return ""


class Requested(NamedTuple):
    """Holds the result of a request: there is no build where the capability is there already."""

    capability: Capability
    build: Build | None = None

    @property
    def status(self) -> str:
        return "active" if self.build is None else "building"


def build_request(
    *,
    user_id: UUID,
    name: object,
    description: object,
    input_schema: Mapping[str, Any],
    origin: BuildOrigin | None = None,
) -> Requested:
    """Has a capability built, once: one that is active is returned, a build under way is joined, a failed or
    disabled one is built again.

    Raises InvalidInput (name, description, schema), Throttled (`too_many_builds`), Conflict (`too_many`,
    `build_under_way`, `not_approved`: an archive's that the user has not approved) and SandboxUnavailable, each with what to do.
    """
    clean = clean_name(name)
    wanted = clean_description(description), clean_schema(dict(input_schema))
    origin = origin or BuildOrigin()
    for _ in range(MOMENTS):
        if (joined := _joined(user_id, clean, origin)) is not None:
            return Requested(joined.capability, joined)
        try:
            return _begun(user_id, clean, *wanted, origin)
        except IntegrityError:
            # Another process has asked for the same name in this moment: join its build.
            continue
    raise Conflict(f"{clean} is being asked for by several at once. Ask again.", code="build_under_way")


@transaction.atomic
def _joined(user_id: UUID, name: str, origin: BuildOrigin) -> Build | None:
    """The build of that name that is under way, which has one more follower. Its row is held: it does not end meanwhile."""
    rows = Build.objects.for_user(user_id).select_for_update().filter(name=name, state__in=OPEN_STATES)
    build = rows.first()
    if build is not None:
        build_follow(build=build, origin=origin)
    return build


@transaction.atomic
def _begun(
    user_id: UUID, clean: str, description: str, schema: dict[str, Any], origin: BuildOrigin
) -> Requested:
    """Raises IntegrityError where another process has begun one of the same name since it was looked for."""
    there = Capability.objects.for_user(user_id).filter(name=clean, status=Status.ACTIVE).first()
    if there is not None:
        return Requested(there)
    _check(user_id)
    found = capability_begin(user_id=user_id, name=clean, description=description, input_schema=schema)
    return Requested(
        found, _build(found, origin, Kind.NEW, description=description, input_schema=schema)
    )


@transaction.atomic
def build_change(
    *,
    user_id: UUID,
    name: object,
    feedback: object = "",
    execution_id: object = None,
    origin: BuildOrigin | None = None,
) -> Build:
    """Has a new version built of a capability that has one, which stays in use until then.

    `feedback` says what to do differently; with `execution_id`, a failed run of it, it is a repair: feedback may be empty,
    and the turn that the run was for follows the build where no other origin is given. Raises NotFound, InvalidInput,
    Conflict (`build_under_way`, `no_version`, `not_failed`, `not_approved`), Throttled, SandboxUnavailable.
    """
    execution = None if execution_id is None else execution_get(user_id, execution_id)
    words = clean_text(
        feedback, field="feedback", max_chars=MAX_FEEDBACK_CHARS, allow_empty=execution is not None
    )
    capability = capability_locked(user_id, capability_get(user_id, name).pk)
    if execution is not None:
        _check_repair(capability, execution)
        origin = origin or origin_of(user_id, execution.conversation_id, execution.turn_id)
    if capability.current is None:
        message = f"{capability.name} has no version that could be changed. Have it built first."
        raise Conflict(message, code="no_version")
    builds = Build.objects.for_user(user_id).filter(capability=capability, state__in=OPEN_STATES)
    if (under_way := builds.first()) is not None:
        message = f"{capability.name} is being built right now. Wait until that has ended."
        raise Conflict(message, code="build_under_way", build=str(under_way.pk))
    _check(user_id)
    return _build(
        capability,
        origin or BuildOrigin(),
        Kind.REPAIR if execution else Kind.CHANGE,
        description=capability.description,
        input_schema=capability.input_schema,
        feedback=words,
        execution_id=execution.pk if execution else None,
    )


def _check_repair(capability: Capability, execution: Execution) -> None:
    if execution.capability_id != capability.pk:
        raise NotFound("There is no run of this capability with this id.")
    if execution.state != Execution.State.FAILED:
        raise Conflict("That run did not fail, so there is nothing to repair.", code="not_failed")


@transaction.atomic
def build_retry(*, user_id: UUID, build_id: object) -> Requested:
    """Asks for the same once more, for the same conversations. Conflict (`not_failed`) while it goes on or where it
    succeeded, and (`run_gone`) where the run to be repaired is no longer kept and nothing was said of it; else raises as
    `build_request` and `build_change`."""
    build = build_get(user_id, build_id)
    if build.is_open or build.state == State.DONE:
        raise Conflict("This build did not fail.", code="not_failed")
    origin = BuildOrigin(
        conversation_id=build.conversation_id, turn_id=build.turn_id, request=build.request
    )
    if build.kind == Kind.NEW:
        requested = build_request(
            user_id=user_id,
            name=build.name,
            description=build.description,
            input_schema=build.input_schema,
            origin=origin,
        )
    else:
        run = build.execution_id
        if run is not None and not Execution.objects.for_user(user_id).filter(pk=run).exists():
            run = None
        if run is None and not build.feedback:
            message = "The run that this was to repair is no longer kept. Ask for a change, and say what is wrong."
            raise Conflict(message, code="run_gone")
        again = build_change(
            user_id=user_id,
            name=build.name,
            feedback=build.feedback,
            execution_id=run,
            origin=origin,
        )
        requested = Requested(build.capability, again)
    if requested.build is not None:
        for row in Follower.objects.owned_by(user_id).filter(build=build).order_by("pk"):
            follows = BuildOrigin(conversation_id=row.conversation_id, turn_id=row.turn_id)
            build_follow(build=requested.build, origin=follows)
    return requested


def _build(
    capability: Capability,
    origin: BuildOrigin,
    kind: Kind,
    *,
    description: str,
    input_schema: Mapping[str, Any],
    feedback: str = "",
    execution_id: UUID | None = None,
) -> Build:
    # The builder would read its files, and what it makes of them would wait for nobody.
    if is_unseen(capability):
        message = f"{capability.name} came from an archive. Look at it and approve it first, or choose another name."
        raise CapabilityRefused("not_approved", capability.name, message)
    build = Build.objects.create(
        user_id=capability.user_id,
        capability=capability,
        name=capability.name,
        kind=kind,
        request=origin.request[:MAX_REQUEST_CHARS],
        conversation_id=origin.conversation_id,
        turn_id=origin.turn_id,
        description=description,
        input_schema=dict(input_schema),
        feedback=feedback,
        execution_id=execution_id,
    )
    build_follow(build=build, origin=origin)
    message_add(build=build, type=MessageType.PROGRESS, payload={"stage": "queued", "text": "Asked for"})
    return build
