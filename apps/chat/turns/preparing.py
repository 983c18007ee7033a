"""A turn made ready in one database hop: memories, tools and history, as its rows say."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.accounts.models import Preferences
from apps.accounts.selectors import preferences_for
from apps.agent.model.client import OFFLINE, Usage, current_endpoint, model_for
from apps.agent.selectors import turn_tool_calls, turn_usage
from apps.agent.tools.base import find_tool
from apps.agent.turn.executor import ToolExecutor, executor_for
from apps.agent.turn.loop import LoopState
from apps.capabilities.catalog.selectors import capabilities_active
from apps.capabilities.models import Capability
from apps.capabilities.runs.tools import TOOLSET
from apps.chat.conversations.selectors import taint_of
from apps.chat.models import Conversation, Message, MessageKind, Role, Turn
from apps.chat.prompt import (
    LISTED_CAPABILITIES,
    capability_hints,
    context_block,
    conversation_tools,
    history,
    messages_in_force,
    system_blocks,
)
from apps.chat.summary.selectors import sent_turns
from apps.chat.titles import heuristic_title
from apps.chat.turns.queue import opening_message
from apps.core.db.prepared import prepared
from apps.core.db.writing import update_all
from apps.core.ids import parse_id
from apps.core.text import canonical_json
from apps.memory.notes.changes import cycle_advance
from apps.memory.recall.block import Surfaced
from apps.memory.recall.injection import still_shown, surface

RECENT_TEXTS = 3  # newest messages that say what notes are looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A turn ready to run, and the message that it answers. Its messages have so many `tokens`, by estimate: where those are over
    the limit, they are summed up before they are sent; then `turn_reload` gives its state."""

    turn: Turn
    state: LoopState
    executor: ToolExecutor
    tokens: int
    is_unnamed: bool  # the conversation is called by the first words of this turn, for want of a title


def turn_prepare(turn_id: UUID) -> Prepared:
    """Reads all that the turn needs; a fresh one also advances the decay cycle and gets its context block."""
    [turn] = turn_with_conversation(turn_id)
    preferences = preferences_for(turn.user_id)
    [message] = opening_message(turn.id)
    active = _capabilities(turn.user_id, preferences)
    if turn.attempt == 1:
        many = len(active) > LISTED_CAPABILITIES
        _context_add(turn, message, preferences, has_unlisted=many)
    state = _loop_state(turn, preferences, active, is_new=turn.attempt == 1)
    return Prepared(
        turn=turn,
        state=state,
        executor=executor_for(
            user_id=turn.user_id,
            conversation_id=turn.conversation_id,
            turn_id=turn.id,
            message_id=message.id,
            use_memory=turn.conversation.use_memory,
            taint=taint_of(turn.user_id, turn.conversation_id),
            approvals=preferences.tool_approval,
            tools={tool.name: tool for tool in state.tools if find_tool(tool.name) != tool},
        ),
        tokens=sum(each.tokens for each in sent_turns(turn.conversation)),
        is_unnamed=not turn.conversation.title_by_user
        and turn.conversation.title == heuristic_title(message.text),
    )


@prepared
def turn_with_conversation(turn_id: UUID) -> QuerySet[Turn]:
    return Turn.objects.unscoped().select_related("conversation").filter(id=turn_id)


def turn_reload(turn_id: UUID) -> LoopState:
    """The turn as its rows say, after its conversation was summed up."""
    [turn] = turn_with_conversation(turn_id)
    preferences = preferences_for(turn.user_id)
    return _loop_state(turn, preferences, _capabilities(turn.user_id, preferences), is_new=False)


def _capabilities(user_id: UUID, preferences: Preferences) -> list[Capability]:
    """The user's active capabilities, at most one more than are listed to the model; none where it is not to have them."""
    if TOOLSET not in preferences.toolsets:
        return []
    return capabilities_active(user_id, limit=LISTED_CAPABILITIES + 1)


