"""A turn runs in another process, whose words come over the bus before they stand in the rows: whoever joins meanwhile."""

from contextlib import aclosing
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.chat.api_chat import turn_frames
from apps.chat.models import Conversation, Turn, TurnEvent
from apps.chat.stream import hub
from apps.chat.stream.events import LoggedEvent, rows_of
from apps.chat.stream.hub import TOPIC
from apps.chat.turns.scheduler import scheduler
from apps.chat.turns.services import message_send
from apps.core.db.pool import in_db
from apps.core.db.writing import writing_for
from apps.core.jobs.bus import bus
from tests.chat.client import Frame, Socket, connected
from tests.chat.rows import conversation
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("runner")


class Elsewhere:
    """The other process: what it says is heard at once, and stored when the test says so."""

    def __init__(self, conversation_id: UUID, turn_id: UUID) -> None:
        self.conversation_id, self.turn_id = conversation_id, turn_id
        self.seq = 0
        self.pending: list[LoggedEvent] = []

    @property
    def place(self) -> str:
        return str(self.conversation_id)

    def tell(self, kind: str, **payload: Any) -> None:
        item = [self.seq, [[self.seq + 1, str(self.turn_id), kind, payload]]]
        self.seq += 1
        self.pending.append(LoggedEvent(self.seq, self.turn_id, kind, payload))
        bus().hand_out(TOPIC.format(self.conversation_id), [item])

    def say(self, *words: str) -> None:
        for word in words:
            self.tell("text_delta", text=word)

    async def store(self) -> None:
        def write() -> None:
            TurnEvent.objects.bulk_create(rows_of(self.conversation_id, self.pending))
            rows = Conversation.objects.unscoped().filter(pk=self.conversation_id)
            rows.update(stored_seq=self.seq)

        await in_db(write)
        self.pending.clear()


async def elsewhere(user: User) -> Elsewhere:
    """A turn that has said "One two " there, which is stored."""
    with writing_for(user.pk):
        sent = await in_db(
            partial(message_send, user_id=user.pk, text="Count", conversation=await conversation(user))
        )

        def take() -> None:
            held_until = timezone.now() + timedelta(seconds=50)
            held = Conversation.objects.unscoped().filter(pk=sent.conversation_id)
            held.update(runner="another", lease_until=held_until, last_seq=1000)
            Turn.objects.unscoped().filter(pk=sent.turn_id).update(state="running", announced=True)

        await in_db(take)
    other = Elsewhere(sent.conversation_id, sent.turn_id)
    other.tell("turn_queued")
    other.tell("turn_started")
    other.say("One ", "two ")
    await other.store()
    return other


async def heard(page: Socket, word: str) -> Frame:
    """Reads on to the text that has this word."""
    while word not in (frame := await page.until("text_delta"))["text"]:
        pass
    return frame


async def shown(page: Socket, word: str) -> str:
    """Reads on to the HTML that has this word, and returns it."""
    while word not in (frame := await page.until("html"))["html"]:
        pass
    html: str = frame["html"]
    return html


async def blocks(page: Socket, snapshot: Frame, word: str) -> list[str]:
    """The page's text once it shows this word."""
    html = {block["block"]: block["html"] for block in snapshot["turn"]["blocks"]}
    while not any(word in each for each in html.values()):
        frame = await page.until("html")
        html[frame["block"]] = frame["html"]
    return [each for _, each in sorted(html.items())]


async def test_a_page_that_opens_beside_another_gets_what_that_one_has_and_the_rows_have_not(
    alice: User,
) -> None:
    other = await elsewhere(alice)
    turn = str(other.turn_id)
    async with connected(alice) as first, connected(alice) as page:
        await first.snapshot(other.place)
        other.say("three ", "four\n\n", "five\n\n", "six ")
        before = await blocks(first, first.seen[0], "six")
        snapshot = await page.snapshot(other.place)
        other.say("seven ")
        assert await blocks(page, snapshot, "seven") == [*before[:2], "<p>six seven</p>"]
        assert snapshot["turn"]["text"] + page.text(turn) == "One two three four\n\nfive\n\nsix seven "
        await other.store()
        other.say("eight ")
        await heard(page, "eight")
    numbers = [frame["seq"] for frame in page.seen if frame["type"] in {"snapshot", "text_delta"}]
    assert numbers == sorted(set(numbers))
    assert page.text(turn) == "three four\n\nfive\n\nsix seven eight "


