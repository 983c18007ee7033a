"""Approvals, questions, and turns that go on in another process."""

import asyncio
from typing import Any

import pytest

from apps.accounts.models import User
from apps.agent import services
from apps.agent.events import ApprovalRequested, Event, Question, Response, ToolResult, ToolStart, TurnResumed
from apps.agent.loop import TurnTaken
from apps.agent.models import ToolCall
from apps.agent.selectors import toolcalls_undecided
from apps.agent.tools.base import Tier, Tool, ToolContext
from apps.core.database import in_db
from apps.core.errors import Conflict, InvalidInput, NotFound, TooLarge
from tests.agent.turns import Turn, a_tool, answering
from tests.peers.anthropic_server import AnthropicServer, reply, tool

pytestmark = pytest.mark.django_db(transaction=True)


class Shredder:
    """A side-effecting tool that remembers what it was told to shred."""

    def __init__(self) -> None:
        self.shredded: list[str] = []

    async def __call__(self, context: ToolContext, args: dict[str, Any]) -> str:
        self.shredded.append(args["what"])
        return f"shredded {args['what']}"


@pytest.fixture
def shredder() -> Shredder:
    return Shredder()


def last_response(events: list[Event]) -> Response:
    assert isinstance(events[-1], Response)
    return events[-1]


def asking(shredder: Shredder) -> Any:
    return a_tool("shred", shredder, Tier.SIDE_EFFECTING, approval="ask")


async def decide(user: User, call_id: str, approved: bool) -> ToolCall:
    return await in_db(services.toolcall_decide, user_id=user.pk, tool_call_id=call_id, approved=approved)


async def answer(user: User, call_id: str, text: str) -> ToolCall:
    return await in_db(services.toolcall_answer, user_id=user.pk, tool_call_id=call_id, text=text)


async def row_of(user: User, **which: Any) -> ToolCall:
    return await asyncio.to_thread(lambda: ToolCall.objects.for_user(user).get(**which))


async def test_a_call_that_asks_first_waits_and_runs_when_approved(
    alice: User, peer: AnthropicServer, shredder: Shredder
) -> None:
    peer.add(reply("I will.", tool("shred", {"what": "letter"})), reply("It is gone."))
    turn = Turn(alice, [asking(shredder)])
    response = last_response(await turn.run())
    (asked,) = turn.of(ApprovalRequested)
    assert response.pending_approval == {"id": asked.id, "name": "shred", "input": {"what": "letter"}}
    assert response.text == "I will."
    assert shredder.shredded == []
    assert turn.store.roles == ["assistant"]

    await decide(alice, asked.id, True)
    events = await turn.fresh_process().run()
    assert [type(event) for event in events[:3]] == [TurnResumed, ToolStart, ToolResult]
    assert last_response(events).text == "It is gone."
    assert shredder.shredded == ["letter"]


async def test_a_declined_call_is_not_run_and_the_model_is_told(
    alice: User, peer: AnthropicServer, shredder: Shredder
) -> None:
    peer.add(reply(tool("shred", {"what": "letter"})), reply("As you wish."))
    turn = Turn(alice, [asking(shredder)])
    await turn.run()
    await decide(alice, turn.of(ApprovalRequested)[0].id, False)
    resumed = turn.fresh_process()
    await resumed.run()
    assert shredder.shredded == []
    (result,) = resumed.store.results
    assert result["is_error"] is True
    assert "declined" in result["content"]


async def test_never_is_an_error_and_allow_needs_no_card(
    alice: User, peer: AnthropicServer, shredder: Shredder
) -> None:
    peer.add(
        reply(tool("shred", {"what": "a"})),
        reply("Not allowed."),
        reply(tool("shred", {"what": "b"})),
        reply("Done."),
    )
    never = Turn(alice, [asking(shredder)], approvals={"shred": "never"})
    await never.run()
    assert "never allow shred" in never.store.results[0]["content"]
    allowed = Turn(alice, [asking(shredder)], approvals={"shred": "allow"})
    await allowed.run()
    assert shredder.shredded == ["b"]


async def test_the_users_own_preference_is_read(
    alice: User, peer: AnthropicServer, shredder: Shredder
) -> None:
    def prefer() -> None:
        alice.preferences.tool_approval = {"shred": "ask"}
        alice.preferences.save()

    await asyncio.to_thread(prefer)
    peer.add(reply(tool("shred", {"what": "a"})))
    turn = Turn(alice, [a_tool("shred", shredder, Tier.SIDE_EFFECTING)])
    assert last_response(await turn.run()).waits


async def test_a_wrong_input_is_not_put_before_the_user(
    alice: User, peer: AnthropicServer, shredder: Shredder
) -> None:
    schema = {"type": "object", "required": ["what"]}
    peer.add(reply(tool("shred", {})), reply("My mistake."))
    turn = Turn(alice, [a_tool("shred", shredder, Tier.SIDE_EFFECTING, approval="ask", input_schema=schema)])
    assert not last_response(await turn.run()).waits