def _context_add(turn: Turn, message: Message, preferences: Preferences, *, has_unlisted: bool) -> None:
    """Puts the context block in front of the user's words, and stores it with them, so that later requests repeat it: with the notes
    worth bringing up that the model does not have before it already, as they read now, and hints of unlisted capabilities."""
    now, surfaced = timezone.now(), Surfaced(text="", tokens=0, items=())
    if not turn.by_izzy:
        cycle_advance(user_id=turn.user_id)
    if turn.conversation.use_memory and not turn.by_izzy:
        newest = _newest_texts(turn.conversation_id)
        # What was brought up earlier, in messages that are still in force and not summed up.
        shown = _shown_before(turn.user_id, turn.conversation_id, turn.conversation.summary_until)
        items = [item for memories in shown for item in memories]
        known = {parse_id(item["id"]) for item in items if "source" in item}
        surfaced = surface(
            turn.user_id,
            list(newest)[::-1],
            exclude_ids=known | still_shown(turn.user_id, items) if items else (),
            conversation_id=turn.conversation_id,
            message_id=message.id,
            now=now,
        )
    with transaction.atomic():
        block = context_block(
            now=now,
            time_zone=preferences.time_zone,
            memories=surfaced.text,
            capabilities=capability_hints(turn.conversation, message.text) if has_unlisted else "",
            spoken=turn.spoken and preferences.speech_short,
        )
        message.blocks = canonical_json([block, *json.loads(message.blocks)])
        update_all(Message, ("blocks",), [(message.pk, [message.blocks])])
        turn.memories = [item.to_json() for item in surfaced.items]
        turn.memory_tokens = surfaced.tokens
        values = [turn.memories, turn.memory_tokens]
        update_all(Turn, ("memories", "memory_tokens"), [(turn.pk, values)])


@prepared
def _newest_texts(conversation_id: UUID) -> QuerySet[Message, str]:
    said = messages_in_force(conversation_id).filter(~Q(text=""), kind=MessageKind.TEXT)
    return said.order_by("-position").values_list("text", flat=True)[:RECENT_TEXTS]


@prepared
def _shown_before(
    user_id: UUID, conversation_id: UUID, after: int
) -> QuerySet[Turn, list[dict[str, Any]]]:
    sent = messages_in_force(conversation_id).filter(position__gt=after).exclude(turn=None)
    turns = Turn.objects.owned_by(user_id).filter(id__in=sent.values("turn_id"))
    return turns.exclude(memories=[]).values_list("memories", flat=True)


def _loop_state(
    turn: Turn, preferences: Preferences, active: Sequence[Capability], *, is_new: bool
) -> LoopState:
    """The turn as the loop takes it up; of a new one nothing has been asked and called yet."""
    conversation = turn.conversation
    before = conversation.tools
    tools = conversation_tools(conversation, preferences.toolsets, active, attached=turn.attached)
    if conversation.tools != before:
        update_all(Conversation, ("tools",), [(conversation.pk, [conversation.tools])])
    model, endpoint = turn.model, current_endpoint()
    if not turn.said and model in {"", OFFLINE}:  # what was begun offline may go on with a model
        model = conversation.model or preferences.model or model_for("chat")
        turn.model = OFFLINE if endpoint.is_offline else model
        update_all(Turn, ("model",), [(turn.pk, [turn.model])])
    newest = None
    if not is_new:
        answers = turn.messages.filter(role=Role.ASSISTANT, kind=MessageKind.TEXT)
        newest = answers.order_by("round").last()
    return LoopState(
        user_id=turn.user_id,
        conversation_id=conversation.id,
        turn_id=turn.id,
        system=system_blocks(
            preferences,
            use_memory=conversation.use_memory,
            instructions=conversation.instructions,
        ),
        tools=tools,
        messages=history(conversation, model),
        model=model,
        endpoint=endpoint,
        rounds_done=newest.round if newest else 0,
        stop_reason=newest.stop_reason if newest else "",
        usage=Usage() if is_new else turn_usage(user_id=turn.user_id, turn_id=turn.id),
        tool_calls=[] if is_new else turn_tool_calls(user_id=turn.user_id, turn_id=turn.id),
    )
