"""Checks of conversations, their turns and messages, of what other apps keep by a conversation's id, and of attachments and their
files; and what search should hold of messages."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from django.core.files.storage import storages
from django.db import models, transaction
from django.db.models import Count, Exists, F, Max, OuterRef, Q
from django.utils import timezone

from apps.agent.models import ToolCall, ToolGrant
from apps.builder.models import Build, Follower
from apps.chat.attachments.files import ROOT, SHOWN, files_there, path_of
from apps.chat.conversations.handover import document_of, is_findable
from apps.chat.models import (
    OPEN_STATES,
    Attachment,
    Conversation,
    Message,
    MessageKind,
    Role,
    Turn,
    TurnEvent,
    TurnStatus,
)
from apps.chat.turns.store import turn_close
from apps.core.db.writing import writing_for
from apps.core.integrity import Check, Finding, disposable, findings, integrity_checks, row_name, rows_of
from apps.memory.capture.windows import conversation_withdraw
from apps.memory.models import CaptureWindow, MemoryUse, NoteHandle, WindowState
from apps.search.documents import Document, Source
from apps.search.integrity import Indexed, indexed

AT_ONCE = 500
ENDED_EARLY = "integrity"


def message_documents(user_id: UUID, ids: Sequence[UUID]) -> dict[UUID, list[Document] | None]:
    """The documents that search should hold of those messages among `ids` that are there; a sweep indexes those that are yet to be."""
    rows = Message.objects.owned_by(user_id).filter(pk__in=ids).select_related("conversation")
    rows = rows.defer("blocks", "conversation__tools", "conversation__summary")
    return {row.pk: _documents(row) for row in rows}


def _documents(message: Message) -> list[Document] | None:
    if message.conversation.deleted_at is not None:
        return None  # it goes slice by slice, or can be brought back
    if not is_findable(message) or message.kind != MessageKind.TEXT:
        return []
    return [document_of(message)] if message.indexed else None


def _numbers(user_id: UUID | None) -> Iterator[Finding]:
    """Counters of conversations, below which a new message or event could not be stored."""
    newest = Message._base_manager.filter(conversation=OuterRef("pk")).order_by("-position")
    events = TurnEvent.objects.filter(conversation=OuterRef("pk")).order_by("-last_seq")
    rows = rows_of(Conversation, user_id).annotate(
        newest=models.Subquery(newest.values("position")[:1]),
        logged=models.Subquery(events.values("last_seq")[:1]),
    )
    low = Q(newest__gt=F("last_position")) | Q(logged__gt=F("last_seq")) | Q(logged__gt=F("stored_seq"))
    yield from findings(
        rows.filter(low | Q(stored_seq__gt=F("last_seq"))),
        "It counts fewer messages or events than it has: no new one could be stored.",
        repair="Raises its counters.",
    )


def _numbers_fix(found: Sequence[Finding]) -> None:
    for finding in found:
        with transaction.atomic():
            _, key = finding.subject
            row = Conversation.objects.unscoped().select_for_update().filter(pk=key).first()
            if row is None:
                continue
            top = (
                Message.objects.unscoped().filter(conversation=row).aggregate(top=Max("position"))["top"]
            )
            seq = TurnEvent.objects.filter(conversation=row).aggregate(top=Max("last_seq"))["top"] or 0
            row.last_position = max(row.last_position, top or 0)
            row.stored_seq = max(row.stored_seq, seq)
            row.last_seq = max(row.last_seq, row.stored_seq)
            row.save(update_fields=["last_position", "stored_seq", "last_seq"])


def _turns(user_id: UUID | None) -> Iterator[Finding]:
    rows = rows_of(Turn, user_id)
    opening = Message._base_manager.filter(
        turn=OuterRef("pk"), role=Role.USER, kind__in=[MessageKind.TEXT, MessageKind.NOTICE]
    )
    yield from findings(
        rows.filter(~Exists(opening), state__in=OPEN_STATES),
        "It is open, and the message that it answers is gone.",
        repair="Ends it as failed.",
        kind="mute",
    )
    calls = ToolCall._base_manager.filter(turn_id=OuterRef("pk")).exclude(state=ToolCall.State.DONE)
    yield from findings(
        rows.filter(Exists(calls)).exclude(state__in=OPEN_STATES),
        "It has ended, and tool calls of it have not.",
        repair="Ends them with an error, as a stopped turn's.",
        kind="calls",
    )
    asked = calls.filter(state=ToolCall.State.WAITING)
    decided = ToolCall._base_manager.filter(turn_id=OuterRef("pk"))
    yield from findings(
        rows.filter(state=TurnStatus.WAITING).filter(~Exists(asked), ~Exists(decided)),
        "It waits for the user, and nothing is asked.",
        repair="Ends it as failed.",
        kind="mute",
    )
    yield from findings(
        rows.filter(ended_at=None).exclude(state__in=OPEN_STATES),
        "It has ended, and no time says when.",
        repair="Notes the present time.",
        kind="time",
    )
    several = rows.filter(state=TurnStatus.RUNNING).order_by().values("conversation_id", "user_id")
    for row in several.annotate(number=Count("pk")).filter(number__gt=1):
        yield Finding(
            about=row_name(Conversation, row["conversation_id"]),
            message="Several of its turns run at once.",
            advice="Stop them on its page; the worker ends those that no process runs.",
            user_id=row["user_id"],
        )


def _turns_fix(found: Sequence[Finding]) -> None:
    for finding in found:
        kind, key = finding.subject
        with transaction.atomic():
            turn = Turn.objects.unscoped().select_for_update().filter(pk=key).first()
            if turn is None:
                continue
            if kind == "time":
                turn.ended_at = timezone.now()
            elif kind == "calls":
                calls = ToolCall.objects.unscoped().filter(turn_id=key)
                calls.exclude(state=ToolCall.State.DONE).update(
                    state=ToolCall.State.DONE,
                    is_error=True,
                    error_code="interrupted",
                    finished_at=timezone.now(),
                )
            elif turn.state in OPEN_STATES:
                turn_close(turn, reason="failed")
                turn.state, turn.ended_at, turn.waiting_for = TurnStatus.FAILED, timezone.now(), []
                turn.error_code, turn.error_message = ENDED_EARLY, "What it was to answer is gone."
            turn.save()


def _histories(user_id: UUID | None) -> Iterator[Finding]:
    """The model's view of ended turns: blocks that can be read, and a result for each call."""
    rows = rows_of(Message, user_id).exclude(turn__state__in=OPEN_STATES)
    columns = ("pk", "user_id", "turn_id", "blocks")
    asked: set[str] = set()
    readable = True
    turn: tuple[UUID | None, UUID | None] = (None, None)
    ordered = rows.order_by("turn_id", "position").values_list(*columns)
    for key, owner, turn_id, packed in ordered.iterator(AT_ONCE):
        if turn_id != turn[0]:
            yield from _unanswered(turn, asked)
            turn, asked, readable = (turn_id, owner), set(), True
        try:
            blocks = json.loads(packed)
            asked |= {block["id"] for block in blocks if block["type"] == "tool_use"}
            asked -= {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        except (ValueError, TypeError, KeyError):
            yield Finding(
                about=row_name(Message, key),
                message="Its blocks cannot be read: no model can be given the conversation.",
                advice="Its text is kept. Edit the message on the page of the conversation, which replaces it.",
                user_id=owner,
            )
            readable = False
        if not readable:
            asked = set()
    yield from _unanswered(turn, asked)


def _unanswered(turn: tuple[UUID | None, UUID | None], asked: set[str]) -> Iterator[Finding]:
    key, owner = turn
    if key is not None and asked:
        yield Finding(
            about=row_name(Turn, key),
            message="It has ended, and a tool call in its history has no result: models refuse that.",
            advice="Edit its message on the page of the conversation, which replaces the turn.",
            user_id=owner,
        )


def _orphans(user_id: UUID | None) -> Iterator[Finding]:
    """Rows that other apps keep by the id of a conversation or turn, and that go with it."""
    there = Conversation._base_manager.filter(pk=OuterRef("conversation_id"))
    for model in (NoteHandle, MemoryUse, ToolGrant, Follower):
        lost = rows_of(model, user_id).filter(~Exists(there), conversation_id__isnull=False)
        message = "The conversation that it belongs to is gone."
        yield from findings(lost, message, repair="Removes it.", kind=model)
    of_turns = Turn._base_manager.filter(pk=OuterRef("turn_id"))
    of_builds = Build._base_manager.filter(pk=OuterRef("turn_id"))
    calls = rows_of(ToolCall, user_id).filter(
        ~Exists(of_turns), ~Exists(of_builds), turn_id__isnull=False
    )
    message = "The turn or build that it belongs to is gone."
    yield from findings(calls, message, repair="Removes it.", kind=ToolCall)
    windows = rows_of(CaptureWindow, user_id).filter(~Exists(there), state=WindowState.WAITING)
    message = "It waits to be read, and its conversation is gone."
    yield from findings(windows, message, repair="Withdraws it.", kind=CaptureWindow)


@transaction.atomic
def _orphans_fix(found: Sequence[Finding]) -> None:
    for finding in found:
        model, key = finding.subject
        if model is not CaptureWindow:
            model._base_manager.filter(pk=key).delete()
            continue
        window = CaptureWindow.objects.unscoped().get(pk=key)
        conversation_withdraw(user_id=window.user_id, conversation_id=window.conversation_id)


indexed.register(Source.CONVERSATION, Indexed(Message.objects.for_user, message_documents))
integrity_checks.register(
    "chat: counters", Check("Conversations count their messages and events", _numbers, _numbers_fix)
)
integrity_checks.register("chat: turns", Check("Turns are open or ended as a whole", _turns, _turns_fix))
integrity_checks.register("chat: histories", Check("Models can be given every conversation", _histories))
integrity_checks.register(
    "chat: orphans", Check("What belongs to a conversation has one", _orphans, _orphans_fix)
)
disposable.add("chat.TurnEvent")


FILES_AT_ONCE = 500
NEW_FOR = timedelta(hours=1)
EMPTY = hashlib.sha256().hexdigest()


def _rows(user_id: UUID | None) -> Iterator[Finding]:
    """Rows whose file is not there, or not as it was brought."""
    rows = Attachment.objects.for_user(user_id) if user_id else Attachment.objects.unscoped()
    columns = ("pk", "user_id", "sha256", "shown_type")
    for key, owner, sha256, shown_type in (
        rows.order_by("pk").values_list(*columns).iterator(FILES_AT_ONCE)
    ):
        is_whole = _digest(path_of(owner, key)) == sha256
        if is_whole and (not shown_type or _digest(path_of(owner, key, shown=True)) not in {"", EMPTY}):
            continue
        yield Finding(
            about=row_name(Attachment, key),
            message="Its file is gone, or was changed: the model and its owner cannot be shown it.",
            advice="Restore the folder attachments from a backup, or delete the attachment in its conversation.",
            user_id=owner,
        )


def _digest(path: str) -> str:
    """SHA-256 of a file, "" where it is gone or cannot be read."""
    summed = hashlib.sha256()
    try:
        with storages["shared"].open(path, "rb") as file:
            for piece in file.chunks():
                summed.update(piece)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError):
        return ""
    return summed.hexdigest()


