"""Tabs that close, come back, and watch side by side."""

import asyncio
import json
from typing import Any

import pytest
from django.db import InterfaceError

from apps.accounts.models import User
from apps.agent.tools import base
from apps.agent.tools.base import Tier, Tool, ToolContext
from apps.chat.conversations import markdown
from apps.chat.models import Conversation, TurnEvent
from apps.chat.stream import subscription
from apps.chat.stream.events import LoggedEvent, events_prune
from apps.chat.stream.subscription import Subscription
from apps.chat.turns.scheduler import scheduler
from apps.core.db.pool import in_db
from apps.core.ids import uuid7
from tests.chat.client import Socket, connected, program_of
from tests.chat.rows import conversation, turn
from tests.peers.anthropic_server import AnthropicServer, reply, tool
from tests.waiting import until

TURN = uuid7()
ANSWER = "# Title\n\nSome *text* here.\n\n- one\n- two\n\n```python\nprint(1)\n```\n\nThe end."


def shown(page: Socket, turn_id: str) -> list[str]:
    """The blocks a page shows when it applies every html event of the turn."""
    found: dict[int, str] = {}
    for frame in page.seen:
        if frame["type"] == "html" and frame["turn"] == turn_id:
            found[frame["block"]] = frame["html"]
    return [html for _, html in sorted(found.items()) if html]


async def test_a_closed_tab_does_not_end_the_turn(alice: User, model: AnthropicServer) -> None:
    held = reply("One two three", hold_after=4)
    model.add(held)
    async with connected(alice) as page:
        place = await conversation(alice)
        queued = await page.say("Count", conversation=place)
        await page.until("text_delta")
    held.release.set()
    await scheduler().idle()
    assert (await turn(queued["turn"])).state == "done"
    async with connected(alice) as later:
        snapshot = await later.snapshot(place)
    assert [message["text"] for message in snapshot["messages"]] == ["Count", "One two three"]
    assert snapshot["turn"] is None


async def test_two_tabs_see_the_same_events(alice: User, model: AnthropicServer) -> None:
    model.add(reply(ANSWER, tool("think", {"thought": "x"})), reply("Done."))
    place = await conversation(alice)
    async with connected(alice) as one, connected(alice) as two:
        await two.snapshot(place)
        await one.say("Write", conversation=place)
        await one.ended()
        await two.ended()
        await scheduler().idle()

    def log(page: Socket) -> list[tuple[str, int]]:
        return [
            (frame["type"], frame["seq"])
            for frame in page.seen
            if frame["type"] not in {"html", "snapshot"}
        ]

    assert log(one) == log(two)
    numbers = [seq for _, seq in log(one)]
    assert numbers == sorted(set(numbers))


async def test_the_blocks_of_html_add_up_to_the_answer(alice: User, model: AnthropicServer) -> None:
    model.add(reply(ANSWER, tool("think", {"thought": "x"})), reply("And *done*.", delay=0.02))
    async with connected(alice) as page:
        place = await conversation(alice)
        queued = await page.say("Write", conversation=place)
        await page.ended()
        await scheduler().idle()
    first = [block.html for block in markdown.blocks(ANSWER)]
    assert shown(page, queued["turn"]) == [*first, "<p>And <em>done</em>.</p>"]


async def test_a_page_that_opens_in_the_middle_gets_the_text_so_far_and_the_rest(
    alice: User, model: AnthropicServer
) -> None:
    held = reply("First **part**, then the rest.", hold_after=4)
    model.add(held)
    place = await conversation(alice)
    async with connected(alice) as one, connected(alice) as two:
        queued = await one.say("Write", conversation=place)
        while one.text(queued["turn"]) != "First **part**, ":
            await one.until("text_delta")
        snapshot = await two.snapshot(place)
        assert snapshot["turn"]["text"] == "First **part**, "
        assert snapshot["turn"]["blocks"] == [
            {"block": 0, "html": "<p>First <strong>part</strong>,</p>"}
        ]
        held.release.set()
        await two.ended()
        await scheduler().idle()
    assert two.text(queued["turn"]) == "then the rest."
    assert shown(two, queued["turn"]) == ["<p>First <strong>part</strong>, then the rest.</p>"]


