"""A user with one of everything, made by the services: a check that finds something wrong with it is itself wrong."""

from dataclasses import dataclass, replace
from typing import Any

from apps.accounts.models import User
from apps.agent.models import ToolCall
from apps.builder.builds.messages import BuildOrigin, build_follow, message_add
from apps.builder.builds.running import dialogue_add
from apps.builder.models import Build, MessageType, State
from apps.capabilities.catalog.versions import capability_begin
from apps.capabilities.models import Capability
from apps.chat.conversations.handover import turn_capture, turn_index
from apps.chat.models import Conversation, MessageKind, Role, Turn, TurnEvent
from apps.chat.stream.events import rows_of
from apps.chat.turns.queue import conversation_take, turn_interrupt, work_next
from apps.chat.turns.services import message_send
from apps.chat.turns.store import message_append
from apps.core.jobs.leases import PROCESS
from apps.memory.files.services import file_write
from apps.memory.models import Import, Memory, MemoryFile, Relation
from apps.memory.notes.changes import memory_delete, memory_update
from apps.memory.notes.creation import memory_create
from apps.memory.notes.joining import edge_create
from apps.memory.transfer.jobs import import_create
from tests.capabilities.making import make

LONG = "The boiler of the house in Lyon was serviced in May. " * 60
CALL = {"type": "tool_use", "id": "toolu_1", "name": "think", "input": {"thought": "Hm."}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Go on."}


@dataclass(frozen=True, slots=True)
class World:
    user: User
    note: Memory  # with two former texts, occasions, tags and a link
    file: MemoryFile
    conversation: Conversation
    turn: Turn  # ended, with a tool call
    call: ToolCall
    capability: Capability
    build: Build  # running, and followed by the turn
    upload: Import  # waiting


def world_of(user: User) -> World:
    note = memory_create(
        user_id=user.pk,
        content="I am allergic to shellfish.",
        tags=["food"],
        category="health",
        occasions=["ordering dinner"],
    )
    for text in ("I am allergic to mussels.", "I am allergic to crabs and mussels."):
        note = memory_update(user_id=user.pk, memory_id=note.pk, content=text)
    long = memory_create(user_id=user.pk, content=LONG)
    edge_create(user_id=user.pk, source_id=note.pk, target_id=long.pk, relation=Relation.RELATED)
    gone = memory_create(user_id=user.pk, content="I live in Lyon.")
    memory_delete(user_id=user.pk, memory_id=gone.pk)
    file = file_write(user_id=user.pk, path="/memories/garden.md", text="Roses: cut in March. Äpfel.")
    conversation, turn, call = _talk(user)
    capability = make(user)
    return World(
        user=user,
        note=note,
        file=file,
        conversation=conversation,
        turn=turn,
        call=call,
        capability=capability,
        build=_build(user, turn),
        upload=import_create(user_id=user.pk, chunks=[b"# Garden\n\nRoses are red.\n"], name="a.md"),
    )


def _talk(user: User) -> tuple[Conversation, Turn, ToolCall]:
    sent = message_send(user_id=user.pk, text="Which plants do I have?")
    conversation_take(sent.conversation_id)
    work_next(sent.conversation_id, None)
    turn = Turn.objects.for_user(user).select_related("conversation").get(id=sent.turn_id)
    call = ToolCall.objects.create(
        user=user,
        conversation_id=sent.conversation_id,
        turn_id=turn.pk,
        round=1,
        position=0,
        tool_use_id="toolu_1",
        name="think",
        state=ToolCall.State.DONE,
    )
    message_append(turn, role=Role.ASSISTANT, blocks=[CALL], round=1)
    kind = MessageKind.TOOL_RESULTS
    message_append(turn, role=Role.USER, kind=kind, blocks=[RESULT], round=1)
    message_append(turn, role=Role.ASSISTANT, blocks=[{"type": "text", "text": "Roses."}], round=2)
    # As a runner numbers them.
    events = [replace(event, seq=number) for number, event in enumerate(turn_interrupt(turn), 1)]
    TurnEvent.objects.bulk_create(rows_of(sent.conversation_id, events))
    Conversation.lease_release(sent.conversation_id, stored_seq=len(events), last_seq=len(events))
    turn_index(turn.pk)
    turn_capture(turn.pk)
    return Conversation.objects.for_user(user).get(id=sent.conversation_id), turn, call


def _build(user: User, turn: Turn) -> Build:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    capability = capability_begin(
        user_id=user.pk, name="dice_roller", description="Roll dice.", input_schema=schema
    )
    build = Build.objects.create(
        user_id=user.pk, capability=capability, name="dice_roller", input_schema=schema
    )
    origin = BuildOrigin(conversation_id=turn.conversation_id, turn_id=turn.pk)
    build_follow(build=build, origin=origin)
    Build.lease_take(build.pk, PROCESS, state=State.RUNNING, started_at=turn.created_at, attempt=1)
    build = Build.objects.for_user(user).get(pk=build.pk)
    dialogue_add(build=build, role="user", blocks=[{"type": "text", "text": "Build it."}], round=0)
    dialogue_add(build=build, role="assistant", blocks=[{"type": "text", "text": "Yes."}], round=1)
    message_add(build=build, type=MessageType.PROGRESS, payload={"text": "Thinking", "stage": "plan"})
    return Build.objects.for_user(user).get(pk=build.pk)
