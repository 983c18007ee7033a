"""Deep memory on its tool card: three steps while it runs, and what was found afterwards."""

import json
from collections.abc import Callable

from playwright.sync_api import Page, StorageState, expect

from tests.browser.chat import Chat
from tests.browser.recorded import Frame, Recording
from tests.browser.server import Server
from tests.browser.test_recorded_events import Stage, stage  # noqa: F401  a fixture

QUERY = "What do I like to eat?"
SEARCHES = [["food", "favourite"], ["restaurant", "cuisine"], ["diet", "allergy"]]
MEMORIES = [
    {"note_id": "note-1", "text": "Allergic to shellfish.", "tags": ["allergy"]},
    {"note_id": "note-2", "text": "Loves <b>Thai</b> food.", "tags": ["cuisine"]},
]


def progress(record: Recording, **data: object) -> Frame:
    return record.event("tool_progress", "turn-1", id="c1", name="deep_memory", data=data)


def begin(stage: Stage) -> Recording:  # noqa: F811
    record = Recording()
    stage.begin(record)
    stage.play(record.event("tool_start", "turn-1", id="c1", name="deep_memory", input={"query": QUERY}))
    return record


def end(record: Recording, result: object, *, is_error: bool = False) -> Frame:
    said = result if isinstance(result, str) else json.dumps(result)
    return record.event(
        "tool_result",
        "turn-1",
        id="c1",
        name="deep_memory",
        result=said,
        is_error=is_error,
        duration_ms=900,
    )


def test_its_steps_show_one_after_the_other(stage: Stage) -> None:  # noqa: F811
    record = begin(stage)
    shown = stage.chat.last.locator(".tool-progress")
    expect(stage.chat.last.locator(".tool-title")).to_have_text("Searching deep memory")
    stage.play(progress(record, status="expanding", query=QUERY))
    expect(shown.locator(".deep-line")).to_have_text(
        [f"Thinking of other words for “\u2068{QUERY}\u2069”"]
    )
    stage.play(progress(record, status="searching", searches=SEARCHES))
    expect(shown.locator(".deep-line").last).to_have_text("Searching from 3 angles")
    expect(shown.locator(".deep-chips li")).to_have_text(
        ["food · favourite", "restaurant · cuisine", "diet · allergy"]
    )
    stage.play(progress(record, status="found", count=2, memories=MEMORIES))
    expect(shown.locator(".deep-line").last).to_have_text("Found 2 memories")


def test_afterwards_the_card_tells_what_was_found(stage: Stage) -> None:  # noqa: F811
    record = begin(stage)
    stage.play(end(record, {"query": QUERY, "searches": SEARCHES, "count": 2, "memories": MEMORIES}))
    card = stage.chat.tool("Searched deep memory")
    expect(stage.chat.last.locator(".tool-progress")).to_be_hidden()
    expect(card.locator(".deep-line").last).to_have_text("Found 2 memories")
    expect(card.locator(".deep-found li")).to_have_text(
        ["Allergic to shellfish.", "Loves <b>Thai</b> food."]
    )


def test_nothing_found_and_odd_events_leave_the_card_whole(stage: Stage) -> None:  # noqa: F811
    record = begin(stage)
    stage.play(progress(record, status="searching", searches="x"), progress(record, status="other"))
    stage.play(progress(record, status="found", count=0, memories=None))
    expect(stage.chat.last.locator(".deep-line")).to_have_text(
        ["Searching from 0 angles", "Found nothing"]
    )
    stage.play(end(record, "Searching the memory took too long.", is_error=True))
    expect(stage.chat.last.locator(".tool-title")).to_have_text("Searching deep memory: failed")


def test_the_offline_model_thinks_hard_on_the_real_page(
    server: Server, owner: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=owner)
    chat = Chat(page)
    chat.say("remember that shellfish sends me to hospital")
    chat.say("think hard about what I like to eat")
    assert chat.tools() == ["Searched deep memory"]
    assert "ends you to hospital" in chat.answer()
    expect(chat.tool("Searched deep memory").locator(".deep-line")).to_have_count(3)
    page.reload()
    expect(chat.tool("Searched deep memory").locator(".deep-found li")).not_to_have_count(0)
