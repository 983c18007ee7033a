"""Gets a turn ready for the loop: memories, tools and history, in one database hop."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.accounts.models import Preferences
from apps.accounts.selectors import preferences_for
from apps.agent.canonical import canonical_json
from apps.agent.endpoint import OFFLINE, current_endpoint, model_for
from apps.agent.loop import TurnState
from apps.agent.selectors import turn_tool_calls, turn_usage
from apps.chat.models import Message, MessageKind, Role, Turn
from apps.chat.prompt.capability_hints import capability_hints
from apps.chat.prompt.context_block import context_block
from apps.chat.prompt.history import history, recent_texts
from apps.chat.prompt.system import system_blocks
from apps.chat.prompt.toolbox import conversation_tools
from apps.chat.runner.work import opening_message
from apps.chat.summary.budget import current_budget
from apps.chat.summary.selectors import over, turns_shown
from apps.core.ids import parse_id
from apps.memory.recall.injection import Surfaced, still_shown, surface
from apps.memory.services import cycle_advance


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A turn ready to run. `memories` are the surfaced items of a fresh turn (`[]` when it is resumed).

    `said` is the answer of a turn that needs no model.
    `too_long` says that the conversation has to be summed up before it is sent; then `turn_reload` gives its state.
    """

    state: TurnState
    too_long: bool
    message_id: UUID
    use_memory: bool
    memories: list[dict[str, Any]]
    memory_tokens: int
    said: str


def turn_prepare(turn_id: UUID) -> Prepared:
    """Reads all that the turn needs; a fresh one also advances the decay cycle and gets its context block.

    The block goes in front of the user's words and is stored with them, so that later requests repeat it.
    """
    turn = Turn.objects.unscoped().select_related("conversation").get(id=turn_id)
    preferences = preferences_for(turn.user_id)
    message = opening_message(turn)
    fresh = turn.attempt == 1
    surfaced = Surfaced(text="", tokens=0, items=())
    if fresh:
        if not turn.by_izzy:
            cycle_advance(user_id=turn.user_id)
        if turn.conversation.use_memory and not turn.by_izzy:
            surfaced = _surface(turn)
        _store_context(turn, message, preferences, surfaced)
    return Prepared(
        state=_loop_state(turn, preferences),
        too_long=over(turn.conversation, current_budget().limit),
        message_id=message.id,
        use_memory=turn.conversation.use_memory,
        memories=turn.memories if fresh else [],
        memory_tokens=turn.memory_tokens,
        said=turn.said,
    )


def turn_reload(turn_id: UUID) -> TurnState:
    """The turn as its rows say, after its conversation was summed up."""
    turn = Turn.objects.unscoped().select_related("conversation").get(id=turn_id)
    return _loop_state(turn, preferences_for(turn.user_id))


def _surface(turn: Turn) -> Surfaced:
    """The notes worth bringing up that the model does not have before it already, as they read now."""
    texts = recent_texts(turn.conversation_id)
    items = [item for shown in turns_shown(turn.conversation) for item in shown.memories]
    known = still_shown(turn.user_id, items) | {parse_id(item["id"]) for item in items if "source" in item}
    return surface(
        turn.user_id,
        texts,
        exclude_ids=known,
        conversation_id=turn.conversation_id,
        now=timezone.now(),
    )


@transaction.atomic
def _store_context(turn: Turn, message: Message, preferences: Preferences, surfaced: Surfaced) -> None:
    block = context_block(
        now=timezone.now(),
        time_zone=preferences.time_zone,
        memories=surfaced.text,
        capabilities=capability_hints(turn.conversation, preferences, message.text),
    )
    message.blocks = canonical_json([block, *json.loads(message.blocks)])
    message.save(update_fields=["blocks"])
    turn.memories = [item.to_json() for item in surfaced.items]
    turn.memory_tokens = surfaced.tokens
    turn.save(update_fields=["memories", "memory_tokens"])


def _loop_state(turn: Turn, preferences: Preferences) -> TurnState:
    conversation = turn.conversation
    before = conversation.tools
    tools = conversation_tools(conversation, preferences.toolsets)
    if conversation.tools != before:
        conversation.save(update_fields=["tools"])
    model = turn.model
    if not turn.said and model in {"", OFFLINE}:  # what was begun offline may go on with a model
        model = preferences.model or model_for("chat")
        turn.model = current_endpoint().answering(model)
        turn.save(update_fields=["model"])
    newest = turn.messages.filter(role=Role.ASSISTANT, kind=MessageKind.TEXT).order_by("round").last()
    return TurnState(
        user_id=turn.user_id,
        conversation_id=conversation.id,
        turn_id=turn.id,
        system=system_blocks(preferences, use_memory=conversation.use_memory),
        tools=tools,
        messages=history(conversation),
        model=model,
        rounds_done=newest.round if newest else 0,
        stop_reason=newest.stop_reason if newest else "",
        usage=turn_usage(user_id=turn.user_id, turn_id=turn.id),
        tool_calls=turn_tool_calls(user_id=turn.user_id, turn_id=turn.id),
    )
