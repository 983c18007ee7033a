"""Reading aloud and dictation. The browser's engines are played by stand-ins that note what they are asked for: a headless
browser has neither a voice nor a microphone."""

from collections.abc import Callable

from playwright.sync_api import Page, StorageState, expect

from tests.browser.chat import Chat
from tests.browser.server import Server
from tests.browser.voices import ENGINES, SHORT_PRESS

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


def test_what_android_says_again_is_written_once(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(
        server.url, state=someone, user_agent="Mozilla/5.0 (Linux; Android 15) Chrome/140 Mobile"
    )
    chat = with_engines(page, ENGINES)
    page.wait_for_selector("#composer[data-ready]")
    page.get_by_role("button", name="Dictate").click()
    page.evaluate("listening.guess('Buy', 'buy milk', 'Buy Milch')")
    page.evaluate("listening.guess('Buy', 'buy milk', 'Buy Milch', 'Buy milk and tea')")
    expect(chat.field).to_have_value("Buy milk and tea")
    chat.field.press_sequentially(", please,")
    page.evaluate(
        "listening.guess('Buy', 'buy milk', 'Buy milk and tea', 'buy milk and tea', 'Buy milk and tea today', 'no hurry')"
    )
    expect(chat.field).to_have_value("Buy milk and tea, please, today no hurry")


TROUBLES = {
    "not-allowed": "does not let Izzy use the microphone",
    "network": "cannot reach the service that writes down",
    "audio-capture": "No microphone was found",
}


def test_what_is_typed_between_two_words_stays(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=someone)
    chat = with_engines(page, ENGINES)
    page.wait_for_selector("#composer[data-ready]")
    page.evaluate(SHORT_PRESS)  # it stays on
    page.evaluate("listening.hear('buy milk')")
    chat.field.press_sequentially(", not cream,")
    page.evaluate("listening.hear('buy milk', 'and tea')")
    expect(chat.field).to_have_value("buy milk, not cream, and tea")
    bar = page.locator("[data-voice]")
    expect(bar).to_have_text("Listening…Stop")
    bar.get_by_role("button", name="Stop").click()
    expect(bar).to_be_hidden()
    expect(chat.field).to_have_value("buy milk, not cream, and tea")


def test_what_the_recogniser_cannot_do_is_told_and_loses_nothing(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=someone)
    chat = with_engines(page, ENGINES)
    page.wait_for_selector("#composer[data-ready]")
    chat.field.fill("Before.")
    for error, sentence in TROUBLES.items():
        page.get_by_role("button", name="Dictate").click()
        page.evaluate("listening.hear('heard')")
        page.evaluate(f"listening.onerror({{ error: '{error}' }}); listening.onend()")
        expect(page.locator("[data-voice]")).to_contain_text(sentence)
        expect(page.get_by_role("button", name="Dictate")).to_have_attribute("aria-pressed", "false")
    expect(chat.field).to_have_value("Before. heard heard heard")


def test_nothing_is_offered_where_the_browser_has_nothing(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=someone)
    chat = with_engines(page, NOTHING)
    turn = chat.say("what can you do?")
    expect(turn.get_by_role("button", name="Copy answer")).to_be_visible()
    expect(page.get_by_role("button", name="Read aloud")).to_have_count(0)
    expect(page.get_by_role("button", name="Dictate")).to_be_hidden()
    expect(page.locator("[data-voice]")).to_be_hidden()
    page.keyboard.press("Alt+v")
    page.goto(f"{server.url}/settings/")
    expect(page.get_by_role("heading", name="Memory", exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name="Voice")).to_have_count(0)
