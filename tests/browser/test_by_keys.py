"""The chat without a mouse, at twice the size, with little motion, and in a browser that lacks what is not needed."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, StorageState, expect

from tests.browser.audit import audit
from tests.browser.chat import Chat
from tests.browser.server import Server

LACKING = """
for (const name of ["speechSynthesis", "SpeechRecognition", "webkitSpeechRecognition", "Notification"]) delete window[name];
delete Navigator.prototype.serviceWorker;
"""
FOCUSED = """() => {
  const element = document.activeElement, box = element.getBoundingClientRect();
  const seen = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  return { name: element.getAttribute("aria-label") ?? element.textContent.trim(), seen: element.contains(seen) };
}"""
A_MAC = """Object.defineProperty(Navigator.prototype, "platform", { get: () => "MacIntel" });"""
OPTION_N = """(element) => element.dispatchEvent(
  new KeyboardEvent("keydown", { key: "Dead", code: "KeyN", altKey: true, bubbles: true, cancelable: true }))"""
"""The tilde of ñ."""
MOVING = """() => document.getAnimations().filter((each) => each.effect.getComputedTiming().duration > 10).length"""


def test_the_chat_works_by_keys_at_twice_the_size_without_motion_in_a_bare_browser(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(
        "about:blank",
        state=someone,
        viewport={"width": 640, "height": 400},  # of 1280 by 800 at 200 %
        device_scale_factor=2,
        reduced_motion="reduce",
    )
    page.add_init_script(LACKING)
    page.goto(server.url)
    chat, keys = Chat(page), page.keyboard
    page.wait_for_selector("#composer[data-ready]")
    expect(chat.field).to_be_focused()
    assert page.evaluate("'speechSynthesis' in window || 'serviceWorker' in navigator") is False
    for text in ("remember that my desk is by the window", "what can you do?"):
        count = chat.turns.count()
        keys.type(text)
        keys.press("Enter")
        expect(chat.turns).to_have_count(count + 1)
        chat.wait_for(chat.last, "done")
    assert audit(page) == []
    assert page.evaluate(MOVING) == 0
    expect(page.get_by_role("button", name="Dictate")).to_be_hidden()

    reached: list[dict[str, Any]] = []
    while len(reached) < 20 and "Edit and send again" not in [each["name"] for each in reached]:
        keys.press("Shift+Tab")  # back from the field: the actions of the answer and of the message
        reached.append(page.evaluate(FOCUSED))
    assert [each["name"] for each in reached if not each["seen"]] == []
    assert {"Copy answer", "Try again", "Edit and send again"} <= {each["name"] for each in reached}

    keys.press("/")
    expect(chat.field).to_be_focused()
    keys.press("ArrowUp")
    expect(chat.field).to_have_value("what can you do?")
    keys.press("Escape")
    expect(chat.field).to_have_value("")
    keys.press("Control+k")
    expect(page.get_by_role("combobox", name="Find or do something")).to_be_focused()
    keys.type("settings")
    expect(page.get_by_role("option").first).to_contain_text("Settings")
    keys.press("Enter")
    page.wait_for_url(f"{server.url}/settings/")
    assert audit(page) == []
    expect(page.get_by_role("heading", name="Voice")).to_have_count(0)
    expect(page.get_by_role("heading", name="Notifications")).to_have_count(0)
    page.go_back()
    expect(chat.turns).to_have_count(2)
    keys.press("Alt+n")
    expect(chat.turns).to_have_count(0)
    expect(chat.field).to_be_focused()


def test_on_a_mac_option_and_a_letter_are_typed_where_one_types(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page("about:blank", state=someone)
    page.add_init_script(A_MAC)
    page.goto(f"{server.url}/settings/")
    field = page.get_by_label("What should Izzy call you?")
    assert field.evaluate(OPTION_N) is True  # the field has it
    assert page.locator("body").evaluate(OPTION_N) is False
    page.wait_for_url(f"{server.url}/")