async def test_what_comes_after_a_waiting_call_is_held_back_in_order(
    alice: User, peer: AnthropicServer, shredder: Shredder
) -> None:
    order: list[str] = []

    async def look(context: ToolContext, args: dict[str, Any]) -> str:
        order.append(args["at"])
        return "seen"

    calls = [
        tool("look", {"at": "1"}),
        tool("shred", {"what": "x"}),
        tool("look", {"at": "2"}),
        tool("save", {}),
    ]
    peer.add(reply(*calls), reply("All done."))
    tools = [a_tool("look", look), asking(shredder), a_tool("save", answering("saved"), Tier.SIDE_EFFECTING)]
    turn = Turn(alice, tools)
    await turn.run()
    assert order == ["1"]
    await decide(alice, turn.of(ApprovalRequested)[0].id, True)
    resumed = turn.fresh_process()
    await resumed.run()
    assert order == ["1", "2"], "what has run is not run again"
    assert [block["content"] for block in resumed.store.results] == ["seen", "shredded x", "seen", "saved"]


async def test_two_cards_wait_for_both_answers(
    alice: User, peer: AnthropicServer, shredder: Shredder
) -> None:
    peer.add(reply(tool("shred", {"what": "a"}), tool("shred", {"what": "b"})), reply("Done."))
    turn = Turn(alice, [asking(shredder)])
    await turn.run()
    first, second = turn.of(ApprovalRequested)
    await decide(alice, first.id, True)
    waiting = await in_db(toolcalls_undecided, user_id=alice.pk, turn_id=turn.turn_id)
    assert [str(row.id) for row in waiting] == [second.id]
    early = turn.fresh_process()
    assert last_response(await early.run()).pending_approval is not None
    assert shredder.shredded == ["a"]
    await decide(alice, second.id, False)
    late = turn.fresh_process()
    assert not last_response(await late.run()).waits
    assert shredder.shredded == ["a"]


async def test_a_question_waits_for_its_answer(alice: User, peer: AnthropicServer) -> None:
    peer.add(reply(tool("ask_user", {"question": "Which one?"})), reply("The red one it is."))
    turn = Turn(alice)
    response = last_response(await turn.run())
    (asked,) = turn.of(Question)
    assert asked.text == "Which one?"
    assert response.pending_question == {"id": asked.id, "text": "Which one?"}
    await answer(alice, asked.id, "  the red one ")
    resumed = turn.fresh_process()
    assert last_response(await resumed.run()).text == "The red one it is."
    assert resumed.store.results[0]["content"] == "the red one"


async def test_only_one_answer_counts(alice: User, peer: AnthropicServer) -> None:
    peer.add(reply(tool("ask_user", {"question": "Which one?"})))
    turn = Turn(alice)
    await turn.run()
    call_id = turn.of(Question)[0].id
    await answer(alice, call_id, "this")
    with pytest.raises(Conflict):
        await answer(alice, call_id, "that")
    assert (await row_of(alice)).answer == "this"


async def test_decisions_and_answers_are_checked(alice: User, bob: User, peer: AnthropicServer) -> None:
    peer.add(reply(tool("ask_user", {"question": "Which one?"})))
    turn = Turn(alice)
    await turn.run()
    call_id = turn.of(Question)[0].id
    with pytest.raises(NotFound):
        await answer(bob, call_id, "mine")
    with pytest.raises(NotFound):
        await decide(alice, "no-such-id", True)
    with pytest.raises(Conflict):
        await decide(alice, call_id, True)
    for bad in ("", "   ", "a\x00b", "\ud800"):
        with pytest.raises(InvalidInput):
            await answer(alice, call_id, bad)
    with pytest.raises(TooLarge):
        await answer(alice, call_id, "x" * 20_001)


async def test_a_side_effecting_call_found_running_is_never_run_again(
    alice: User, peer: AnthropicServer, shredder: Shredder
) -> None:
    crashed = await interrupted_while_running(alice, peer, "shred", Tier.SIDE_EFFECTING)
    resumed = await resumed_with(crashed, a_tool("shred", shredder, Tier.SIDE_EFFECTING))
    assert shredder.shredded == []
    (result,) = resumed.store.results
    assert result["is_error"] is True
    assert "not run again" in result["content"]


async def test_a_read_only_call_found_running_runs_again(alice: User, peer: AnthropicServer) -> None:
    crashed = await interrupted_while_running(alice, peer, "look", Tier.READ_ONLY)
    resumed = await resumed_with(crashed, a_tool("look", answering("seen at last")))
    assert resumed.store.results[0]["content"] == "seen at last"


