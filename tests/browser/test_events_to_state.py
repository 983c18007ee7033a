"""The page's reducer, fed with events: what the reader sees follows from this alone."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.recorded import (
    CONVERSATION,
    Frame,
    Recording,
    finished,
    memory_item,
    streamed,
    tool_round,
)
from tests.browser.server import Server

Reduce = Callable[..., dict[str, Any]]

SCRIPT = """async ([frames, snapshot, earlier]) => {
  const { addOptimistic, dropOptimistic, emptyState, apply } = await import("/static/js/chat/state.js");
  const { fromSnapshot, prependEarlier } = await import("/static/js/chat/snapshot.js");
  const state = snapshot ? fromSnapshot(snapshot) : emptyState();
  for (const frame of frames) {
    if (frame.type === "own") addOptimistic(state, frame);
    else if (frame.type === "refused") dropOptimistic(state, frame.clientId);
    else apply(state, frame);
  }
  if (earlier.length > 0) prependEarlier(state, earlier);
  for (const turn of state.turns) for (const part of turn.segments) if (part.html) part.html = [...part.html];
  return state;
}"""


@pytest.fixture
def reduce(open_page: Callable[..., Page], server: Server) -> Reduce:
    page = open_page(f"{server.url}/sign-in/")

    def run(
        frames: list[Frame], snapshot: Frame | None = None, earlier: Sequence[Frame] = ()
    ) -> dict[str, Any]:
        state: dict[str, Any] = page.evaluate(SCRIPT, [frames, snapshot, list(earlier)])
        return state

    return run


def test_a_turn_goes_from_queued_to_done(reduce: Reduce) -> None:
    record = Recording()
    frames = [record.queued("hello"), record.event("turn_started", "turn-1")]
    assert reduce(frames)["turns"][0]["state"] == "running"
    frames += [*streamed(record, "turn-1", [("Hi", 0, "<p>Hi</p>")]), finished(record, "turn-1", "Hi")]
    turn = reduce(frames)["turns"][0]
    assert turn["state"] == "done"
    assert turn["user"] == {"id": "message-1", "text": "hello", "at": None, "attachments": []}
    assert turn["segments"][0]["html"] == [[0, "<p>Hi</p>"]]
    assert turn["segments"][0]["tail"] == ""


def test_text_not_rendered_yet_stays_as_a_plain_tail(reduce: Reduce) -> None:
    record = Recording()
    frames = [record.queued("x"), *streamed(record, "turn-1", [("One", 0, "<p>One</p>")])]
    frames += [
        record.event("text_delta", "turn-1", text=" two"),
        record.event("text_delta", "turn-1", text=" three"),
    ]
    segment = reduce(frames)["turns"][0]["segments"][0]
    assert segment["tail"] == " two three"
    assert segment["text"] == "One two three"


def test_the_space_between_rendered_text_and_the_next_word_stays(reduce: Reduce) -> None:
    record = Recording()
    frames = [record.queued("x"), *streamed(record, "turn-1", [("Watch ", 0, "<p>Watch</p>")])]
    assert reduce(frames)["turns"][0]["segments"][0]["tail"] == " "
    frames.append(record.event("text_delta", "turn-1", text="it."))
    assert reduce(frames)["turns"][0]["segments"][0]["tail"] == " it."


def test_text_after_a_tool_call_is_a_segment_of_its_own(reduce: Reduce) -> None:
    record = Recording()
    frames = [record.queued("x"), *streamed(record, "turn-1", [("Looking.", 0, "<p>Looking.</p>")])]
    frames += tool_round(record, "turn-1", "c1", "memory_search", {"query": "food"}, "[]", ms=7)
    frames += streamed(record, "turn-1", [("Found.", 1000, "<p>Found.</p>")])
    segments = reduce(frames)["turns"][0]["segments"]
    assert [part["type"] for part in segments] == ["text", "tool", "text"]
    assert (segments[1]["state"], segments[1]["durationMs"]) == ("done", 7)
    assert segments[2]["html"] == [[1000, "<p>Found.</p>"]]


def test_the_same_events_again_change_nothing(reduce: Reduce) -> None:
    record = Recording()
    frames = [
        record.queued("x"),
        *streamed(record, "turn-1", [("One", 0, "<p>One</p>")]),
        finished(record, "turn-1", "One"),
    ]
    once, twice = reduce(frames), reduce(frames + frames)
    assert once == twice


def test_gaps_in_the_numbers_are_normal(reduce: Reduce) -> None:
    record = Recording()
    first = record.queued("x")
    record.seq += 500
    state = reduce([first, record.event("text_delta", "turn-1", text="late")])
    assert state["turns"][0]["segments"][0]["text"] == "late"
    assert state["seq"] == record.seq


def test_events_of_another_conversation_are_left_alone(reduce: Reduce) -> None:
    record, other = Recording(), Recording("0199a000-0000-7000-8000-000000000002")
    other.seq = 50
    frames = [record.queued("x"), other.event("text_delta", "turn-1", text="not here")]
    assert reduce(frames)["turns"][0]["segments"] == []


def test_a_waiting_turn_shows_what_it_waits_for_and_goes_on(reduce: Reduce) -> None:
    record = Recording()
    ask = record.event("question", "turn-1", id="c1", text="Which one?")
    record.seq = 0
    frames = [record.queued("x"), record.event("turn_started", "turn-1")]
    frames += [
        record.event("question", "turn-1", id="c1", text="Which one?"),
        finished(record, "turn-1", "", pending_question={"id": "c1", "text": "Which one?"}),
    ]
    waiting = reduce(frames)["turns"][0]
    assert waiting["state"] == "waiting"
    assert (waiting["segments"][0]["asks"], waiting["segments"][0]["question"]) == (
        "question",
        ask["text"],
    )
    frames += [
        record.event("turn_resumed", "turn-1"),
        record.event(
            "tool_result",
            "turn-1",
            id="c1",
            name="ask_user",
            result="the red one",
            is_error=False,
            duration_ms=900,
        ),
    ]
    resumed = reduce(frames)["turns"][0]
    assert (resumed["state"], resumed["segments"][0]["state"], resumed["segments"][0]["asks"]) == (
        "running",
        "done",
        None,
    )


def test_stopping_closes_calls_that_were_open(reduce: Reduce) -> None:
    record = Recording()
    frames = [
        record.queued("x"),
        record.event("tool_start", "turn-1", id="c1", name="open_page", input={}),
        record.event("turn_stopped", "turn-1"),
    ]
    turn = reduce(frames)["turns"][0]
    assert (turn["state"], turn["segments"][0]["state"]) == ("stopped", "error")


def test_an_edited_message_takes_the_place_of_what_it_replaces(reduce: Reduce) -> None:
    record = Recording()
    frames = [
        record.queued("first"),
        finished(record, "turn-1", ""),
        record.queued("second"),
        finished(record, "turn-2", ""),
    ]
    frames.append(record.queued("second, better", replaces=("message-2", "answer-turn-2")))
    assert [turn["user"]["text"] for turn in reduce(frames)["turns"]] == ["first", "second, better"]


def test_an_edit_in_another_tab_takes_away_what_izzy_said_by_itself_after_it(reduce: Reduce) -> None:
    record = Recording()
    frames = [record.queued("build it"), finished(record, "turn-1", "")]
    by_izzy: Frame = {"client_id": "", "message": None, "title": "Food", "replaces": []}
    frames += [record.event("turn_queued", "news", **by_izzy), finished(record, "news", "It is ready.")]
    left = reduce([*frames, record.queued("build another", replaces=("message-1", "answer-news"))])
    assert [turn["id"] for turn in left["turns"]] == ["turn-2"]


def test_an_edit_that_is_refused_gives_back_what_it_was_to_replace_before_what_came_meanwhile(
    reduce: Reduce,
) -> None:
    record = Recording()
    frames = [record.queued("one"), finished(record, "turn-1", "")]
    frames.append({"type": "own", "clientId": "mine", "text": "one, better", "replaces": "message-1"})
    frames.append(record.queued("from another tab", client_id="theirs"))
    frames.append({"type": "refused", "clientId": "mine"})
    assert [turn["id"] for turn in reduce(frames)["turns"]] == ["turn-1", "turn-2"]


def test_a_turn_that_the_page_had_the_end_of_becomes_whole(reduce: Reduce) -> None:
    def message(name: str, turn: str, role: str, **more: Any) -> Frame:
        words = {"text": name, "html": name, "state": "failed", "created_at": "2026-11-20T10:00:00Z"}
        return {"id": name, "turn": turn, "role": role, "tool_calls": [], **words, **more}

    build = {"id": "c1", "name": "request_capability", "state": "done", "result": '{"build_id": "b1"}'}
    again = [
        {"turn": turn, "build_id": f"{turn}-{number}", "replaces": f"{turn}-1" if number == 2 else None}
        for turn in ("old", "cut")
        for number in (1, 2)
    ]
    ends = {"conversation": CONVERSATION, "seq": 3, "turn": None, "queued": []}
    ends |= {"messages": [message("late", "cut", "assistant")], "builds": again}
    earlier = [
        message("asked", "old", "user"),
        message("done", "old", "assistant"),
        message("said", "cut", "user", versions=["old", "cut"], error={"code": "x", "message": "Down."}),
        message("early", "cut", "assistant", tool_calls=[build | {"result": '{"build_id": "cut-2"}'}]),
    ]
    old, cut = reduce([], ends, earlier)["turns"]
    assert (cut["versions"], cut["error"]["message"]) == (["old", "cut"], "Down.")
    assert cut["messages"] == ["early", "late"]
    shown = [(part["type"], part.get("id") or part["text"]) for part in cut["segments"]]
    assert shown == [("text", "early"), ("tool", "c1"), ("build", "cut-2"), ("text", "late")]
    assert [part["id"] for part in old["segments"] if part["type"] == "build"] == ["old-2"]


def test_a_message_from_another_tab_appears(reduce: Reduce) -> None:
    record = Recording()
    state = reduce([record.queued("typed elsewhere", client_id="other-tab")])
    assert state["turns"][0]["user"]["text"] == "typed elsewhere"


def test_a_failed_turn_says_why(reduce: Reduce) -> None:
    record = Recording()
    frames = [
        record.queued("x"),
        record.event("error", "turn-1", code="overloaded", message="The model is busy.", messages=[]),
    ]
    turn = reduce(frames)["turns"][0]
    assert (turn["state"], turn["error"]) == (
        "failed",
        {"code": "overloaded", "message": "The model is busy."},
    )


def test_a_snapshot_gives_the_same_picture_as_its_events(reduce: Reduce) -> None:
    record = Recording()
    frames = [
        record.queued("what about food?"),
        record.event(
            "memory_context", "turn-1", items=[memory_item("Allergic to shellfish.")], tokens=9
        ),
    ]
    frames += tool_round(record, "turn-1", "c1", "memory_search", {"query": "food"}, "[]", ms=7)
    frames += [
        *streamed(record, "turn-1", [("No shellfish.", 0, "<p>No shellfish.</p>")]),
        finished(record, "turn-1", "No shellfish."),
    ]
    live = reduce(frames)["turns"][0]
    call: Frame = {
        "id": "c1",
        "name": "memory_search",
        "input": {"query": "food"},
        "result": "[]",
        "is_error": False,
        "state": "done",
        "duration_ms": 7,
    }
    user: Frame = {
        "id": "message-1",
        "role": "user",
        "turn": "turn-1",
        "state": "done",
        "text": "what about food?",
        "html": "",
        "created_at": None,
        "tool_calls": [],
        "memories": [memory_item("Allergic to shellfish.")],
        "error": None,
    }
    looked = {
        "id": "a1",
        "role": "assistant",
        "turn": "turn-1",
        "state": "done",
        "text": "",
        "html": "",
        "created_at": None,
        "tool_calls": [call],
        "memories": [],
    }
    said = looked | {
        "id": "a2",
        "text": "No shellfish.",
        "html": "<p>No shellfish.</p>",
        "tool_calls": [],
    }
    snapshot = {
        "type": "snapshot",
        "conversation": CONVERSATION,
        "seq": record.seq,
        "title": "Food",
        "use_memory": True,
        "messages": [user, looked, said],
        "turn": None,
        "queued": [],
    }
    stored = reduce([], snapshot)["turns"][0]
    assert stored["state"] == live["state"] == "done"
    assert stored["memories"] == live["memories"]
    assert (
        [part["type"] for part in stored["segments"]]
        == [part["type"] for part in live["segments"]]
        == ["tool", "text"]
    )
    assert [part["state"] for part in stored["segments"] if part["type"] == "tool"] == ["done"]


def test_a_snapshot_in_the_middle_of_an_answer_goes_on_with_the_live_events(reduce: Reduce) -> None:
    record = Recording()
    record.seq = 40
    user: Frame = {
        "id": "message-1",
        "role": "user",
        "turn": "turn-1",
        "state": "running",
        "text": "go",
        "html": "",
        "created_at": None,
        "tool_calls": [],
        "memories": [],
        "error": None,
    }
    live = {
        "id": "turn-1",
        "state": "running",
        "text": "Half an",
        "html": "<p>Half an</p>",
        "blocks": [{"block": 0, "html": "<p>Half an</p>"}],
        "waiting_for": [],
        "tool_calls": [],
        "memories": [],
    }
    snapshot = {
        "type": "snapshot",
        "conversation": CONVERSATION,
        "seq": 40,
        "title": "",
        "use_memory": True,
        "messages": [user],
        "turn": live,
        "queued": [{"turn": "turn-2", "message": "message-2", "text": "and then?"}],
    }
    frames = [
        record.event("text_delta", "turn-1", text=" answer"),
        record.html("turn-1", 0, "<p>Half an answer</p>"),
    ]
    turns = reduce(frames, snapshot)["turns"]
    assert turns[0]["segments"][0]["html"] == [[0, "<p>Half an answer</p>"]]
    assert [turn["state"] for turn in turns] == ["running", "queued"]


def test_a_snapshot_asks_for_what_is_undecided_alone(reduce: Reduce) -> None:
    call: Frame = {
        "name": "ask_user",
        "input": {},
        "result": "",
        "is_error": False,
        "state": "waiting",
        "duration_ms": 0,
    }
    asked = {
        "id": "turn-1",
        "state": "waiting",
        "text": "",
        "blocks": [],
        "waiting_for": [{"type": "question", "id": "c2", "text": "How many?"}],
        "tool_calls": [call | {"id": "c1"}, call | {"id": "c2"}],
        "memories": [],
    }
    snapshot = {
        "type": "snapshot",
        "conversation": CONVERSATION,
        "seq": 3,
        "title": "",
        "use_memory": True,
        "messages": [],
        "turn": asked,
        "queued": [],
    }
    calls = reduce([], snapshot)["turns"][0]["segments"]
    assert [(part["state"], part["asks"]) for part in calls] == [("open", None), ("asking", "question")]


def test_an_answer_that_a_stopped_server_cut_off_looks_alike_while_one_watches_and_later(
    reduce: Reduce,
) -> None:
    record = Recording()
    events = [
        record.queued("Go on"),
        record.event(
            "error", "turn-1", code="interrupted", message="Izzy was interrupted.", messages=[]
        ),
    ]
    assert reduce(events)["turns"][0]["state"] == "interrupted"


def test_stored_results_of_calls_open_when_the_server_died_do_not_look_running(reduce: Reduce) -> None:
    call: Frame = {
        "id": "c1",
        "name": "open_page",
        "input": {},
        "result": None,
        "is_error": None,
        "state": "unknown",
        "duration_ms": None,
    }
    message = {
        "id": "a1",
        "role": "assistant",
        "turn": "turn-1",
        "state": "interrupted",
        "text": "",
        "html": "",
        "created_at": None,
        "tool_calls": [call],
        "memories": [],
    }
    snapshot = {
        "type": "snapshot",
        "conversation": CONVERSATION,
        "seq": 3,
        "title": "",
        "use_memory": True,
        "messages": [message],
        "turn": None,
        "queued": [],
    }
    assert reduce([], snapshot)["turns"][0]["segments"][0]["state"] == "error"


def test_a_new_message_ends_the_turn_that_waited(reduce: Reduce) -> None:
    record = Recording()
    frames = [record.queued("x"), record.event("question", "turn-1", id="c1", text="Which?")]
    frames += [
        finished(record, "turn-1", "", pending_question={"id": "c1", "text": "Which?"}),
        record.queued("something else"),
    ]
    turns = reduce(frames)["turns"]
    assert [turn["state"] for turn in turns] == ["done", "queued"]
    assert turns[0]["segments"][0]["asks"] is None