async def test_so_it_does_when_it_comes_back_knowing_some_of_it(alice: User) -> None:
    other = await elsewhere(alice)
    turn = str(other.turn_id)
    async with connected(alice) as first:
        await first.snapshot(other.place)
        other.say("three ")
        known = await heard(first, "three")
        other.tell("tool_start", id="1", name="think", input={})
        other.say("four\n\n", "five ")
        await shown(first, "five")
        async with connected(alice) as back:
            await back.send("open", conversation=other.place, seq=known["seq"])
            assert await shown(back, "five") == "<p>five</p>"
            assert back.types() == ["tool_start", "text_delta", "text_delta"]
            assert back.text(turn) == "four\n\nfive "
    html = [(frame["block"], frame["html"]) for frame in back.seen if frame["type"] == "html"]
    assert html == [(1000, "<p>four</p>"), (1001, "<p>five</p>")]


async def test_a_program_that_comes_beside_a_page_gets_what_the_rows_have_not(alice: User) -> None:
    other = await elsewhere(alice)
    async with connected(alice) as page:
        await page.snapshot(other.place)
        other.say("three ", "four ")
        await heard(page, "four")
        async with aclosing(turn_frames(other.conversation_id, other.turn_id)) as program:
            frames = [await anext(program) for _ in range(6)]
    assert [frame["seq"] for frame in frames if frame] == [1, 2, 3, 4, 5, 6]


async def test_where_too_much_is_not_stored_who_opens_waits_for_it(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "KEPT", 1)
    other = await elsewhere(alice)
    async with connected(alice) as first, connected(alice) as page:
        await first.snapshot(other.place)
        other.say("three ", "four ")
        await heard(first, "four")
        await page.send("open", conversation=other.place)
        await other.store()
        other.say("five ")
        snapshot = await page.until("snapshot")
        assert snapshot["turn"]["text"] == "One two three four "
        assert await shown(page, "five") == "<p>One two three four five</p>"
        feed = scheduler().hub.feeds[other.conversation_id]
        await other.store()
        await until(lambda: not feed.kept)


async def test_a_page_that_comes_back_knowing_more_than_is_stored_shows_every_word(alice: User) -> None:
    other = await elsewhere(alice)
    async with connected(alice) as page:
        before = (await page.snapshot(other.place))["turn"]["text"]
        other.say("three ", "four ")
        last = await heard(page, "four")
    async with connected(alice) as back:
        await back.send("open", conversation=other.place, seq=last["seq"])
        await back.send("ping")
        await back.until("pong")
        other.say("five ")
        await other.store()
        assert await shown(back, "five") == "<p>One two three four five</p>"
    turn = str(other.turn_id)
    assert before + page.text(turn) + back.text(turn) == "One two three four five "


async def test_a_page_that_claims_to_know_too_much_takes_nothing_from_another(alice: User) -> None:
    other = await elsewhere(alice)
    async with connected(alice) as wrong, connected(alice) as page:
        await wrong.send("open", conversation=other.place, seq=other.seq + 500)
        await wrong.send("ping")
        await wrong.until("pong")
        await page.snapshot(other.place)
        other.say("three ")
        assert await shown(page, "three") == "<p>One two three</p>"
        assert page.text(str(other.turn_id)) == "three "


async def test_a_page_beside_a_program_that_came_first_shows_every_word(alice: User) -> None:
    other = await elsewhere(alice)
    async with (
        aclosing(turn_frames(other.conversation_id, other.turn_id)) as program,
        connected(alice) as page,
    ):
        await anext(program)
        await page.snapshot(other.place)
        other.say("three ")
        assert await shown(page, "three") == "<p>One two three</p>"