async def interrupted_while_running(user: User, peer: AnthropicServer, name: str, tier: Tier) -> Turn:
    """A turn whose process dies while the tool runs: its task is cancelled and nobody closes the row."""
    started = asyncio.Event()

    async def handler(context: ToolContext, args: dict[str, Any]) -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    peer.add(reply(tool(name, {"what": "letter"})), reply("So be it."))
    crashed = Turn(user, [a_tool(name, handler, tier)])
    task = asyncio.create_task(crashed.run())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return crashed


async def resumed_with(crashed: Turn, tool: Tool) -> Turn:
    resumed = crashed.fresh_process()
    resumed.tools = resumed.state.tools = [tool]
    await resumed.run()
    return resumed


async def test_a_crash_before_any_row_was_written_runs_the_calls_on_resuming(
    alice: User, peer: AnthropicServer, shredder: Shredder
) -> None:
    turn = Turn(alice, [a_tool("shred", shredder, Tier.SIDE_EFFECTING)])
    turn.store.messages = [("assistant", 1, [tool("shred", {"what": "letter"})], "tool_use")]
    peer.add(reply("Done."))
    resumed = turn.fresh_process()
    assert not last_response(await resumed.run()).waits
    assert shredder.shredded == ["letter"]


async def test_a_cut_call_is_not_run_on_resuming_either(
    alice: User, peer: AnthropicServer, shredder: Shredder
) -> None:
    peer.add(reply(tool("shred", raw='{"what": "let'), stop_reason="max_tokens"), reply("Sorry."))
    turn = Turn(alice, [a_tool("shred", shredder, Tier.SIDE_EFFECTING)])
    await turn.run()
    crashed = Turn(alice, turn.tools)
    crashed.store.messages = turn.store.messages[:1]
    peer.add(reply("Sorry."))
    resumed = crashed.fresh_process()
    await resumed.run()
    assert resumed.store.results[0]["is_error"] is True
    assert shredder.shredded == []


async def test_a_process_that_lost_the_turn_stops_without_running_anything(
    alice: User, peer: AnthropicServer, shredder: Shredder
) -> None:
    peer.add(reply(tool("shred", {"what": "a"})))
    turn = Turn(alice, [asking(shredder)])
    await turn.run()
    call_id = turn.of(ApprovalRequested)[0].id
    await decide(alice, call_id, True)
    loser = turn.fresh_process()

    async def beaten(context: ToolContext, args: dict[str, Any]) -> str:
        await in_db(
            services.toolcall_finish, user_id=alice.pk, id=(await row_of(alice)).pk, result="by the winner"
        )
        return "by the loser"

    loser.tools = loser.state.tools = [a_tool("shred", beaten, Tier.SIDE_EFFECTING, approval="ask")]
    with pytest.raises(TurnTaken):
        await loser.run()
    assert (await row_of(alice)).result == "by the winner"
    assert loser.store.roles == ["assistant"], "the loser stores nothing"


@pytest.mark.parametrize("reason", ["stopped", "interrupted", "failed", "superseded"])
async def test_closing_gives_every_open_call_an_error_result(
    alice: User, peer: AnthropicServer, shredder: Shredder, reason: services.Reason
) -> None:
    calls = [tool("look"), tool("shred", {"what": "x"}), tool("look")]
    peer.add(reply(*calls))
    turn = Turn(alice, [a_tool("look", answering("seen")), asking(shredder)])
    await turn.run()
    blocks = turn.store.messages[0][2]
    for _ in range(2):
        results = await in_db(
            services.toolcalls_close_open,
            turn_id=turn.turn_id,
            round=1,
            blocks=blocks,
            user_id=alice.pk,
            reason=reason,
        )
        assert [block["tool_use_id"] for block in results] == [call["id"] for call in calls]
        assert results[0]["content"] == "seen"
        assert [block.get("is_error", False) for block in results] == [False, True, True]
    with pytest.raises(Conflict):
        await decide(alice, turn.of(ApprovalRequested)[0].id, True)
    assert shredder.shredded == []


async def test_a_call_stopped_while_running_says_that_it_may_have_taken_effect(
    alice: User, peer: AnthropicServer
) -> None:
    crashed = await interrupted_while_running(alice, peer, "shred", Tier.SIDE_EFFECTING)
    (result,) = await in_db(
        services.toolcalls_close_open,
        turn_id=crashed.turn_id,
        round=1,
        blocks=crashed.store.messages[0][2],
        user_id=alice.pk,
        reason="stopped",
    )
    assert "may have taken effect" in result["content"]


async def test_closing_before_any_row_was_written_answers_from_the_blocks(alice: User) -> None:
    turn = Turn(alice)
    block = tool("look")
    (result,) = await in_db(
        services.toolcalls_close_open,
        turn_id=turn.turn_id,
        round=1,
        blocks=[{"type": "text", "text": "Let me see."}, block],
        user_id=alice.pk,
        reason="interrupted",
    )
    assert result["tool_use_id"] == block["id"]
    assert result["is_error"] is True
