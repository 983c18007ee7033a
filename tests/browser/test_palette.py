"""The command palette and the list of keys, by keys alone."""

from collections.abc import Callable

from playwright.sync_api import Page, StorageState, expect

from tests.browser.axe import violations, with_axe
from tests.browser.conftest import PHONE
from tests.browser.server import Server

TYPED_AT_ONCE = """(field, words) => {
  field.value = words;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
}"""


def test_everything_is_reached_from_the_keyboard(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=someone)
    with_axe(page.context)
    page.goto(server.url)
    page.get_by_role("button", name="Put away").click()
    expect(page.locator("#first-steps")).to_have_count(0)

    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Find or do something")
    expect(field).to_be_focused()
    expect(page.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    assert violations(page, contrast=True) == []
    page.keyboard.type("file")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.type("x")
    expect(page.get_by_text("Nothing fits. Try other words.")).to_be_visible()
    page.keyboard.press("Backspace")
    option = page.get_by_role("option", name="Files", selected=True)
    expect(field).to_have_attribute("aria-activedescendant", option.get_attribute("id") or "?")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{server.url}/memory/files/")

    page.keyboard.press("Control+k")
    expect(page.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")  # from the first to the last
    expect(page.get_by_role("option", name="Keyboard shortcuts ?")).to_have_attribute(
        "aria-selected", "true"
    )
    page.keyboard.press("Enter")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keys).to_contain_text("Leave what you edit")
    expect(keys.get_by_text("Send the message")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()


def test_on_a_phone_it_has_a_button(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/settings/", state=someone, **PHONE)
    page.locator(".topbar [data-palette]").tap()
    page.get_by_role("option", name="Memories Alt M").tap()
    page.wait_for_url(f"{server.url}/memory/")


def test_whoever_presses_enter_at_once_gets_what_they_typed(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/settings/", state=someone)
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-list [aria-selected=true]")).to_be_visible()
    page.get_by_role("combobox", name="Find or do something").evaluate(TYPED_AT_ONCE, "file")
    page.wait_for_url(f"{server.url}/memory/files/")
