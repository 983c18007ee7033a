"""Turns that another process goes on with, and turns that are closed."""

import asyncio
from typing import Any

import pytest

from apps.accounts.models import User
from apps.agent import services
from apps.agent.tools.base import Tier, Tool, ToolContext
from apps.agent.tools.results import ToolOutcome
from apps.agent.turn.events import ApprovalRequested
from apps.agent.turn.loop import TurnTaken
from apps.core.db.pool import in_db
from apps.core.errors import Conflict
from tests.agent.turns import Turn, a_tool, answering
from tests.agent.waiting import Shredder, asking, decide, last_response, row_of
from tests.peers.anthropic_server import AnthropicServer, reply, tool

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_side_effecting_call_found_running_is_never_run_again(
    alice: User, peer: AnthropicServer, shredder: Shredder
) -> None:
    crashed = await interrupted_while_running(alice, peer, "shred", Tier.SIDE_EFFECTING)
    resumed = await resumed_with(crashed, a_tool("shred", shredder.run, Tier.SIDE_EFFECTING))
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
    turn = Turn(alice, [a_tool("shred", shredder.run, Tier.SIDE_EFFECTING)])
    turn.store.messages = [("assistant", 1, [tool("shred", {"what": "letter"})], "tool_use")]
    peer.add(reply("Done."))
    resumed = turn.fresh_process()
    assert not last_response(await resumed.run()).waits
    assert shredder.shredded == ["letter"]


async def test_a_cut_call_is_not_run_on_resuming_either(
    alice: User, peer: AnthropicServer, shredder: Shredder
) -> None:
    peer.add(reply(tool("shred", raw='{"what": "let'), stop_reason="max_tokens"), reply("Sorry."))
    turn = Turn(alice, [a_tool("shred", shredder.run, Tier.SIDE_EFFECTING)])
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
            services.toolcall_finish,
            user_id=alice.pk,
            id=(await row_of(alice)).pk,
            outcome=ToolOutcome("by the winner"),
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
