"""Sending a message again, changed or not, in place of what it led to."""

from apps.accounts.models import User
from apps.chat.models import Message
from apps.chat.turns.scheduler import scheduler
from apps.core.db.pool import in_db
from apps.memory.models import Memory
from apps.search.documents import Scope, Source
from apps.search.selectors import search
from tests.chat.client import connected
from tests.chat.rows import conversation, messages, said, turn
from tests.peers.anthropic_server import AnthropicServer, failure, reply, tool


async def test_an_edited_message_takes_the_place_of_the_old_one_and_what_followed(
    alice: User, model: AnthropicServer
) -> None:
    model.add(reply("Red is warm."), reply("Sure."), reply("Blue is cold."))
    async with connected(alice) as page:
        place = await conversation(alice)
        first = await page.say("Tell me about red", conversation=place)
        await page.ended()
        await page.say("Go on", conversation=place)
        await page.ended()
        edited = await page.say(
            "Tell me about blue", conversation=place, replaces=first["message"]["id"]
        )
        await page.ended()
        await scheduler().idle()
        snapshot = await page.snapshot(place)
    assert [message["text"] for message in snapshot["messages"]] == [
        "Tell me about blue",
        "Blue is cold.",
    ]
    assert first["message"]["id"] in edited["replaces"]
    assert len(edited["replaces"]) == 4
    assert model.messages[-1]["messages"][0]["content"][-1] == said("Tell me about blue")[0]
    assert len(model.messages[-1]["messages"]) == 1


async def test_what_was_replaced_is_out_of_search_and_kept_in_its_rows(
    alice: User, model: AnthropicServer
) -> None:
    async with connected(alice) as page:
        place = await conversation(alice)
        first = await page.say("My boat is called Albatross", conversation=place)
        await page.ended()
        await scheduler().idle()
        assert await in_db(
            lambda: [hit.text for hit in search(alice.id, "boat Albatross", scope=SPOKEN)]
        )
        await page.say("My bike is called Swift", conversation=place, replaces=first["message"]["id"])
        await page.ended()
        await scheduler().idle()
    found = await in_db(lambda: [hit.text for hit in search(alice.id, "boat Albatross", scope=SPOKEN)])
    assert not any("Albatross" in text for text in found)
    assert await in_db(lambda: Message.objects.unscoped().filter(text__contains="Albatross").exists())


SPOKEN = Scope(sources=frozenset({Source.CONVERSATION}))


async def test_a_retry_asks_the_model_again_with_the_same_words(
    alice: User, model: AnthropicServer
) -> None:
    model.add(failure(400, "invalid_request_error"), reply("Now it works."))
    async with connected(alice) as page:
        place = await conversation(alice)
        await page.say("Hello", conversation=place)
        assert (await page.ended())["type"] == "error"
        await page.send("retry", conversation=place, client_id="again")
        queued = await page.until("turn_queued")
        assert (await page.ended())["text"] == "Now it works."
        await scheduler().idle()
    assert (queued["client_id"], queued["message"]["text"]) == ("again", "Hello")
    assert [(role, kind) for role, kind, _ in await messages(place)] == [
        ("user", "text"),
        ("assistant", "text"),
    ]
    assert len(model.messages[1]["messages"]) == 1


async def test_a_retry_of_what_is_not_the_newest_message_any_more_is_refused(
    alice: User, model: AnthropicServer
) -> None:
    model.add(reply("One."), reply("Two."), reply("Two, again."))
    async with connected(alice) as page, connected(alice) as stale:
        place = await conversation(alice)
        first = await page.say("First", conversation=place)
        await page.ended()
        second = await page.say("Second", conversation=place)
        await page.ended()
        await scheduler().idle()
        await stale.send("retry", conversation=place, replaces=first["message"]["id"])
        refused = await stale.until("error", "turn_queued")
        assert refused["code"] == "not_newest"
        await page.send("retry", conversation=place, replaces=second["message"]["id"])
        assert (await page.ended())["text"] == "Two, again."
        await scheduler().idle()
    assert [text[-1] for _, _, text in await messages(place)] == [
        said(text)[0] for text in ("First", "One.", "Second", "Two, again.")
    ]


async def test_nothing_is_replaced_while_a_turn_runs(alice: User, model: AnthropicServer) -> None:
    held = reply("One two", hold_after=3)
    model.add(held)
    async with connected(alice) as page:
        place = await conversation(alice)
        queued = await page.say("Count", conversation=place)
        await page.until("text_delta")
        refused = await page.say("Count on", conversation=place, replaces=queued["message"]["id"])
        assert refused["code"] == "turn_running"
        await page.send("retry", conversation=place, client_id="r")
        assert (await page.until("error"))["code"] == "turn_running"
        held.release.set()
        assert (await page.ended())["type"] == "response"
        await scheduler().idle()
    assert len(await messages(place)) == 2


async def test_editing_stops_a_turn_that_waits(alice: User, model: AnthropicServer) -> None:
    model.add(reply(tool("ask_user", {"question": "Which?"})), reply("Fine."))
    async with connected(alice) as page:
        place = await conversation(alice)
        first = await page.say("Do it", conversation=place)
        await page.ended()
        await page.say("Do that", conversation=place, replaces=first["message"]["id"])
        stopped = next(frame for frame in page.seen if frame["type"] == "turn_stopped")
        assert stopped["turn"] == first["turn"]
        assert (await page.ended())["text"] == "Fine."
        await scheduler().idle()
    assert (await turn(first["turn"])).state == "stopped"
    assert [text[-1] for _, _, text in await messages(place)] == [said("Do that")[0], said("Fine.")[0]]
    assert len(model.messages[-1]["messages"]) == 1


async def test_a_note_of_a_replaced_turn_stays(alice: User, model: AnthropicServer) -> None:
    model.add(
        reply(tool("memory_save", {"content": "Alice likes figs."})), reply("Noted."), reply("Hm.")
    )
    async with connected(alice) as page:
        place = await conversation(alice)
        first = await page.say("I like figs", conversation=place)
        await page.ended()
        await page.say("Hello", conversation=place, replaces=first["message"]["id"])
        await page.ended()
        await scheduler().idle()
    assert await in_db(
        lambda: list(Memory.objects.for_user(alice).values_list("content", flat=True))
    ) == ["Alice likes figs."]


async def test_only_a_message_of_the_users_own_in_this_conversation_is_replaced(
    alice: User, model: AnthropicServer
) -> None:
    async with connected(alice) as page:
        place, other = await conversation(alice), await conversation(alice)
        await page.say("Hello", conversation=place)
        end = await page.ended()
        elsewhere = await page.say("Hello", conversation=other)
        await page.ended()
        for wrong in (end["messages"][0], elsewhere["message"]["id"], "no-id", 7):
            refused = await page.say("X", conversation=place, replaces=wrong)
            assert (refused["type"], refused["code"]) == ("error", "not_found")
        await page.send("retry", conversation=str(await conversation(alice)))
        assert (await page.until("error"))["code"] == "nothing_to_retry"
        await scheduler().idle()
    assert len(await messages(place)) == 2
