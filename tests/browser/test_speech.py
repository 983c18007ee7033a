"""Reading aloud and dictation. The browser's engines are played by stand-ins that note what they are asked for: a headless
browser has neither a voice nor a microphone."""

from collections.abc import Callable

from playwright.sync_api import Page, StorageState, expect

from tests.browser.chat import Chat
from tests.browser.server import Server

ENGINES = """
window.spoken = [];
window.silenced = 0;
window.SpeechSynthesisUtterance = class { constructor(text) { this.text = text; } };
Object.defineProperty(window, "speechSynthesis", { value: {
  speak(words) { window.spoken.push(words); },
  cancel() { window.silenced += 1; },
} });
window.SpeechRecognition = class {
  start() { window.listening = this; }
  stop() { this.onend(); }
  abort() { this.onend(); }
  hear(...said) { this.onresult?.({ results: said.map((transcript) => [{ transcript }]) }); }
};
"""
NOTHING = """
for (const name of ["speechSynthesis", "SpeechRecognition", "webkitSpeechRecognition"]) {
  Object.defineProperty(window, name, { value: undefined });
}
"""


def with_engines(page: Page, script: str) -> Chat:
    page.add_init_script(script)
    page.reload()
    return Chat(page)


def test_an_answer_is_read_aloud_without_its_signs_and_silenced(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=someone)
    chat = with_engines(page, ENGINES)
    turn = chat.say("what can you do?")
    button = turn.get_by_role("button", name="Read aloud")
    button.click()
    said = page.evaluate("spoken.map((words) => words.text).join(' ')")
    assert "offline mode" in said
    assert "**" not in said
    assert page.evaluate("Math.max(...spoken.map((words) => words.text.length))") <= 220
    stop = turn.get_by_role("button", name="Stop reading")
    expect(stop).to_have_attribute("aria-pressed", "true")
    stop.click()
    assert page.evaluate("silenced") == 1
    expect(button).to_have_attribute("aria-pressed", "false")
    button.click()
    page.evaluate("spoken.at(-1).onend()")
    expect(button).to_have_attribute("aria-pressed", "false")


def test_what_is_dictated_follows_what_was_typed(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=someone)
    chat = with_engines(page, ENGINES)
    page.wait_for_selector("#composer[data-ready]")
    chat.field.fill("Remember that")
    page.get_by_role("button", name="Dictate").click()
    page.evaluate("listening.hear('my desk')")
    page.evaluate("listening.hear('my desk', ' is by the window')")
    expect(chat.field).to_have_value("Remember that my desk is by the window")
    expect(page.get_by_role("button", name="Send")).to_be_enabled()
    chat.field.press("Enter")
    page.evaluate("listening.hear('too late')")
    expect(chat.field).to_have_value("")
    expect(page.get_by_role("button", name="Dictate")).to_have_attribute("aria-pressed", "false")
    expect(page.locator(".bubble")).to_have_text("Remember that my desk is by the window")


def test_a_microphone_that_is_refused_is_told(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=someone)
    with_engines(page, ENGINES)
    page.wait_for_selector("#composer[data-ready]")
    page.get_by_role("button", name="Dictate").click()
    page.evaluate("listening.onerror({ error: 'not-allowed' }); listening.onend()")
    expect(page.get_by_text("does not let Izzy use the microphone")).to_be_visible()


def test_nothing_is_offered_where_the_browser_has_nothing(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=someone)
    chat = with_engines(page, NOTHING)
    turn = chat.say("what can you do?")
    expect(turn.get_by_role("button", name="Copy answer")).to_be_visible()
    expect(page.get_by_role("button", name="Read aloud")).to_have_count(0)
    expect(page.get_by_role("button", name="Dictate")).to_be_hidden()
