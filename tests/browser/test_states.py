"""The look of the chat while something is under way: cards, questions, editing, what went wrong. axe and `audit.py` look at each, in
the light, and at its contrast in the dark too."""

from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser.audit import audit, contrasts
from tests.browser.axe import violations, with_axe
from tests.browser.conftest import Watch
from tests.browser.recorded import Recording, finished, memory_item, streamed, tool_round
from tests.browser.test_attachments import picked
from tests.browser.test_recorded_events import Stage, stage  # noqa: F401  a fixture
from tests.browser.voices import ENGINES

DRAWN = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))"""
"""Until other colours are there."""


class Looker:
    """Looks at a page again and again, and keeps what it finds."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.found: list[str] = []

    def look(self, state: str) -> None:
        seen = audit(self.page) + violations(self.page, contrast=True)
        self._colours("dark")
        seen += [f"dark: {wrong}" for wrong in contrasts(self.page)]
        self._colours("light")
        self.found += [f"{state}: {wrong}" for wrong in seen]

    def _colours(self, scheme: Literal["light", "dark"]) -> None:
        self.page.emulate_media(color_scheme=scheme)
        self.page.evaluate(DRAWN)

    def open_dialog(self, name: str, opener: Any) -> None:
        """Opens a dialog, looks at it, and leaves it by Escape."""
        opener()
        dialog = self.page.locator("dialog[open], .menu:popover-open")
        expect(dialog).to_be_visible()
        self.look(name)
        self.page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()


@pytest.fixture
def looker() -> Iterator[Callable[[Page], Looker]]:
    made: list[Looker] = []

    def make(page: Page) -> Looker:
        with_axe(page.context)
        page.emulate_media(reduced_motion="reduce")  # colours are there at once
        page.reload()
        made.append(Looker(page))
        return made[-1]

    yield make
    found = [wrong for each in made for wrong in each.found]
    assert not found, "\n".join(found)


def test_states_of_the_chat(stage: Stage, looker: Callable[[Page], Looker], watch: Watch) -> None:  # noqa: F811
    watch.allowed.append("status of 400")  # the file that is refused
    page, record = stage.page, Recording()
    page.add_init_script(ENGINES)
    page.set_viewport_size({"width": 1500, "height": 900})
    page.route(
        "**/api/v1/memories/*/", lambda route: route.fulfill(json={"content": "Allergic to shellfish."})
    )
    eyes = looker(page)
    expect(stage.chat.field).to_be_focused()

    stage.begin(record, "word " * 400)
    turn = "turn-1"
    stage.play(
        record.event("memory_context", turn, items=[memory_item("Allergic to shellfish.")], tokens=9)
    )
    stage.play(
        record.event("tool_start", turn, id="c0", name="memory_search", input={"query": "prawns"})
    )
    expect(stage.chat.last.locator(".tool-status")).to_contain_text("s")
    eyes.look("a tool runs")
    found = '[{"text": "The user likes prawns."}]'
    stage.play(*tool_round(record, turn, "c0", "memory_search", {"query": "prawns"}, found))
    stage.play(
        *tool_round(
            record, turn, "c1", "open_page", {"url": "https://a.example"}, "No answer.", error=True
        )
    )
    rich = "<p>Some <code>code</code> and a <a href='https://a.example'>link</a>.</p><blockquote>Said</blockquote>"
    code = '<pre><code class="language-python">print(1)</code></pre><table><tr><th>A</th></tr><tr><td>1</td></tr></table>'
    stage.play(*streamed(record, turn, [("x", 0, rich), ("y", 1, code)]))
    for card in stage.chat.last.locator(".tool summary").all():
        card.click()
    stage.chat.last.locator(".memory-card").get_by_role("button", name="Edit this memory").click()
    expect(stage.chat.last.get_by_role("textbox", name="Memory")).to_be_visible()
    eyes.look("tools open, a memory edited")
    page.keyboard.press("Escape")

    reach = {
        "tool": "cap_weather",
        "hosts": ["api.example.org"],
        "secrets": ["KEY"],
        "capability": "x",
        "version": 2,
    }
    asked = {
        "id": "c2",
        "name": "cap_weather",
        "input": {"city": "Graz"},
        "reason": "May be behind.",
        "reach": reach,
    }
    stage.play(
        record.event("approval_requested", turn, **asked),
        finished(record, turn, "", pending_approval=asked),
    )
    expect(page.get_by_role("region", name="Izzy asks for permission")).to_be_visible()
    eyes.look("a yes is asked for")
    stage.play(
        record.event("turn_resumed", turn), record.event("question", turn, id="c3", text="Which one?")
    )
    stage.play(finished(record, turn, "", pending_question={"id": "c3", "text": "Which one?"}))
    expect(page.get_by_text("Your answer to “\u2068Which one?\u2069”")).to_be_visible()
    eyes.look("a question is open")
    failure = {"code": "unavailable", "message": "The model did not answer.", "extra": {}}
    stage.play(record.event("turn_resumed", turn), record.event("error", turn, **failure))
    expect(stage.chat.last.locator(".notice-danger")).to_be_visible()
    pick = page.locator("[data-attach-input]")
    pick.set_input_files([picked("letter.docx", b"PK\x03\x04\x00\x00")])
    pick.set_input_files([picked("notes.txt", b"Hello")])
    expect(page.locator(".attached-chip[data-state=ready]")).to_be_visible()
    stage.chat.last.locator(".user").hover()
    page.get_by_role("button", name="Dictate").click()
    expect(page.locator("[data-voice]")).to_be_visible()
    eyes.look("a failed turn, files refused and ready, dictation")
    page.keyboard.press("Escape")
    eyes.open_dialog("keys", lambda: page.get_by_role("button", name="Shortcuts").click())
    stage.sockets[-1].close()
    page.evaluate(
        "for (const banner of document.querySelectorAll('.banners .banner')) banner.hidden = false"
    )
    eyes.look("every banner")
