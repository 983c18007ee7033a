"""Records of conversations, with their turns, messages and tool calls, as an export has them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal
from uuid import UUID

from django.db.models import QuerySet
from pydantic import Field

from apps.agent.models import SERVER_TIER, ToolCall
from apps.agent.tools.base import Tier
from apps.chat.models import OPEN_STATES, Conversation, Message, MessageKind, Role, Turn, TurnStatus
from apps.core.errors import InvalidInput
from apps.core.http.shapes import Checked, Lax, text
from apps.core.text import strict_loads
from apps.core.transfer import RecordId, RecordInput, RecordTime, Row, paged, row_of
from apps.memory.models import CaptureWindow

MESSAGES_AT_ONCE = 1000
CALLS_AT_ONCE = 100
CUT_OFF: dict[str, Any] = {
    "state": str(TurnStatus.INTERRUPTED),
    "error_code": "interrupted",
    "error_message": "This was under way when the conversation was exported.",
}
MAX_BLOCKS_CHARS = 10_000_000
MAX_TEXT_CHARS = 5_000_000

_Number = Annotated[int, Field(ge=0, le=2**31 - 1)]
_Long = Annotated[int, Field(ge=0, le=2**62)]
_Text32 = Annotated[str, text(32, allow_empty=True)]
_Text48 = Annotated[str, text(48, allow_empty=True)]
_Text64 = Annotated[str, text(64, allow_empty=True)]
_Text100 = Annotated[str, text(100, allow_empty=True)]
_Text128 = Annotated[str, text(128, allow_empty=True)]
_Text200 = Annotated[str, text(200, allow_empty=True)]


def _exact(value: object, *, field: str) -> str:
    """Text as it is, white space at its ends included."""
    text(MAX_TEXT_CHARS, allow_empty=True).check(value, field=field)
    return str(value)


Exact = Annotated[str, Checked(_exact, {"type": "string"})]


def _blocks(value: object, *, field: str) -> str:
    """The JSON of content blocks."""
    if not isinstance(value, str) or len(value) > MAX_BLOCKS_CHARS:
        raise InvalidInput(f"{field} must be the JSON of content blocks.", field=field)
    try:
        blocks = strict_loads(value)
    except (ValueError, RecursionError):
        blocks = None
    if not isinstance(blocks, list) or not all(
        isinstance(block, dict) and isinstance(block.get("type"), str) for block in blocks
    ):
        raise InvalidInput(f"{field} must be the JSON of content blocks.", field=field)
    return value


class ConversationRecord(RecordInput):
    """A conversation; `tainted` says that others' words came up in it, `folder` is the name of the one it is in."""

    id: RecordId
    title: _Text200 = ""
    title_by_user: bool = False
    use_memory: bool = True
    pinned: bool = False
    archived: bool = False
    channel: Annotated[str, text(64)] = "izzy"
    session: _Text200 = ""
    model: _Text100 = ""
    instructions: Annotated[str, text(4000, allow_empty=True)] = ""
    summary: Exact = ""
    summary_until: _Number = 0
    summary_untrusted: bool = False
    summary_by: _Text100 = ""
    last_position: _Number = 0
    last_seq: _Long = 0
    folder: _Text64 = ""
    summary_at: RecordTime | None = None
    tainted: bool = False
    created_at: RecordTime | None = None
    updated_at: RecordTime | None = None


class TurnRecord(RecordInput):
    """A turn that has ended."""

    id: RecordId
    conversation: RecordId
    position: _Number
    place: _Number = 0
    state: Literal["done", "stopped", "failed", "interrupted"]
    client_id: _Text64 = ""
    model: _Text100 = ""
    memories: list[dict[str, Any]] = Field(default_factory=list, max_length=200)
    memory_tokens: _Number = 0
    usage: dict[str, Any] = Field(default_factory=dict)
    by_izzy: bool = False
    attached: bool = False
    spoken: bool = False
    said: Exact = ""
    error_code: _Text64 = ""
    error_message: Exact = ""
    created_at: RecordTime
    started_at: RecordTime | None = None
    ended_at: RecordTime | None = None


class MessageRecord(RecordInput):
    """A message; `blocks` is the JSON of its content blocks, byte for byte as the model gets it."""

    id: RecordId
    conversation: RecordId
    turn: RecordId | None = None
    position: Annotated[int, Field(ge=1, le=2**31 - 1)]
    role: Annotated[Role, Lax]
    kind: Annotated[MessageKind, Lax] = MessageKind.TEXT
    blocks: Annotated[str, Checked(_blocks, {"type": "string"})] = "[]"
    text: Exact = ""
    speaker: _Text100 = ""
    external_id: _Text200 = ""
    stop_reason: _Text32 = ""
    round: Annotated[int, Field(ge=0, le=32_767)] = 0
    seq: _Long = 0
    branch: _Number = 0
    superseded_by: RecordId | None = None
    created_at: RecordTime