def _files(user_id: UUID | None) -> Iterator[Finding]:
    """Files that no row names, an hour after they were written: until then the row may be about to be stored."""
    if user_id is not None:
        return
    storage, now = storages["shared"], timezone.now()
    for folder, name in files_there():
        if _is_named(folder, name):
            continue
        if now - storage.get_modified_time(f"{ROOT}/{folder}/{name}") > NEW_FOR:
            yield Finding(
                about=f"file {ROOT}/{folder}/{name}",
                message="No attachment belongs to it.",
                repair="Removes it.",
                subject=(folder, name),
            )


def _is_named(folder: str, name: str) -> bool:
    with suppress(ValueError):
        owner, key = UUID(folder), UUID(name.removesuffix(SHOWN))
        rows = Attachment.objects.for_user(owner).filter(pk=key)
        return rows.exclude(shown_type="").exists() if name.endswith(SHOWN) else rows.exists()
    return False


def _files_fix(findings: Sequence[Finding]) -> None:
    for finding in findings:
        folder, name = finding.subject
        owner = None
        with suppress(ValueError):
            owner = UUID(folder)
        with writing_for(owner), transaction.atomic():
            if not _is_named(folder, name):
                storages["shared"].delete(f"{ROOT}/{folder}/{name}")


integrity_checks.register("attachments: files", Check("Attachments have their files", _rows))
integrity_checks.register(
    "attachments: strays", Check("Files belong to attachments", _files, _files_fix)
)
