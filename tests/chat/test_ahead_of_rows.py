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
from apps.chat.stream.events import LoggedEvent, rows_of
from apps.chat.stream.hub import TOPIC
from apps.chat.turns.services import message_send
from apps.core.db.pool import in_db
from apps.core.db.writing import writing_for
from apps.core.jobs.bus import bus
from tests.chat.client import Frame, Socket, connected
from tests.chat.rows import conversation

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
            until = timezone.now() + timedelta(seconds=50)
            held = Conversation.objects.unscoped().filter(pk=sent.conversation_id)
            held.update(runner="another", lease_until=until, last_seq=1000)
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
