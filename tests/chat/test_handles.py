"""Short names (n7) of notes in a conversation, from the block that brings a note up to the tool that is given its name."""

import json
from itertools import pairwise

from apps.accounts.models import User
from apps.agent.models import ToolCall
from apps.chat.audit_log.selectors import decision_log
from apps.chat.conversations.services import conversation_delete
from apps.chat.models import Conversation, Message, Turn
from apps.chat.turns.scheduler import scheduler
from apps.core.db.pool import in_db
from apps.core.purging.trace import MARKER
from apps.memory.models import Memory, NoteHandle
from apps.memory.notes.creation import memory_create
from apps.memory.purge import memory_purge
from benchmarks.prompt import sent_parts
from tests.chat.client import connected
from tests.chat.rows import conversation
from tests.peers.anthropic_server import AnthropicServer, reply, tool

ROUTER = "The router stands in the hall closet."
BIKE = "The bike stands in the cellar."


async def notes(user: User, *texts: str, category: str = "") -> list[Memory]:
    return await in_db(
        lambda: [memory_create(user_id=user.id, content=text, category=category) for text in texts]
    )


def block_of(model: AnthropicServer, number: int) -> str:
    """The context block of the newest message in the request of this number."""
    return str(model.messages[number]["messages"][-1]["content"][0]["text"])


async def test_the_model_names_a_note_as_the_block_does_and_the_result_gives_its_id(
    alice: User, model: AnthropicServer
) -> None:
    (router,) = await notes(alice, ROUTER)
    place = await conversation(alice)
    model.add(reply(tool("memory_delete", {"note_id": "n1"})), reply("Gone."))
    async with connected(alice) as page:
        await page.say("Where is the router? Forget it.", conversation=place)
        await page.ended()
        await scheduler().idle()
    assert f"\n- n1: {ROUTER}\n" in block_of(model, 0)
    assert str(router.pk) not in block_of(model, 0)
    shown = next(frame for frame in page.seen if frame["type"] == "memory_context")["items"][0]
    assert (shown["id"], shown["handle"]) == (str(router.pk), "n1")
    assert shown["reason"]
    assert shown["parts"]
    call = await in_db(lambda: ToolCall.objects.for_user(alice).get(name="memory_delete"))
    assert json.loads(call.result)["note_id"] == router.note_id
    log = await in_db(lambda: decision_log(Conversation.objects.for_user(alice).get(pk=place)))
    (step,) = log["turns"][0]["steps"]
    assert step["input"] == {"note_id": router.note_id}


async def test_a_note_keeps_its_name_when_a_message_is_edited_and_sent_again(
    alice: User, model: AnthropicServer
) -> None:
    await notes(alice, ROUTER, BIKE)
    place = await conversation(alice)
    async with connected(alice) as page:
        first = await page.say("Where is the router?", conversation=place)
        await page.ended()
        await page.say("Where is the bike?", conversation=place, replaces=first["message"]["id"])
        await page.ended()
        await page.say("And where is the router?", conversation=place)
        await page.ended()
        await scheduler().idle()
    blocks = [block_of(model, number) for number in range(3)]
    assert f"- n1: {ROUTER}" in blocks[0]
    assert f"- n2: {BIKE}" in blocks[1]
    assert f"- n1: {ROUTER}" in blocks[2]


async def test_the_blocks_of_earlier_turns_stay_byte_for_byte(
    alice: User, model: AnthropicServer
) -> None:
    await notes(alice, ROUTER, BIKE)
    place = await conversation(alice)
    async with connected(alice) as page:
        for text in ("Where is the router?", "Where is the bike?", "Thanks."):
            await page.say(text, conversation=place)
            await page.ended()
            await scheduler().idle()
    sent = [sent_parts(request.body) for request in model.requests]
    assert all(later.starts_with(earlier) for earlier, later in pairwise(sent))


async def test_names_go_with_their_conversation_and_with_no_other(
    alice: User, model: AnthropicServer
) -> None:
    await notes(alice, ROUTER)
    places = [await conversation(alice), await conversation(alice)]
    async with connected(alice) as page:
        for place in places:
            await page.say("Where is the router?", conversation=place)
            await page.ended()
            await scheduler().idle()
    await in_db(lambda: conversation_delete(user_id=alice.pk, conversation_id=places[0]))
    left = await in_db(lambda: list(NoteHandle.objects.for_user(alice)))
    assert [(str(row.conversation_id), row.number) for row in left] == [(places[1], 1)]


async def test_a_purge_takes_the_line_of_the_note_and_no_other(
    alice: User, model: AnthropicServer
) -> None:
    """Also where another note says the same, so that no word of the line gives it away."""
    (router,) = await notes(alice, ROUTER)
    await notes(alice, BIKE, category="standing")
    place = await conversation(alice)
    async with connected(alice) as page:
        await page.say("Where is the router?", conversation=place)
        await page.ended()
        await scheduler().idle()

    def purged() -> tuple[str, list[str]]:
        memory_create(user_id=alice.pk, content=f"{ROUTER} Really.")
        memory_purge(user_id=alice.pk, ids=[router.pk])
        message = Message.objects.for_user(alice).get(position=1)
        return message.blocks, [item["text"] for item in Turn.objects.for_user(alice).get().memories]

    assert ROUTER in block_of(model, 0)
    blocks, items = await in_db(purged)
    text = json.loads(blocks)[0]["text"]
    assert ROUTER not in text
    assert MARKER in text
    assert BIKE in text
    assert items == [BIKE]
