"""Where the chat keeps words of notes: messages, the blocks sent to the model, surfaced notes, events, titles, summaries."""

import json
import re
from collections.abc import Collection
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from apps.chat.attachments.selectors import ids_in
from apps.chat.attachments.services import attachments_remove
from apps.chat.conversations import markdown
from apps.chat.models import (
    Attachment,
    Conversation,
    Message,
    MessageKind,
    Role,
    Turn,
    TurnEvent,
    TurnStatus,
)
from apps.chat.stream.events import TEXT
from apps.chat.summary.services import summary_forget
from apps.core.purging.trace import MARKER, Hits, PurgePart, SourceText, Trace, redact, rewrite
from apps.core.text import canonical_json
from apps.search.documents import Source
from apps.search.services import documents_remove


def messages_named(user_id: UUID, ids: Collection[UUID]) -> list[SourceText]:
    """The messages with these ids that say something, whoever wrote them, also ones replaced by an edit."""
    rows = Message.objects.for_user(user_id).filter(pk__in=ids).exclude(text__in=["", MARKER])
    return [
        SourceText(
            id=message.pk,
            conversation_id=message.conversation_id,
            role=message.role,
            title=str(message.conversation),
            text=message.text,
            created_at=message.created_at,
        )
        for message in rows.select_related("conversation").order_by("created_at", "position")
    ]


def is_answering_with(trace: Trace, hits: Hits) -> bool:
    """Whether a turn runs in a conversation that holds the note: its process would write the words again."""
    holding = Message.objects.for_user(trace.user_id).filter(pk__in=hits.get("chat.message.blocks", ()))
    running = Turn.objects.for_user(trace.user_id).filter(state=TurnStatus.RUNNING)
    return running.filter(conversation__in=holding.values("conversation_id")).exists()


def is_answering() -> bool:
    """Whether a turn runs anywhere."""
    return Turn.objects.unscoped().filter(state=TurnStatus.RUNNING).exists()


def clear(trace: Trace, hits: Hits) -> None:
    """Cleans the user's conversations. What was made of messages about the note goes or is made again, whatever it says:
    summaries of the messages as they are then, so they come last."""
    markdown.forget()
    if trace.messages:
        _messages_redact(trace, hits)
    rows, sent = Message.objects.for_user(trace.user_id), hits.get("chat.message.blocks", ())
    beside = {*hits.get("chat.turn.memories", ()), *hits.get("chat.turn.waiting_for", ())}
    if beside:
        _surfaced_redact(trace, beside)
    rewrite(rows.filter(pk__in=sent), partial(_blocks, trace))
    events = TurnEvent.objects.filter(pk__in=hits.get("chat.turnevent.payload", ())).exclude(type=TEXT)
    rewrite(events, partial(_payload, trace))
    said = {*hits.get("chat.message.text", ()), *sent, *trace.recorded, *trace.messages}
    about = rows.filter(Q(pk__in=said) | Q(turn__in=beside))
    # A title that Izzy made goes where it quotes the note, and where the messages it was made of were about it.
    openings = about.filter(Q(position__lte=1) | Q(turn__position__lte=1))
    quoting = Q(pk__in=hits.get("chat.conversation.title", ())) | Q(messages__in=openings)
    titled = Conversation.objects.for_user(trace.user_id).filter(title_by_user=False).exclude(title="")
    unnamed = list(titled.filter(quoting).values_list("pk", flat=True))
    titled.filter(pk__in=unnamed).update(title="")
    titles = TurnEvent.objects.filter(conversation__in=unnamed, type="title")
    titles.update(payload=canonical_json({"title": ""}))
    summed_up = Conversation.objects.for_user(trace.user_id).filter(summary_until__gt=0)
    saying = Q(pk__in=hits.get("chat.conversation.summary", ())) | Q(messages__in=about)
    for key in set(summed_up.filter(saying).values_list("pk", flat=True)):
        summary_forget(user_id=trace.user_id, conversation_id=key)


