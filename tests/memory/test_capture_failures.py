"""Nothing is lost by odd answers and failing servers, and the reason is kept."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.core.db.pool import in_db
from apps.memory.capture import leases
from apps.memory.capture.windows import windows_retry
from apps.memory.models import Memory
from tests.memory.capturing import (
    LINZ,
    YES,
    add,
    captured,
    item,
    items,
    notes,
    read,
    said,
    status,
    windows,
)
from tests.peers.anthropic_server import AnthropicServer, Reply, failure, reply, tool
from tests.peers.capture_model import CaptureModel

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_failing_window_is_tried_again_later_and_given_up_in_the_end(
    alice: User, peer: AnthropicServer
) -> None:
    await in_db(add, alice, [said("I live in Linz.")])
    peer.fallback = reply("no", stop_reason="refusal")
    waits = []
    for _ in range(leases.MAX_ATTEMPTS):
        await read(alice, any_time=True)
        (window,) = await windows(alice)
        waits.append(window.due_at - timezone.now())
    assert waits[:4] == sorted(waits[:4])
    assert (window.state, window.error_code) == ("gave_up", "refusal")
    assert window.error == "The model declined to read this passage."
    assert "1 part of your conversations could not be read" in (await status(alice)).given_up_sentence
    peer.fallback = CaptureModel(LINZ)
    assert (await read(alice, any_time=True)).windows == 0
    assert await in_db(lambda: windows_retry(user_id=alice.pk)) == 1
    assert (await read(alice)).added == 1
    assert await notes(alice) == ["The user lives in Linz."]


async def test_a_server_at_fault_never_makes_a_window_be_given_up(
    alice: User, peer: AnthropicServer
) -> None:
    await in_db(add, alice, [said("I live in Linz.")])
    peer.fallback = failure(401, "authentication_error")
    for _ in range(leases.MAX_ATTEMPTS + 2):
        tally = await read(alice, any_time=True)
        assert tally.server_down_for
    (window,) = await windows(alice)
    assert (window.state, window.attempts, window.delays) == ("waiting", 0, 7)
    assert window.due_at - timezone.now() > timedelta(minutes=20)
    now = await status(alice)
    assert (now.reason, now.retrying) == ("retrying", 1)
    assert "API key" in now.waiting_sentence


async def test_one_failure_of_the_server_ends_the_round(alice: User, peer: AnthropicServer) -> None:
    for _ in range(5):
        await in_db(add, alice, [said("I live in Linz.")])
    peer.fallback = failure(401, "authentication_error")
    assert (await read(alice)).windows == 1
    assert len(peer.messages) == 1


async def test_the_gate_is_not_asked_twice(alice: User, peer: AnthropicServer) -> None:
    await in_db(add, alice, [said("I live in Linz.")])
    peer.add(reply(tool("judge", YES)), reply("Sorry, I cannot."))
    await read(alice)
    peer.add(items(item("The user lives in Linz.")))
    assert (await read(alice, any_time=True)).added == 1
    assert [request["tools"][0]["name"] for request in peer.messages] == [
        "judge",
        "save_items",
        "save_items",
    ]


async def test_one_bad_window_does_not_hold_up_the_others(
    alice: User, peer: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = CaptureModel(LINZ)
    peer.fallback = lambda request: (
        reply("?", stop_reason="refusal") if "poison" in json.dumps(request) else model(request)
    )
    await in_db(add, alice, [said("poison")])
    await in_db(add, alice, [said("I live in Linz.")])
    tally = await read(alice)
    assert (tally.failed, tally.added) == (1, 1)


@pytest.mark.parametrize(
    ("answer", "passes"),
    [
        (reply(tool("judge", {"worth_remembering": "yes", "reason": "x"})), True),
        (reply(tool("judge", {"worth_remembering": "No"})), False),
        (reply('{"worth_remembering": false, "reason": "chatter"}'), False),
        (reply("Yes, it has a fact."), True),
        (reply("no."), False),
        (reply("Hm, hard to say."), True),
        (reply(tool("judge", {"other": 1})), True),
        (reply(tool("judge", raw='{"worth_remembering": fal'), stop_reason="max_tokens"), True),
        (reply(tool("other", {"worth_remembering": False})), True),
        (reply(tool("judge", {"worth_remembering": True, "reason": "half an emoji \ud83d"})), True),
    ],
)
async def test_a_gate_that_answers_oddly_is_understood_or_passes(
    alice: User, peer: AnthropicServer, answer: Reply, passes: bool
) -> None:
    peer.add(answer, items())
    tally = await captured(alice, said("I live in Linz."))
    assert (tally.passed, tally.idle) == ((1, 0) if passes else (0, 1))
    (window,) = await windows(alice)
    assert window.state == "done"


@pytest.mark.parametrize(
    ("answer", "saved"),
    [
        (items(item("The user lives in Linz.")), 1),
        (reply('Sure! [{"content": "The user lives in Linz.", "evidence": [1]}] Done.'), 1),
        (reply('{"items": [{"content": "The user lives in Linz."}]}'), 1),
        (reply(tool("save_items", item("The user lives in Linz."))), 1),
        (reply(tool("save_items", {"items": json.dumps([item("The user lives in Linz.")])})), 1),
        (reply(tool("save_items", raw='{"items": [' + json.dumps(item("The user lives in Linz.")) + ', {"cont'), stop_reason="max_tokens"), 1),
        (items("text", 7, None, {}, [], item("The user lives in Linz.")), 1),
        (items(item(""), item(None), item(["a"]), item("x" * 1001), item(["x"]), item("The user lives in Linz.")), 1),
        (items(item("The user lives in Linz.", kind="nonsense", importance="very", tier=5, tags="a, b", evidence="1")), 1),
        (items(item("The user lives in Linz.", importance=99, tags=[1, "x" * 90, "home"], evidence=[0, 7, -1, "x", True])), 1),
        (items(item("The user lives in Linz.", evidence=["²", "[1]", 1.5])), 1),
        (items(item("The user lives in Linz.", valid_from="whenever", valid_to=12, sensitive="no")), 1),
        (items(item("The user lives in Linz.", action="supersede", target="note-123"), item("The user plays chess.", action="destroy")), 1),
        (items(*(item(f"The user owns item number {n}.") for n in range(50))), 10),
        (items(), 0),
    ],
)  # fmt: skip
async def test_of_odd_items_the_good_ones_are_kept(
    alice: User, peer: AnthropicServer, answer: Reply, saved: int
) -> None:
    peer.add(reply(tool("judge", YES)), answer)
    tally = await captured(alice, said("I live in Linz."))
    assert (tally.added, tally.failed) == (saved, 0)
    for row in await in_db(lambda: list(Memory.objects.for_user(alice))):
        assert 1 <= row.importance <= 5
        assert row.kind in {"fact", "general"}
    (window,) = await windows(alice)
    assert window.state == "done"
    assert all(reason["code"] for reason in window.dropped)
    assert all("Linz" not in json.dumps(reason) for reason in window.dropped)


@pytest.mark.parametrize(
    "answer",
    [
        reply("I cannot do that."),
        reply(tool("save_items", {"items": 5})),
        reply(tool("save_items", {})),
        items("text", 7, item(""), item("x" * 1001)),
        items(
            item(
                "The user lives in Linz.",
                action="update",
                target="note-00000000-0000-4000-8000-000000000000",
            )
        ),
    ],
)
async def test_an_extractor_that_hands_over_nothing_usable_is_tried_again(
    alice: User, peer: AnthropicServer, answer: Reply
) -> None:
    peer.add(reply(tool("judge", YES)), answer)
    tally = await captured(alice, said("I live in Linz."))
    assert tally.failed == 1
    (window,) = await windows(alice)
    assert (window.state, window.error_code) == ("waiting", "bad_items")