@pytest.fixture
def looking(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Offers a read-only tool `look`, which ends once the event is set."""
    seen = asyncio.Event()

    async def look(context: ToolContext, args: dict[str, object]) -> str:
        await seen.wait()
        return "seen"

    tool = Tool(
        name="look",
        description="Looks.",
        input_schema={"type": "object"},
        handler=look,
        tier=Tier.READ_ONLY,
        timeout=900,
    )
    monkeypatch.setitem(base._tools, "look", tool)
    return seen


async def test_a_page_that_opens_while_a_round_still_runs_can_decide_what_it_asks(
    alice: User, model: AnthropicServer, looking: asyncio.Event
) -> None:
    other, place = await conversation(alice), await conversation(alice)
    asks = tool("conversation_delete", {"conversation_id": other})
    model.add(reply(tool("look"), asks), reply("It is gone."))
    async with connected(alice) as one, connected(alice) as two:
        queued = await one.say("Look, then delete it", conversation=place)
        asked = await one.until("approval_requested")
        shown = (await two.snapshot(place))["turn"]
        [ask] = shown["waiting_for"]
        assert (shown["state"], ask["id"], ask["always"]) == ("running", asked["id"], True)

        await two.send("approve", id=ask["id"], decision="always")
        await two.send("ping")
        assert (await two.until("error", "pong"))["type"] == "pong"
        assert (await two.snapshot(place))["turn"]["waiting_for"] == []
        looking.set()
        while (await one.ended())["text"] != "It is gone.":
            pass
        await scheduler().idle()
    assert (await turn(queued["turn"])).waiting_for == []


async def test_a_page_that_opens_between_two_decisions_is_asked_for_the_other_alone(
    alice: User, model: AnthropicServer
) -> None:
    questions = [tool("ask_user", {"question": text}) for text in ("Which?", "How many?")]
    model.add(reply(*questions))
    place = await conversation(alice)
    async with connected(alice) as page:
        await page.say("Choose", conversation=place)
        asked = await page.ended()
        await page.send("answer", id=asked["pending_question"]["id"], text="red")
        shown = (await page.snapshot(place))["turn"]
    assert [ask["text"] for ask in shown["waiting_for"]] == ["How many?"]


async def test_coming_back_replays_what_was_missed_once(alice: User, model: AnthropicServer) -> None:
    held = reply(ANSWER, hold_after=6)
    model.add(held)
    place = await conversation(alice)
    async with connected(alice) as one:
        queued = await one.say("Write", conversation=place)
        seen = await one.until("text_delta")
    held.release.set()
    await scheduler().idle()
    async with connected(alice) as two:
        await two.send("open", conversation=place, seq=seen["seq"])
        await two.ended()
    assert one.text(queued["turn"]) + two.text(queued["turn"]) == ANSWER
    assert shown(two, queued["turn"]) == [block.html for block in markdown.blocks(ANSWER)]
    assert "snapshot" not in two.types()


async def test_every_place_in_the_log_can_be_come_back_to(alice: User, model: AnthropicServer) -> None:
    model.add(reply("Look: ", tool("conversation_list", {})), reply("one two three four"))
    place = await conversation(alice)
    async with connected(alice) as page:
        queued = await page.say("Go", conversation=place)
        await page.ended()
        await scheduler().idle()
    whole = [frame for frame in page.seen if frame["type"] != "html"]
    for frame in whole[:-1]:
        async with connected(alice) as back:
            await back.send("open", conversation=place, seq=frame["seq"])
            await back.ended()
        rest: list[dict[str, Any]] = [seen for seen in back.seen if seen["type"] != "html"]
        assert rest == [seen for seen in whole if seen["seq"] > frame["seq"]]
    assert page.text(queued["turn"]) == "Look: one two three four"


async def test_zero_replays_everything_where_something_happened(
    alice: User, model: AnthropicServer
) -> None:
    place = await conversation(alice)
    async with connected(alice) as page:
        await page.send("open", conversation=place, seq=0)
        assert (await page.next())["type"] == "snapshot"
        await page.say("Hello", conversation=place)
        await page.ended()
        await scheduler().idle()
    async with connected(alice) as back:
        await back.send("open", conversation=place, seq=0)
        await back.ended()
    whole = [frame for frame in page.seen if frame["type"] not in {"html", "snapshot"}]
    assert [frame for frame in back.seen if frame["type"] != "html"] == whole
    assert whole[0]["seq"] == 1


async def test_a_number_from_the_future_or_before_what_was_pruned_gives_a_snapshot(
    alice: User, model: AnthropicServer
) -> None:
    place = await conversation(alice)
    async with connected(alice) as page:
        queued = await page.say("Hello", conversation=place)
        await page.ended()
        await scheduler().idle()
        await page.send("open", conversation=place, seq=10**6)
        assert (await page.next())["type"] == "snapshot"

        def age() -> None:
            from apps.chat.models import Turn

            Turn.objects.unscoped().update(ended_at="2001-01-01T00:00Z")
            events_prune()

        await in_db(age)
        assert not await in_db(lambda: TurnEvent.objects.exists())
        await page.send("open", conversation=place, seq=queued["seq"])
        snapshot = await page.next()
    assert snapshot["type"] == "snapshot"
    assert len(snapshot["messages"]) == 2


async def test_what_another_process_stores_reaches_the_page(alice: User, model: AnthropicServer) -> None:
    """Rows are looked at where a conversation runs elsewhere: here a runner in a second event loop."""
    model.add(reply("From elsewhere."))
    place = await conversation(alice)
    async with connected(alice) as page:
        await page.snapshot(place)

        def elsewhere() -> None:
            async def run() -> None:
                async with connected(alice) as other:
                    await other.say("Hello", conversation=place)
                    await other.ended()
                await scheduler().close()

            asyncio.run(run())

        await asyncio.to_thread(elsewhere)
        end = await page.ended()
    assert end["text"] == "From elsewhere."
    assert page.types()[:3] == ["snapshot", "turn_queued", "turn_started"]


@pytest.mark.parametrize(
    ("look", "nothing"),
    [
        ("apps.chat.stream.hub._news", {}),
        ("apps.chat.turns.scheduler.conversations_with_build_news", []),
    ],
)
async def test_rows_are_looked_at_again_after_a_connection_to_the_database_broke(
    alice: User, model: AnthropicServer, monkeypatch: pytest.MonkeyPatch, look: str, nothing: object
) -> None:
    asked: list[object] = []

    def looks(*given: object) -> object:
        asked.append(given)
        if len(asked) == 1:
            raise InterfaceError("the connection is closed")
        return nothing

    async def asked_twice() -> bool:
        return len(asked) > 1

    monkeypatch.setattr(look, looks)
    async with connected(alice) as page:
        await page.snapshot(await conversation(alice))
        await until(asked_twice)


async def test_a_deleted_conversation_is_told_to_who_watches_it(
    alice: User, model: AnthropicServer
) -> None:
    from apps.chat.conversations.services import conversation_delete

    place = await conversation(alice)
    async with connected(alice) as page:
        await page.snapshot(place)
        await in_db(lambda: conversation_delete(user_id=alice.id, conversation_id=place))
        gone = await page.until("error")
    assert (gone["code"], gone["conversation"]) == ("not_found", place)


async def test_deleting_a_conversation_ends_its_running_turn(
    alice: User, model: AnthropicServer
) -> None:
    from apps.chat.conversations.services import conversation_delete

    held = reply("One two three", hold_after=4)
    model.add(held)
    place = await conversation(alice)
    async with connected(alice) as page:
        await page.say("Count", conversation=place)
        await page.until("text_delta")
        await in_db(lambda: conversation_delete(user_id=alice.id, conversation_id=place))
        gone = await page.until("error")
        held.release.set()
        await scheduler().idle()
    assert gone["code"] == "not_found"
    assert not await in_db(lambda: Conversation.objects.unscoped().exists())
    assert not await in_db(lambda: TurnEvent.objects.exists())


async def test_no_more_than_eight_conversations_are_watched_by_one_socket(
    alice: User, model: AnthropicServer
) -> None:
    places = [await conversation(alice) for _ in range(9)]
    async with connected(alice) as page:
        for place in places:
            await page.snapshot(place)
        assert set(map(str, scheduler().hub.feeds)) == set(places[1:])
        await page.send("close", conversation=places[1])
        await page.send("ping")
        await page.until("pong")
        assert set(map(str, scheduler().hub.feeds)) == set(places[2:])
    assert not scheduler().hub.feeds


def frame(seq: int, type: str, **values: Any) -> LoggedEvent:
    return LoggedEvent(seq, TURN, type, values)


async def test_what_a_slow_reader_has_not_read_is_put_together() -> None:
    watcher = Subscription(uuid7(), html=True)
    watcher.begin([], 0)
    for seq in range(1, 20_001):
        watcher.put(frame(seq, "text_delta", text=f"{seq} "))
        if seq % 50 == 0:
            watcher.put(frame(seq, "html", block=0, html=f"<p>{seq}</p>"))
    watcher.put(frame(20_001, "response", text="all"))
    got = [await watcher.next()]
    while got[-1]["type"] != "response":
        got.append(await watcher.next())
    assert not watcher.lagged
    assert len(got) < 100
    texts = [each["text"] for each in got if each["type"] == "text_delta"]
    assert "".join(texts) == "".join(f"{seq} " for seq in range(1, 20_001))
    assert [each["seq"] for each in got] == sorted(each["seq"] for each in got)
    assert [each["html"] for each in got if each["type"] == "html"][-1] == "<p>20000</p>"


async def test_a_program_that_lags_gets_the_rest_and_one_end(
    alice: User, model: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "QUEUE_FRAMES", 2)
    model.add(reply("Let me think.", tool("think", {"thought": "hm"})), reply("One two three four five"))
    program = await program_of(alice)
    response = await program.post("chat/", {"message": "Count", "stream": True})
    chunks = aiter(response.streaming_content)
    events = [await anext(chunks)]
    await scheduler().idle()
    events += [chunk async for chunk in chunks]
    frames = [
        json.loads(chunk.decode().split("data: ")[1]) for chunk in events if not chunk.startswith(b":")
    ]
    types = [each["type"] for each in frames]
    assert types.count("response") == 1
    assert types[-1] == "response"
    assert [each["seq"] for each in frames] == sorted({each["seq"] for each in frames})
    texts = [each["text"] for each in frames if each["type"] == "text_delta"]
    assert "".join(texts) == "Let me think.One two three four five"