def _surfaced_redact(trace: Trace, turns: Collection[UUID]) -> None:
    """Takes the note out of these turns, beside which it came up: its line, in which it stands under a short name, out of
    their context blocks, and itself out of what they list."""
    rows = Turn.objects.for_user(trace.user_id).filter(pk__in=turns)
    for turn in rows:
        handles = [
            item["handle"]
            for item in turn.memories
            if item.get("handle") and trace.names_row(canonical_json(item))
        ]
        if not handles:
            continue
        line = re.compile(
            rf"^- (?:{'|'.join(map(re.escape, handles))})(?: \([^()\n]*\))?: .*$", re.MULTILINE
        )

        def without(message: Message, line: re.Pattern[str] = line) -> dict[str, str]:
            blocks = json.loads(message.blocks)
            return {"blocks": canonical_json([_without_lines(block, line) for block in blocks])}

        opening = Message.objects.for_user(trace.user_id).filter(turn=turn, role=Role.USER)
        rewrite(opening.exclude(kind=MessageKind.TOOL_RESULTS), without)
    rewrite(
        rows,
        lambda row: {
            "memories": redact(_others(row.memories, trace), trace),
            "waiting_for": redact(row.waiting_for, trace),
        },
    )


def _without_lines(block: dict[str, Any], line: re.Pattern[str]) -> dict[str, Any]:
    if not block.get("text", "").startswith("<context>"):
        return block
    return block | {"text": line.sub(MARKER, block["text"])}


def _messages_redact(trace: Trace, hits: Hits) -> None:
    """Replaces the chosen messages by a marker, in rows, search and the stored stream; files beside them that say it go too."""
    rows = Message.objects.for_user(trace.user_id).filter(pk__in=trace.messages).exclude(text=MARKER)
    chosen = list(rows)
    for message in chosen:
        _answer_redact(message)
    if saying := {*hits.get("chat.attachment.name", ()), *hits.get("chat.attachment.text", ())}:
        beside = saying.intersection(key for message in chosen for key in ids_in(message.blocks))
        with transaction.atomic():
            files = Attachment.objects.for_user(trace.user_id).filter(pk__in=beside)
            attachments_remove(trace.user_id, files)
    rewrite(rows, partial(_blocks, trace, whole=True))
    documents_remove(
        user_id=trace.user_id, source=Source.CONVERSATION, source_ids=[message.pk for message in chosen]
    )


def _answer_redact(message: Message) -> None:
    """The deltas and the final event of a redacted answer: as many as before, without its words."""
    if message.turn_id is None or message.role != Role.ASSISTANT:
        return
    earlier = Message.objects.for_user(message.user_id).filter(
        turn_id=message.turn_id, role=Role.ASSISTANT, round__lt=message.round
    )
    start = max(earlier.values_list("seq", flat=True), default=0)
    events = TurnEvent.objects.filter(turn_id=message.turn_id, last_seq__gt=start)

    def without_words(row: TurnEvent) -> dict[str, str]:
        payload = json.loads(row.payload)
        if row.type == TEXT and (message.seq == 0 or row.seq <= message.seq):
            payload["texts"] = [MARKER, *("" for _ in payload["texts"][1:])]
        elif row.type == "response":
            payload["text"] = MARKER
        return {"payload": canonical_json(payload)}

    rewrite(events.filter(type__in=[TEXT, "response"]), without_words)


def _blocks(trace: Trace, message: Message, *, whole: bool = False) -> dict[str, str]:
    """The blocks as they are sent from now on: without the note in context blocks, tool inputs and tool results. What was
    said stays as it was sent, unless `whole`; then it goes from the text too."""
    blocks = json.loads(message.blocks)
    for place, block in enumerate(blocks):
        is_context = message.role == Role.USER and block.get("text", "").startswith("<context>")
        if block.get("type") != "text" or is_context:
            blocks[place] = redact(block, trace)
        elif whole:
            blocks[place] = {**block, "text": MARKER}
    return {"blocks": canonical_json(blocks)} | ({"text": MARKER} if whole else {})


def _others(items: list[Any], trace: Trace) -> list[Any]:
    return [item for item in items if not trace.names_row(canonical_json(item))]


def _payload(trace: Trace, row: TurnEvent) -> dict[str, str]:
    """An event without the note; an answer's own words stay."""
    payload = json.loads(row.payload)
    if row.type == "memory_context":
        payload["items"] = _others(payload["items"], trace)
    said = {"text": payload["text"]} if row.type == "response" else {}
    return {"payload": canonical_json({**redact(payload, trace), **said})}


PURGING = PurgePart(clear=clear, busy=is_answering_with, messages=messages_named, in_use=is_answering)
