"""Tool cards that are opened: memory files as what was done to them, calls that did not run in words for people; the
line above the turns that the model still has word for word; the log of a conversation."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, StorageState, expect

from apps.agent import services
from apps.agent.tools.results import UNTRUSTED
from tests.browser.chat import Chat
from tests.browser.conftest import PHONE
from tests.browser.recorded import CONVERSATION, Recording, tool_round
from tests.browser.server import Server
from tests.browser.test_recorded_events import Stage, stage  # noqa: F401  a fixture

FILE = "/memories/plan.txt"


def card(
    stage: Stage,  # noqa: F811
    given: dict[str, Any],
    result: str,
    *,
    name: str = "memory",
    is_error: bool = False,
) -> Locator:
    """The opened card of a call that has ended."""
    record = Recording()
    stage.begin(record)
    fields = {"id": "c1", "name": name}
    ended = {"result": result, "is_error": is_error, "duration_ms": 4}
    stage.play(
        record.event("tool_start", "turn-1", **fields, input=given),
        record.event("tool_result", "turn-1", **fields, **ended),
    )
    opened = stage.chat.last.locator(".tool")
    opened.locator("summary").click()
    return opened


def test_a_replacement_shows_what_went_and_what_came(stage: Stage) -> None:  # noqa: F811
    given = {"command": "str_replace", "path": FILE, "old_str": "one\n<b>two</b>", "new_str": "three"}
    opened = card(stage, given, "The memory file has been edited.")
    expect(opened.locator("del")).to_have_text(["one", "<b>two</b>"])
    expect(opened.locator("ins")).to_have_text(["three"])
    expect(opened.locator("dd")).to_have_text([FILE])
    expect(opened.get_by_role("link", name="Open memory files")).to_have_attribute(
        "href", "/memory/files/"
    )


def test_what_does_not_show_in_an_input_is_named(stage: Stage) -> None:  # noqa: F811
    hidden = "".join(chr(0xE0000 + ord(sign)) for sign in "the code is 1234")
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    given = {"name": f"Ada{hidden}", "to": f"{family} \u2764\ufe0f", "from": "x\u202ey"}
    opened = card(stage, given, "Sent.", name="cap_sender")
    expect(opened.locator("dd")).to_have_text(
        ["Ada⟨16 hidden characters⟩", f"{family} \u2764\ufe0f", "x⟨1 hidden character⟩y"]
    )


@pytest.mark.parametrize("name", ["__proto__", "constructor"])
def test_a_tool_that_a_model_made_up_is_shown_whatever_it_is_called(stage: Stage, name: str) -> None:  # noqa: F811
    opened = card(
        stage, {"thought": "<b>hm</b>"}, "There is no tool of that name.", name=name, is_error=True
    )
    expect(opened.locator("dd")).to_have_text(["<b>hm</b>"])


def test_so_is_a_command_that_it_made_up(stage: Stage) -> None:  # noqa: F811
    opened = card(stage, {"command": "constructor"}, "There is no such command.", is_error=True)
    expect(opened.locator(".tool-title")).to_contain_text("memory file")


def test_a_new_file_shows_its_text_and_size(stage: Stage) -> None:  # noqa: F811
    opened = card(stage, {"command": "create", "path": FILE, "file_text": "one\ntwo\n"}, "File created")
    expect(opened.locator(".tool-section-head span")).to_have_text("Written: 2 lines, 8 characters")
    expect(opened.locator("pre")).to_have_text("one\ntwo\n")


def test_a_file_that_was_read_shows_without_the_words_for_the_model(stage: Stage) -> None:  # noqa: F811
    said = f"Here's the content of {FILE} with line numbers:\n     1\tone"
    opened = card(stage, {"command": "view", "path": FILE}, said)
    expect(opened.locator("pre")).to_have_text("     1\tone")


def test_a_capability_shows_its_result_without_the_words_for_the_model(stage: Stage) -> None:  # noqa: F811
    given = {"values": [480, 600], "from": "g"}
    opened = card(stage, given, f"{UNTRUSTED}16.9 oz, 21.2 oz", name="cap_weight_converter")
    expect(opened.locator("pre")).to_have_text("16.9 oz, 21.2 oz")
    expect(opened.locator(".tool-detail")).to_have_text("480, 600, g")
    link = opened.get_by_role("link", name="Open weight_converter")
    expect(link).to_have_attribute("href", "/capabilities/weight_converter/")


def test_what_was_declined_says_so_to_people(stage: Stage) -> None:  # noqa: F811
    opened = card(stage, {"command": "delete", "path": FILE}, services.DECLINED, is_error=True)
    expect(opened.locator(".tool-title")).to_have_text("Deleting a memory file: not done")
    expect(opened.locator("pre")).to_have_text("You declined this, so it was not done.")


def test_every_sentence_for_a_call_that_did_not_run_has_words_for_people(stage: Stage) -> None:  # noqa: F811
    said = [services.DECLINED, *services.NOT_RUN.values(), *services.PERHAPS_RUN.values()]
    shown = stage.page.evaluate(
        """async (said) => {
          const url = document.querySelector("link[href*='not-run']").href;
          const { notRun } = await import(url);
          return said.map((result) => notRun({ isError: true, result }));
        }""",
        said,
    )
    assert all(shown), dict(zip(said, shown, strict=True))


def message(number: int, role: str, text: str) -> dict[str, Any]:
    return {
        "id": f"m{number}-{role}", "role": role, "text": text, "html": f"<p>{text}</p>", "turn": f"t{number}",
        "state": "done", "created_at": "2026-11-21T10:00:00Z", "tool_calls": [], "memories": [], "speaker": role,
    }  # fmt: skip


def test_a_quiet_line_stands_where_the_summary_ends(stage: Stage) -> None:  # noqa: F811
    record = Recording()
    stage.begin(record)
    messages = [
        message(number, role, f"{role} {number}") for number in (1, 2) for role in ("user", "assistant")
    ]
    summary = {
        "text": "They like <b>figs</b>.",
        "by": "extract",
        "untrusted": False,
        "messages": 2,
        "before": "t2",
    }
    frame = {
        "type": "snapshot",
        "conversation": CONVERSATION,
        "seq": 9,
        "messages": messages,
        "turn": None,
        "queued": [],
    }
    stage.play(frame | {"title": "Food", "use_memory": True, "summary": summary})
    line = stage.page.locator(".summed-up")
    expect(line).to_have_count(1)
    expect(stage.chat.turns.nth(1).locator(".summed-up > summary")).to_have_text(
        "The 2 messages above are summed up"
    )
    expect(line.locator(".summed-up-text")).to_be_hidden()
    line.locator("summary").click()
    expect(line.locator(".summed-up-text")).to_have_text("They like <b>figs</b>.")
    expect(line).to_contain_text("made without a model")


def test_a_wide_screen_names_the_open_conversation_and_leads_on_to_its_page(
    server: Server, owner: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=owner)
    chat, scroll = Chat(page), page.locator("#chat-scroll")
    expect(page.locator("#chat-title")).to_be_visible()
    top = scroll.bounding_box()
    chat.say("remember that I like quinces")
    now = scroll.bounding_box()
    assert top is not None
    assert now is not None
    assert now["y"] == top["y"]  # nothing jumps
    expect(page.locator("#chat-title")).not_to_have_text("New conversation")
    expect(page.locator("#chat-log")).to_be_visible()
    title = page.locator("#chat-title").inner_text()
    page.locator(".topbar").get_by_role("link", name="About").click()
    expect(page.get_by_role("heading", name=title)).to_be_visible()


def test_the_log_is_reached_from_the_conversation_and_read_on_a_phone(
    server: Server, owner: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=owner, **PHONE)
    chat = Chat(page)
    expect(page.locator("#chat-log")).to_be_hidden()
    chat.say("remember that I like figs")
    page.locator("#chat-log").click()
    expect(page.get_by_role("heading", name="What Izzy did")).to_be_visible()
    expect(page.locator(".decision-said")).to_have_text("remember that I like figs")
    step = page.locator(".step", has_text="Save a memory")
    step.locator("summary").click()
    expect(step.locator(".step-facts")).to_contain_text("figs")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator(".touched summary").click()
    page.locator(".touched-item a").first.click()
    expect(page.get_by_role("region", name="What it says")).to_contain_text("figs")
    page.go_back()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as JSON").click()
    assert download.value.suggested_filename.startswith("izzy-log-")


def test_what_a_search_found_is_listed_and_leads_where_it_came_from(stage: Stage) -> None:  # noqa: F811
    record = Recording()
    stage.begin(record)
    said = {
        "conversation_id": CONVERSATION,
        "title": "Boiler",
        "role": "user",
        "text": "It leaks.",
        "created_at": "",
    }
    found = json.dumps({"count": 1, "results": [said]})
    stage.play(*tool_round(record, "turn-1", "c1", "conversation_search", {"query": "boiler"}, found))
    opened = stage.chat.tool("Searched conversations")
    expect(opened.locator(".found")).to_contain_text("It leaks.")
    expect(opened.get_by_role("link", name="Boiler")).to_have_attribute("href", f"/c/{CONVERSATION}/")
    tools = json.dumps(
        {
            "count": 1,
            "capabilities": [{"name": "dice_roller", "description": "Rolls.", "status": "active"}],
        }
    )
    stage.play(*tool_round(record, "turn-1", "c2", "list_capabilities", {}, tools))
    listed = stage.chat.tool("Listed capabilities")
    expect(listed.get_by_role("link", name="dice_roller")).to_have_attribute(
        "href", "/capabilities/dice_roller/"
    )
    stage.play(
        *tool_round(record, "turn-1", "c3", "recall_memory", {"keywords": ["tea"]}, '{"memories": []}')
    )
    expect(stage.chat.tool("Recalled").locator(".tool-body")).to_contain_text("Nothing was found.")
