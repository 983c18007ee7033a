"""A strict endpoint takes an old conversation with anything in it."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.agent.model.messages import valid_messages
from tests.peers.anthropic_strict import problem_of

WORDS = st.sampled_from(["", " ", "\n", "hello", "hello "])
IDS = st.sampled_from(["", "a", "b", "toolu 1", "é" * 200])
NAMES = st.sampled_from(["", "think", "x" * 300, "a b", "é"])
TEXT = st.builds(lambda text: {"type": "text", "text": text}, WORDS)
CALL = st.builds(
    lambda call_id, name, value: {"type": "tool_use", "id": call_id, "name": name, "input": value},
    IDS,
    NAMES,
    st.sampled_from([{}, {"a": 1}, [], "text", None]),
)
RESULT = st.builds(
    lambda call_id, text: {"type": "tool_result", "tool_use_id": call_id, "content": text}, IDS, WORDS
)


def message(role: str, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": role, "content": blocks}


HISTORY = st.lists(
    st.one_of(
        st.lists(st.one_of(TEXT, RESULT), max_size=4).map(lambda blocks: message("user", blocks)),
        st.lists(st.one_of(TEXT, CALL), max_size=4).map(lambda blocks: message("assistant", blocks)),
    ),
    max_size=8,
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(HISTORY)
def test_every_history_becomes_one_that_is_taken(history: list[dict[str, Any]]) -> None:
    first, last = (
        message("user", [{"type": "text", "text": "Hi"}]),
        message("user", [{"type": "text", "text": "And?"}]),
    )
    whole = [first, *history, last]
    before = json.dumps(whole)
    sent = valid_messages(whole)
    assert problem_of({"messages": sent}) == ""
    assert json.dumps(whole) == before
    assert valid_messages(sent) == sent


def test_a_valid_one_stays_as_it_is() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "think", "input": {"thought": "hm"}}
    history = [
        message("user", [{"type": "text", "text": "Hi"}]),
        message("assistant", [{"type": "text", "text": "Well"}, call]),
        message("user", [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "Noted."}]),
        message("assistant", [{"type": "text", "text": "Done."}]),
        message("user", [{"type": "text", "text": "Thanks"}]),
    ]
    assert valid_messages(history) == history


def test_results_find_their_calls_again() -> None:
    call = {"type": "tool_use", "id": "call:0", "name": "", "input": []}
    result = {
        "type": "tool_result",
        "tool_use_id": "call:0",
        "content": "No such tool.",
        "is_error": True,
    }
    turn = [message("assistant", [call]), message("user", [result])]
    sent = valid_messages([message("user", [{"type": "text", "text": "Hi"}]), *turn, *turn])
    calls = [each["content"][0] for each in sent if each["role"] == "assistant"]
    results = [each["content"][0] for each in sent[1:] if each["role"] == "user"]
    assert [each["tool_use_id"] for each in results] == [each["id"] for each in calls]
    assert {each["content"] for each in results} == {"No such tool."}
    assert {each["name"] for each in calls} == {"unnamed"}
