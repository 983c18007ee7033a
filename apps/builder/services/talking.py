"""The user's words to a build."""

from typing import Any
from uuid import UUID

from django.db import transaction

from apps.builder.models import Build, BuilderMessage, Direction, MessageType, State
from apps.builder.notify import build_notify
from apps.builder.selectors import build_get
from apps.builder.services.ending import build_end
from apps.builder.services.queue import message_add
from apps.capabilities.selectors import secrets_missing
from apps.core.decisions import is_yes
from apps.core.errors import Conflict, NotFound
from apps.core.ids import parse_id
from apps.core.text import clean_text

MAX_ANSWER_CHARS = 4_000
GRANTS = {"network": "hosts", "secrets": "secrets"}
"""Kinds of questions that are answered by yes or no, and the field of their payload that names what is allowed."""


@transaction.atomic
def build_answer(
    *,
    user_id: UUID,
    build_id: object,
    question_id: object = None,
    text: object = None,
    decision: object = None,
) -> BuilderMessage:
    """Answers a question (`text`) or decides on a wish for hosts or secrets (`decision`, allow or deny).

    Without `question_id` the newest open one is meant. An answer that comes after the builder has gone on still reaches
    it. Raises NotFound, InvalidInput, Conflict (`not_waiting`: nothing is asked, it was answered, or the build has ended;
    `missing_secret`: what would be allowed is not stored yet).
    """
    build = _locked(user_id, build_id)
    question = _question(build, question_id)
    payload: dict[str, Any] = {"question": str(question.pk)}
    if question.payload.get("kind") in GRANTS:
        payload |= _decided(build, question.payload, decision)
    else:
        payload |= {"text": clean_text(text, field="text", max_chars=MAX_ANSWER_CHARS)}
    question.read = True
    question.save(update_fields=["read"])
    return message_add(build=build, type=MessageType.ANSWER, direction=Direction.TO_BUILDER, payload=payload)


def _decided(build: Build, wish: dict[str, Any], decision: object) -> dict[str, Any]:
    """The answer to a wish for hosts or secrets, which are granted where it is yes."""
    chosen = "allow" if is_yes(decision) else "deny"
    kind, what = wish["kind"], GRANTS[wish["kind"]]
    if chosen == "allow" and kind == "network":
        hosts_grant(build=build, hosts=wish.get("hosts", []))
    elif chosen == "allow":
        secrets_grant(build=build, names=wish.get("secrets", []), hosts=wish.get("hosts", []))
    return {"kind": kind, "decision": chosen, what: wish.get(what, [])}


@transaction.atomic
def build_cancel(*, user_id: UUID, build_id: object) -> Build:
    """Ends a build at once where it waits, else asks its process to. Conflict (`ended`) where it is over."""
    build = _locked(user_id, build_id)
    if not build.is_open:
        raise Conflict("This build has ended.", code="ended")
    if Build.objects.unscoped().filter(Build.lease_free(), pk=build.pk).exists():
        build_end(build=build, state=State.CANCELLED, code="cancelled", reason="You cancelled it.")
    elif not build.cancel_requested:
        build.cancel_requested = True
        build.save(update_fields=["cancel_requested"])
        build_notify(build_id=build.pk)
    return build


def hosts_grant(*, build: Build, hosts: list[str]) -> None:
    """Notes that the user allows these hosts. Call it inside a transaction that holds the build's row."""
    build.hosts = sorted({*build.hosts, *hosts})
    build.save(update_fields=["hosts"])


def secrets_grant(*, build: Build, names: list[str], hosts: list[str]) -> None:
    """Notes that a tool which reaches these hosts may use these secrets of the user. Conflict (`missing_secret`) where one
    is not stored. Call it inside a transaction that holds the build's row."""
    if missing := secrets_missing(build.user_id, names):
        message = f"{missing[0]} is not stored yet. Add it in the settings, under Secrets, then allow it."
        raise Conflict(message, code="missing_secret", missing=missing)
    build.secrets = build.secrets | dict.fromkeys(names, sorted(hosts))
    build.save(update_fields=["secrets"])


def _locked(user_id: UUID, build_id: object) -> Build:
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
