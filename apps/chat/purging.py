"""Where the chat keeps words of notes: messages, the blocks sent to the model, surfaced notes, events, titles, summaries."""

import json
from uuid import UUID

from django.db.models import Q

from apps.agent.canonical import canonical_json
from apps.chat import markdown
from apps.chat.models import Conversation, Message, Role, Turn, TurnState
from apps.chat.purging_events import events_clear, said_events_clear
from apps.chat.summary.services import summary_forget
from apps.core.purging.places import Hits, Place, SourceText
from apps.core.purging.trace import MARKER, Trace, found_in, redact_text, redact_value
from apps.core.registries import busy_checks, purge_places, purge_sources
from apps.search.documents import Source
from apps.search.services import documents_remove

MAX_SOURCES = 200
_WHY = "What you and Izzy said stays unless you have these messages redacted too."


def register_places() -> None:
    for name, place in (_said_places() | _told_places()).items():
        purge_places.register(name, place)
    busy_checks.register("turns", is_answering)
    purge_sources.register("chat", messages_saying)


def _said_places() -> dict[str, Place]:
    """What was said, and what was sent with it."""
    return {
        "chat.messages": Place(
            label="Messages, as you and Izzy wrote them",
            columns=("chat.message.text",),
            why=_WHY,
            keep=True,
            offered=True,
            clear=messages_redact,
        ),
        "chat.blocks": Place(
            label="Messages, as the model gets them",
            columns=("chat.message.blocks",),
            why=_WHY,
            clear=blocks_clear,
            busy=is_answering_with,
        ),
        "chat.events": Place(
            label="The stored stream of answers",
            columns=("chat.turnevent.payload",),
            why=_WHY,
            clear=events_clear,
        ),
    }


def _told_places() -> dict[str, Place]:
    """What is told of conversations. Summaries come last: they are voided after the messages were changed."""
    return {
        "chat.turns": Place(
            label="Notes brought up beside messages",
            columns=("chat.turn.memories", "chat.turn.waiting_for"),
            clear=turns_clear,
        ),
        "chat.titles": Place(
            label="Titles of conversations",
            columns=("chat.conversation.title",),
            why="A title that you gave stays.",
            clear=titles_clear,
        ),
        "chat.names": Place(
            label="Names of sessions, messages and tools",
            columns=("chat.conversation.session", "chat.conversation.tools", "chat.message.external_id"),
            why="Something goes by this name; it goes with its conversation.",
            keep=True,
            offered=True,
        ),
        "chat.zz_summaries": Place(
            label="Summaries of conversations",
            columns=("chat.conversation.summary",),
            clear=summaries_clear,
        ),
    }


def messages_saying(trace: Trace) -> list[SourceText]:
    """The messages that quote the note, whoever wrote them, also ones replaced by an edit; and those it came from."""
    rows = Message.objects.for_user(trace.user_id).exclude(text__in=["", MARKER])
    found = []
    for message in (
        rows.select_related("conversation").order_by("created_at", "position").iterator(chunk_size=500)
    ):
        recorded = message.pk in trace.messages
        if recorded or trace.says_same(message.text):
            found.append(_source(message, recorded))
    return found[:MAX_SOURCES]


def _source(message: Message, recorded: bool) -> SourceText:
    return SourceText(
        id=message.pk,
        conversation_id=message.conversation_id,
        role=message.role,
        title=str(message.conversation),
        text=message.text,
        created_at=message.created_at,
        recorded=recorded,
    )


def is_answering_with(trace: Trace, hits: Hits) -> bool:
    """Whether a turn runs in a conversation that holds the note: its process would write the words again."""
    running = Turn.objects.for_user(trace.user_id).filter(state=TurnState.RUNNING)
    messages = Message.objects.for_user(trace.user_id).filter(pk__in=hits.get("chat.message.blocks", ()))
    return running.filter(conversation__in=messages.values("conversation_id")).exists()


