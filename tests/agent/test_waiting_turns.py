"""Approvals, questions, and turns that go on in another process."""

from typing import Any

import pytest

from apps.accounts.models import User
from apps.agent.selectors import toolcalls_undecided, turn_tool_calls
from apps.agent.tools.base import Tier, ToolContext
from apps.agent.turn.events import ApprovalRequested, Question, ToolResult, ToolStart, TurnResumed
from apps.core.db.pool import in_db
from apps.core.errors import Conflict, InvalidInput, NotFound, TooLarge
from tests.agent.turns import Turn, a_tool, answering
from tests.agent.waiting import Shredder, answer, asking, decide, last_response, row_of
from tests.peers.anthropic_server import AnthropicServer, reply, tool

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_call_that_asks_first_waits_and_runs_when_approved(
    alice: User, peer: AnthropicServer, shredder: Shredder
) -> None:
    peer.add(reply("I will.", tool("shred", {"what": "letter"})), reply("It is gone."))
    turn = Turn(alice, [asking(shredder)])
    response = last_response(await turn.run())
    (asked,) = turn.of(ApprovalRequested)
    assert response.pending_approval == {
        "id": asked.id,
        "name": "shred",
        "input": {"what": "letter"},
        "always": True,
    }
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

    await in_db(prefer)
    peer.add(reply(tool("shred", {"what": "a"})))
    turn = Turn(alice, [a_tool("shred", shredder.run, Tier.SIDE_EFFECTING)])
    assert last_response(await turn.run()).waits


async def test_a_wrong_input_is_not_put_before_the_user(
    alice: User, peer: AnthropicServer, shredder: Shredder
) -> None:
    schema = {"type": "object", "required": ["what"]}
    peer.add(reply(tool("shred", {})), reply("My mistake."))
    turn = Turn(
        alice, [a_tool("shred", shredder.run, Tier.SIDE_EFFECTING, approval="ask", input_schema=schema)]
    )
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
    tools = [
        a_tool("look", look),
        asking(shredder),
        a_tool("save", answering("saved"), Tier.SIDE_EFFECTING),
    ]
    turn = Turn(alice, tools)
    await turn.run()
    assert order == ["1"]
    await decide(alice, turn.of(ApprovalRequested)[0].id, True)
    resumed = turn.fresh_process()
    await resumed.run()
    assert order == ["1", "2"], "what has run is not run again"
    ended = await in_db(turn_tool_calls, user_id=alice.pk, turn_id=turn.turn_id)
    assert [call["result"] for call in ended] == ["seen", "shredded x", "seen", "saved"]
    assert last_response(resumed.events).tool_calls == ended
    assert [block["content"] for block in resumed.store.results] == [
        "seen",
        "shredded x",
        "seen",
        "saved",
    ]


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


async def test_a_call_that_ended_before_the_question_is_named_once(
    alice: User, peer: AnthropicServer
) -> None:
    peer.add(
        reply(tool("think", {"thought": "Which?"}), tool("ask_user", {"question": "Which one?"})),
        reply("Done."),
    )
    turn = Turn(alice)
    await turn.run()
    await answer(alice, turn.of(Question)[0].id, "this")
    response = last_response(await turn.run())
    assert [call["name"] for call in response.tool_calls] == ["think", "ask_user"]
