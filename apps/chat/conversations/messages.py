"""Messages as pages and programs read them."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import not_
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from pydantic import Field

from apps.agent.models import SERVER_TIER, ToolCall
from apps.agent.selectors import ToolCallOutput, toolcalls_of
from apps.chat.attachments.selectors import attachments_by_message
from apps.chat.attachments.shapes import AttachmentOutput
from apps.chat.conversations import markdown
from apps.chat.conversations.links import ConversationLinks, Leads, directly
from apps.chat.models import Attachment, Conversation, Message, MessageKind, Role, Turn, TurnStatus
from apps.core.http.shapes import Beside, Moment, Shape

FAILED_STATES = (TurnStatus.FAILED, TurnStatus.INTERRUPTED)


class MessageToolCallOutput(ToolCallOutput):
    state: ToolCall.State
    waits_for: str = Field(description="approval or answer while it waits for the user, else empty.")
    covered: str = Field(
        "",
        exclude_if=not_,
        description="The lasting yes under which it ran, conversation or always; else missing.",
    )


class MessageOutput(Shape):
    id: UUID
    role: Role
    speaker: str
    text: str
    html: str
    created_at: Moment
    turn: UUID | None
    state: TurnStatus
    error: dict[str, Any] | None
    tool_calls: list[MessageToolCallOutput]
    versions: list[UUID] = Field(
        description="Of a message that was edited or answered anew: the turns that stood in its place, its own among them. "
        "`/conversations/{id}/branch/` brings one back."
    )
    memories: list[dict[str, Any]]
    usage: dict[str, Any] = Field(
        {},
        exclude_if=not_,
        description="The tokens and the cost of its turn, as `/chat/` gives them; else missing.",
    )
    attachments: list[AttachmentOutput] = Field(
        description="Files that the user put beside it; those that were deleted are left out."
    )


def readable_messages(conversation: Conversation) -> QuerySet[Message]:
    """Messages a reader sees, in order: not replaced, not queued, with text or tool calls."""
    rows = Message.objects.owned_by(conversation.user_id).filter(
        conversation=conversation, superseded_by=None, kind=MessageKind.TEXT
    )
    return rows.exclude(turn__state=TurnStatus.QUEUED).select_related("turn").order_by("position")


def message_json(
    message: Message,
    turn: Turn | None,
    calls: Sequence[ToolCall] = (),
    *,
    leads: Leads = directly,
    files: Sequence[Attachment] | None = None,
    versions: Sequence[UUID] = (),
) -> dict[str, Any]:
    """One message with its HTML, as `MessageOutput` has it. `files` are those beside it, which are looked for where they are not given.

    `state` and `error` are the turn's; `memories` and `usage` stand with the user's message, `tool_calls` with the
    assistant's message that made them. An ingested message has no turn and carries its `speaker`.
    """
    from_user = message.role == Role.USER
    failed = turn is not None and from_user and turn.state in FAILED_STATES
    if files is None:
        files = attachments_by_message(message.user_id, [message]).get(message.pk, [])
    return MessageOutput.dump(
        {
            "id": message.id,
            "role": message.role,
            "speaker": message.speaker or message.role,
            "text": message.text,
            "html": markdown.render(message.text, directly if from_user else leads),
            "created_at": message.created_at,
            "turn": turn and turn.id,
            "state": turn.state if turn else TurnStatus.DONE,
            "error": {"code": turn.error_code, "message": turn.error_message}
            if turn and failed
            else None,
            "tool_calls": [] if from_user else list(map(toolcall_seen, calls)),
            "versions": list(versions) if from_user else [],
            "memories": turn.memories if turn and from_user else [],
            "usage": turn.usage if turn and from_user else {},
            "attachments": files,
        }
    )


def messages_json(user_id: UUID, messages: Iterable[Message]) -> list[dict[str, Any]]:
    """These messages with their tool calls; assistant messages with neither text nor calls are left out."""
    rows = list(messages)
    calls = calls_by_round(
        user_id, {row.turn_id for row in rows if row.turn_id and row.role == Role.ASSISTANT}
    )
    found = [(row, calls.get((row.turn_id, row.round), [])) for row in rows]
    files = attachments_by_message(user_id, (row for row in rows if row.role == Role.USER))
    versions = versions_of(row.turn for row in rows if row.turn and row.role == Role.USER)
    links = {key: ConversationLinks(user_id, key) for key in {row.conversation_id for row in rows}}
    return [
        message_json(
            row,
            row.turn,
            mine,
            leads=links[row.conversation_id],
            files=files.get(row.pk, []),
            versions=versions.get(row.turn_id, ()),
        )
        for row, mine in found
        if row.text or mine
    ]


def versions_of(turns: Iterable[Turn]) -> dict[UUID | None, list[UUID]]:
    """By turn of one user all that stood in its place, oldest first; none for one that stands there alone."""
    many = [turn for turn in turns if turn.place]
    if not many:
        return {}
    rows = Turn.objects.owned_by(many[0].user_id).filter(
        conversation_id__in={turn.conversation_id for turn in many},
        place__in={turn.place for turn in many},
    )
    found: dict[tuple[UUID, int], list[UUID]] = defaultdict(list)
    for conversation_id, place, key in rows.order_by("position").values_list(
        "conversation_id", "place", "pk"
    ):
        found[conversation_id, place].append(key)
    return {turn.pk: found[turn.conversation_id, turn.place] for turn in many}


def calls_by_round(user_id: UUID, turn_ids: set[UUID]) -> dict[tuple[UUID | None, int], list[ToolCall]]:
    """The tool calls of these turns, by (turn id, round)."""
    grouped: dict[tuple[UUID | None, int], list[ToolCall]] = defaultdict(list)
    if turn_ids:
        for call in toolcalls_of(user_id=user_id, turn_ids=turn_ids):
            grouped[call.turn_id, call.round].append(call)
    return grouped


def toolcall_seen(call: ToolCall) -> Beside:
    """A tool call, as `MessageToolCallOutput` has it."""
    given = call.input if isinstance(call.input, dict) else json.loads(call.input)
    return Beside(call, input=given, server=call.tier == SERVER_TIER)


def newest_messages(conversation: Conversation, *, limit: int) -> list[Message]:
    """The last `limit` readable messages, oldest first."""
    rows = readable_messages(conversation)
    return list(rows.filter(~Q(text="") | Q(role=Role.ASSISTANT)).order_by("-position")[:limit])[::-1]
