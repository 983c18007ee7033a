"""The database is away for a while, and a turn under way comes to its end all the same."""

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

import pytest
from django.db import OperationalError

from apps.accounts.models import User
from apps.agent.model import sdk
from apps.agent.model.client import modelcall_record
from apps.agent.models import ModelCall
from apps.chat.turns import actor
from apps.chat.turns.queue import work_waits
from apps.chat.turns.scheduler import scheduler
from apps.core.db import pool
from apps.core.db.pool import in_db
from tests.chat.client import connected
from tests.chat.rows import conversation, messages, said, turn
from tests.peers.anthropic_server import AnthropicServer, reply, tool
from tests.waiting import until

Refuse = Callable[[Collection[str], int], Counter[str]]


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """`refuse(names, times)`: the database is away so many times in a row where it is asked by these functions; what was refused
    is counted."""

    def planned(names: Collection[str], times: int) -> Counter[str]:
        refused, row = Counter[str](), Counter[str]()
        work = pool._with_connection

        def sometimes(function: Any) -> Any:
            name = function.func.__name__
            if name in names and row[name] < times:
                refused[name] += 1
                row[name] += 1
                raise OperationalError("server closed the connection unexpectedly")
            row[name] = 0
            return work(function)

        monkeypatch.setattr(pool, "_with_connection", sometimes)
        return refused

    return planned


async def test_an_answer_that_ends_meanwhile_is_stored_once_and_the_turn_ends_well(
    alice: User, model: AnthropicServer, refuse: Refuse
) -> None:
    model.add(reply("Let me see.", tool("think", {"thought": "hm"})), reply("It is four."))
    writes = ["modelcall_record", "log_write", "log_written"]
    place = await conversation(alice)
    async with connected(alice) as page:
        queued = await page.say("Two and two?", conversation=place)
        refused = refuse(writes, 2)
        end = await page.ended()
        await scheduler().idle()
    assert (end["type"], end["text"]) == ("response", "It is four.")
    assert (await turn(queued["turn"])).state == "done"
    kinds = [(role, kind) for role, kind, _ in await messages(place)]
    answer = ("assistant", "text")
    assert kinds == [("user", "text"), answer, ("user", "tool_results"), answer]
    assert (await messages(place))[-1][2] == said("It is four.")
    assert await in_db(lambda: ModelCall.objects.for_user(alice).count()) == 2
    assert set(refused) == set(writes)


async def test_a_call_whose_row_was_stored_as_the_connection_broke_has_one(
    alice: User, model: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken: list[object] = []

    def breaks(*given: Any, **more: Any) -> None:
        modelcall_record(*given, **more)
        if not broken:
            broken.append(given)
            raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(sdk, "modelcall_record", breaks)
    async with connected(alice) as page:
        await page.say("Hello", conversation=await conversation(alice))
        assert (await page.ended())["type"] == "response"
        await scheduler().idle()
    assert await in_db(lambda: ModelCall.objects.for_user(alice).count()) == len(broken) == 1


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The database is away the first time it is asked what a running turn is to do; each such look."""
    made: list[object] = []

    def look(conversation_id: Any, running: Any) -> bool:
        if running is not None:
            made.append(running)
            if len(made) == 1:
                raise OperationalError("server closed the connection unexpectedly")
        return work_waits(conversation_id, running)

    monkeypatch.setattr(actor, "work_waits", look)
    return made


async def test_an_answer_under_way_goes_on(
    alice: User, model: AnthropicServer, looks: list[object]
) -> None:
    held = reply("One two three", hold_after=4)
    model.add(held)
    async with connected(alice) as page:
        queued = await page.say("Count", conversation=await conversation(alice))
        await page.until("text_delta")
        scheduler().notify((await turn(queued["turn"])).conversation_id)
        await until(lambda: looks)
        held.release.set()
        assert (await page.ended())["type"] == "response"
        await scheduler().idle()
    assert page.text(queued["turn"]) == "One two three"


async def test_a_stop_that_was_asked_for_meanwhile_holds(
    alice: User, model: AnthropicServer, looks: list[object]
) -> None:
    held = reply("One two three", hold_after=4)
    model.add(held)
    place = await conversation(alice)
    async with connected(alice) as page:
        await page.say("Count", conversation=place)
        await page.until("text_delta")
        await page.send("stop", conversation=place)
        assert (await page.ended())["type"] == "turn_stopped"
        held.release.set()
        await scheduler().idle()
    assert len(looks) > 1


async def test_a_turn_that_failed_meanwhile_keeps_what_it_had_said(
    alice: User, model: AnthropicServer, refuse: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: object, **more: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(actor, "message_append", broken)
    model.add(reply("It is four."))
    place = await conversation(alice)
    async with connected(alice) as page:
        await page.say("Two and two?", conversation=place)
        refuse(["lease_held", "log_write", "log_written"], 2)
        end = await page.ended()
        await scheduler().idle()
    assert (end["type"], end["code"]) == ("error", "internal_error")
    assert (await messages(place))[-1][2] == said("It is four.")
