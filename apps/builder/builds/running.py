"""Writes to a build under way: the words of its user, and those of the process that runs it."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from apps.builder.builds.ending import CANCELLED, YOU_CANCELLED, build_end
from apps.builder.builds.messages import build_notify, message_add
from apps.builder.builds.selectors import build_get
from apps.builder.models import Build, BuilderMessage, DialogueMessage, Direction, MessageType, State
from apps.capabilities.catalog.selectors import secrets_missing
from apps.core.db.writing import claim, writing_for
from apps.core.errors import Conflict, NotFound
from apps.core.ids import parse_id
from apps.core.jobs.leases import LEASE_END
from apps.core.text import canonical_json, clean_text, is_yes

MAX_ANSWER_CHARS = 4_000
GRANTS = {"network": "hosts", "secrets": "secrets"}
"""Kinds of questions that are answered by yes or no, and the field of their payload that names what is allowed."""
MAX_ATTEMPTS = 3
LIMITS = frozenset({"max_rounds", "timed_out", "too_many_tokens"})
GAVE_UP = "Izzy was interrupted {attempts} times while building this. Try again."


@transaction.atomic
def build_answer(
    *,
    user_id: UUID,
    build_id: object,
    question_id: object = None,
    text: object = None,
    decision: object = None,
) -> BuilderMessage:
    """Answers a question (`text`) or decides on a request for hosts or secrets (`decision`, allow or deny).

    Without `question_id` the newest open one is meant. An answer that comes after the builder has gone on still reaches
    it. Raises NotFound, InvalidInput, Conflict (`not_waiting`: nothing is asked, it was answered, or the build has ended;
    `missing_secret`: what would be allowed is not stored yet).
    """
    build = _own_locked(user_id, build_id)
    question = _question(build, question_id)
    payload: dict[str, Any] = {"question": str(question.pk)}
    if question.payload.get("kind") in GRANTS:
        payload |= _decided(build, question.payload, decision)
    else:
        payload |= {"text": clean_text(text, field="text", max_chars=MAX_ANSWER_CHARS)}
    question.read = True
    question.save(update_fields=["read"])
    return message_add(
        build=build, type=MessageType.ANSWER, direction=Direction.TO_BUILDER, payload=payload
    )


def _decided(build: Build, asked: dict[str, Any], decision: object) -> dict[str, Any]:
    """The answer to a request for hosts or secrets, which are granted where it is yes: secrets to a tool that reaches the
    hosts named with them."""
    kind, what = asked["kind"], GRANTS[asked["kind"]]
    hosts, names = asked.get("hosts", []), asked.get("secrets", [])
    allowed = is_yes(decision)
    if allowed and kind == "network":
        hosts_grant(build=build, hosts=hosts)
    elif allowed:
        if missing := secrets_missing(build.user_id, names):
            message = (
                f"{missing[0]} is not stored yet. Add it in the settings, under Secrets, then allow it."
            )
            raise Conflict(message, code="missing_secret", missing=missing)
        build.secrets = build.secrets | dict.fromkeys(names, sorted(hosts))
        build.save(update_fields=["secrets"])
    return {"kind": kind, "decision": "allow" if allowed else "deny", what: asked.get(what, [])}


@transaction.atomic
def build_cancel(*, user_id: UUID, build_id: object) -> Build:
    """Ends a build at once where it waits, else asks its process to. Conflict (`ended`) where it is over."""
    build = _own_locked(user_id, build_id)
    if not build.is_open:
        raise Conflict("This build has ended.", code="ended")
    if Build.objects.unscoped().filter(Build.lease_free(), pk=build.pk).exists():
        build_end(build=build, code=CANCELLED, reason=YOU_CANCELLED)
    elif not build.cancel_requested:
        build.cancel_requested = True
        build.save(update_fields=["cancel_requested"])
        build_notify(build_id=build.pk)
    return build


def hosts_grant(*, build: Build, hosts: list[str]) -> None:
    """Notes that the user allows these hosts. Call it inside a transaction that holds the build's row."""
    build.hosts = sorted({*build.hosts, *hosts})
    build.save(update_fields=["hosts"])


def _own_locked(user_id: UUID, build_id: object) -> Build:
    found = build_get(user_id, build_id)
    return Build.objects.for_user(user_id).select_for_update().get(pk=found.pk)


def _question(build: Build, question_id: object) -> BuilderMessage:
    rows = BuilderMessage.objects.for_user(build.user_id).filter(build=build, type=MessageType.QUESTION)
    if question_id is None:
        question = rows.filter(read=False).order_by("number").last()
    else:
        question = rows.filter(pk=parse_id(question_id)).first()
        if question is None:
            raise NotFound("This build asks nothing with this id.")
    if question is None or question.read or not build.is_open:
        raise Conflict("Nothing waits for this any more.", code="not_waiting")
    return question