class ToolCallRecord(RecordInput):
    """A tool call that has ended, without what was allowed for it."""

    id: RecordId
    conversation: RecordId
    turn: RecordId
    round: Annotated[int, Field(ge=0, le=32_767)]
    position: Annotated[int, Field(ge=0, le=32_767)]
    tool_use_id: _Text128 = ""
    name: Annotated[str, text(128)]
    tier: Literal["", *(map(str, Tier)), SERVER_TIER] = ""  # type: ignore[valid-type]
    input: Any = Field(default_factory=dict)
    answer: Exact = ""
    result: Exact = ""
    is_error: bool = False
    untrusted: bool = False
    error_code: _Text48 = ""
    build_id: _Text64 = ""
    duration_ms: _Number = 0
    created_at: RecordTime
    started_at: RecordTime | None = None
    finished_at: RecordTime | None = None


def conversation_rows(user_id: UUID) -> Iterator[Row]:
    """Each conversation with its turns, messages and tool calls behind it. A turn that is not over is exported as one that was
    interrupted, with the message that opened it alone."""
    few: list[Conversation] = []
    own = Conversation.objects.for_user(user_id).select_related("folder").defer("tools")
    for conversation in paged(own, 50):
        if (
            few
            and sum(each.last_position for each in few) + conversation.last_position > MESSAGES_AT_ONCE
        ):
            yield from _rows(user_id, few)
            few = []
        few.append(conversation)
    yield from _rows(user_id, few)


def _rows(user_id: UUID, conversations: Sequence[Conversation]) -> Iterator[Row]:
    keys = [conversation.id for conversation in conversations]
    turns: dict[UUID, list[Turn]] = defaultdict(list)
    for turn in Turn.objects.owned_by(user_id).filter(conversation_id__in=keys).order_by("position"):
        turns[turn.conversation_id].append(turn)
    open_turns = {turn.id for each in turns.values() for turn in each if turn.state in OPEN_STATES}
    messages = Message.objects.owned_by(user_id)
    held: dict[UUID, list[Message]] | None = None
    if sum(each.last_position for each in conversations) <= MESSAGES_AT_ONCE:
        held = defaultdict(list)
        for message in messages.filter(conversation_id__in=keys).order_by("position"):
            held[message.conversation_id].append(message)
    calls = ToolCall.objects.owned_by(user_id).filter(conversation_id__in=keys)
    called = set(calls.order_by().values_list("conversation_id", flat=True).distinct())
    windows = CaptureWindow.objects.for_user(user_id).filter(conversation_id__in=keys, tainted=True)
    tainted = set(windows.values_list("conversation_id", flat=True))
    lost = calls.filter(turn_id__in=open_turns, untrusted=True).values_list("conversation_id", flat=True)
    tainted |= {key for key in lost if key} if open_turns else set()
    for conversation in conversations:
        yield row_of(
            "conversation",
            ConversationRecord,
            conversation,
            folder=conversation.folder.name if conversation.folder else "",
            tainted=conversation.id in tainted,
        )
        yield from map(_turn_row, turns[conversation.id])
        own = _paged(messages, conversation.id) if held is None else iter(held[conversation.id])
        for message in own:
            if not _is_cut_off(message, open_turns):
                yield row_of("message", MessageRecord, message)
        if conversation.id in called:
            ended = [turn.id for turn in turns[conversation.id] if turn.id not in open_turns]
            yield from _call_rows(user_id, ended)


def _paged(messages: QuerySet[Message], conversation_id: UUID) -> Iterator[Message]:
    position = 0
    rows = messages.filter(conversation_id=conversation_id).order_by("position")
    while page := list(rows.filter(position__gt=position)[:200]):
        yield from page
        position = page[-1].position


def _is_cut_off(message: Message, open_turns: set[UUID]) -> bool:
    opening = message.role == Role.USER and message.kind in {MessageKind.TEXT, MessageKind.NOTICE}
    return message.turn_id in open_turns and not opening


def _turn_row(turn: Turn) -> Row:
    cut_off = CUT_OFF | {"ended_at": turn.started_at or turn.created_at}
    return row_of("turn", TurnRecord, turn, **(cut_off if turn.state in OPEN_STATES else {}))


def _call_rows(user_id: UUID, turn_ids: Sequence[UUID]) -> Iterator[Row]:
    for start in range(0, len(turn_ids), CALLS_AT_ONCE):
        some = turn_ids[start : start + CALLS_AT_ONCE]
        rows = ToolCall.objects.owned_by(user_id).filter(turn_id__in=some, state=ToolCall.State.DONE)
        order = {key: place for place, key in enumerate(some)}
        for call in sorted(rows, key=lambda row: (order[row.turn_id], row.round, row.position)):  # type: ignore[index]
            yield row_of("tool_call", ToolCallRecord, call)