def is_answering() -> bool:
    """Whether a turn runs anywhere."""
    return Turn.objects.unscoped().filter(state=TurnState.RUNNING).exists()


def messages_redact(trace: Trace, hits: Hits) -> int:
    """Replace the chosen messages by a marker, in rows, search and the stored stream."""
    rows = Message.objects.for_user(trace.user_id).filter(pk__in=trace.messages).exclude(text=MARKER)
    messages = list(rows.select_for_update())
    for message in messages:
        message.text = MARKER
        message.blocks = _blocks_without(message, trace, whole=True)
        message.save(update_fields=["text", "blocks"])
        said_events_clear(message)
    documents_remove(
        user_id=trace.user_id, source=Source.CONVERSATION, source_ids=[message.pk for message in messages]
    )
    markdown.forget()
    return len(messages)


def blocks_clear(trace: Trace, hits: Hits) -> int:
    """Take the note out of context blocks, tool inputs and tool results. What was said stays as it was sent."""
    changed = 0
    rows = Message.objects.for_user(trace.user_id).filter(pk__in=hits.get("chat.message.blocks", ()))
    for message in rows.select_for_update():
        blocks = _blocks_without(message, trace, whole=False)
        if blocks != message.blocks:
            message.blocks = blocks
            message.save(update_fields=["blocks"])
            changed += 1
    return changed


def _blocks_without(message: Message, trace: Trace, *, whole: bool) -> str:
    """The blocks as they are sent from now on. `whole`: the words themselves are replaced too."""
    cleaned = []
    for block in json.loads(message.blocks):
        if block.get("type") != "text":
            cleaned.append(redact_value(block, trace))
        elif message.role == Role.USER and block["text"].startswith("<context>"):
            cleaned.append({**block, "text": redact_text(block["text"], trace)})
        else:
            cleaned.append({**block, "text": MARKER} if whole else block)
    return canonical_json(cleaned)


def turns_clear(trace: Trace, hits: Hits) -> int:
    """The lists of surfaced notes lose the purged ones; questions and cards that wait lose their words."""
    keys = {key for name in ("chat.turn.memories", "chat.turn.waiting_for") for key in hits.get(name, ())}
    changed = 0
    for turn in Turn.objects.for_user(trace.user_id).filter(pk__in=keys).select_for_update():
        before = (turn.memories, turn.waiting_for)
        turn.memories = [item for item in turn.memories if not trace.names_row(canonical_json(item))]
        turn.memories = redact_value(turn.memories, trace)
        turn.waiting_for = redact_value(turn.waiting_for, trace)
        if before != (turn.memories, turn.waiting_for):
            turn.save(update_fields=["memories", "waiting_for"])
            changed += 1
    return changed


def titles_clear(trace: Trace, hits: Hits) -> int:
    """A title that Izzy made is dropped where it quotes the note, or comes from a message that was redacted."""
    rows = Conversation.objects.for_user(trace.user_id).filter(title_by_user=False).exclude(title="")
    redacted = Q(messages__in=list(trace.messages))
    keys = hits.get("chat.conversation.title", ())
    unnamed = [
        row.pk for row in rows.filter(Q(pk__in=keys) | redacted).distinct() if found_in(trace.own, row.title)
    ]
    return rows.filter(pk__in=unnamed).update(title="")


def summaries_clear(trace: Trace, hits: Hits) -> int:
    """Summaries that repeat the note, or that were made of messages which are redacted, are voided and made again."""
    keys = set(hits.get("chat.conversation.summary", ()))
    redacted = Message.objects.for_user(trace.user_id).filter(pk__in=trace.messages)
    keys |= set(redacted.values_list("conversation_id", flat=True))
    return sum(_forgotten(trace.user_id, key) for key in keys)


def _forgotten(user_id: UUID, conversation_id: UUID) -> int:
    return int(summary_forget(user_id=user_id, conversation_id=conversation_id))