def builds_claim(*, runner: str, limit: int, but: Collection[UUID] = ()) -> list[UUID]:
    """Takes up to `limit` builds that nobody runs, oldest first, at most IZZY_BUILDS_PER_USER of one user at once.

    Those in `but` are at work in this process, whose leases ran out where it slept: it extends them, or stops where another
    has them by now. One that was interrupted too often ends as failed instead.
    """
    free = Build.objects.unscoped().filter(Build.lease_free())
    waiting = free.exclude(pk__in=but).order_by("created_at", "pk")
    claimed: list[UUID] = []
    for build_id, user_id in list(waiting.values_list("pk", "user_id")):
        if len(claimed) >= limit:
            break
        with writing_for(user_id):
            if _claim(user_id, build_id, runner):
                claimed.append(build_id)
    return claimed


@transaction.atomic
def _claim(user_id: UUID, build_id: UUID, runner: str) -> bool:
    """Takes one build unless its user has enough under way; ends it where it is not to go on."""
    own = Build.objects.for_user(user_id)
    build = own.filter(Build.lease_free(), pk=build_id).first()
    if build is None:
        return False
    if build.cancel_requested:
        build_end(build=build, code=CANCELLED, reason=YOU_CANCELLED)
    elif build.attempt >= MAX_ATTEMPTS:
        build_end(build=build, code="interrupted", reason=GAVE_UP.format(attempts=build.attempt))
    else:
        busy = own.filter(state=State.RUNNING).exclude(Build.lease_free()).count()
        values = {"attempt": F("attempt") + 1, "started_at": Coalesce(F("started_at"), timezone.now())}
        if busy < settings.IZZY_BUILDS_PER_USER:
            return Build.lease_take(build.pk, runner, state=State.RUNNING, **values)
    return False


@transaction.atomic
def builds_beat(*, runner: str, build_ids: Collection[UUID]) -> tuple[set[UUID], list[BuilderMessage]]:
    """Extends the leases; returns the builds that are to stop (cancelled, or not ours any more) and all that users have
    answered the others and their models do not know yet."""
    mine = Build.objects.unscoped().filter(pk__in=build_ids, runner=runner, state=State.RUNNING)
    with claim():  # builds of many users: all of them are this process's
        mine.update(lease_until=LEASE_END)
    go_on = set(mine.filter(cancel_requested=False).values_list("pk", flat=True))
    return set(build_ids) - go_on, list(_answers_to(go_on).order_by("number"))


def builds_news(*, runner: str, build_ids: Collection[UUID], known: Collection[UUID]) -> bool:
    """Whether users have answered these builds, beside the `known` answers, or want one to stop: a read, to be asked often."""
    rows = Build.objects.unscoped().filter(pk__in=build_ids)
    go_on = rows.filter(runner=runner, cancel_requested=False)
    return _answers_to(build_ids).exclude(pk__in=known).exists() or go_on.count() < len(build_ids)


def _answers_to(build_ids: Collection[UUID]) -> QuerySet[BuilderMessage]:
    """Returns the answers that no stored results tell these builders' models of."""
    rows = BuilderMessage.objects.unscoped().filter(build_id__in=build_ids)
    return rows.filter(direction=Direction.TO_BUILDER, read=False)


@transaction.atomic
def taken_end(build_id: UUID, runner: str, code: str, reason: str) -> None:
    """Ends a build that this process has taken up; nothing where another has it meanwhile, or nobody has cancelled it. What
    stopped at a limit names the last error as well."""
    build = Build.objects.unscoped().filter(pk=build_id, runner=runner).first()
    if build is None or (code == CANCELLED and not build.cancel_requested):
        return
    if build.last_error and code in LIMITS:
        reason = f"{reason}\nThe last error: {build.last_error}"
    build_end(build=build, code=code, reason=reason)


@transaction.atomic
def dialogue_add(
    *,
    build: Build,
    role: str,
    blocks: list[dict[str, Any]],
    round: int,
    stop_reason: str = "",
    answers: Collection[UUID] = (),
) -> bool:
    """Keeps one message of the talk with the model, and that it tells of these answers of the user's: until then they count as
    unread, and whoever takes the build up gets them. False where the process that read the build has it no more: it was
    deleted, has ended, or another process goes on with it."""
    held = Build.objects.unscoped().select_for_update().filter(pk=build.pk, runner=build.runner)
    if held.filter(state=State.RUNNING).first() is None:
        return False
    rows = DialogueMessage.objects.unscoped().filter(build_id=build.pk)
    DialogueMessage.objects.create(
        user_id=build.user_id,
        build_id=build.pk,
        position=rows.count(),
        role=role,
        blocks=canonical_json(blocks),
        round=round,
        stop_reason=stop_reason[:32],
    )
    if answers:
        BuilderMessage.objects.owned_by(build.user_id).filter(pk__in=answers).update(read=True)
    return True


@transaction.atomic
def message_to_user(build_id: UUID, type: MessageType, payload: dict[str, Any]) -> UUID | None:
    """Says how far the build is, or asks something; returns the message's id, None where the build has ended."""
    build = Build.objects.unscoped().select_for_update().filter(pk=build_id).first()
    if build is None or not build.is_open:
        return None
    return message_add(build=build, type=type, payload=payload).pk
