"""The pages of capabilities in a browser: written with the editor, run with the form, approved, compared."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, StorageState, expect

from tests.browser.audit import widths
from tests.browser.conftest import PHONE
from tests.browser.server import Server
from tests.capabilities.conftest import real_sandbox  # noqa: F401  a fixture

CODE = "def run(args):\nprint('log line')\nreturn 'Sum: ' + str(args['a'] + args['b'])"
SCHEMA = '{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}'


def write(page: Page, server: Server, name: str) -> None:
    """Fills the editor by keyboard where it matters: Enter keeps the indentation that a colon began."""
    page.goto(f"{server.url}/capabilities/new/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Description").fill("Add two numbers.")
    code = page.get_by_label("main.py")
    code.fill("")
    for number, line in enumerate(CODE.split("\n")):
        if number:
            code.press("Enter")
        code.press_sequentially(line)
    page.get_by_label("Input", exact=True).fill(SCHEMA)
    page.get_by_role("button", name="Make it").click()
    expect(page.get_by_text("Saved as version 1.")).to_be_visible()


@pytest.mark.usefixtures("real_sandbox")
def test_one_is_written_run_changed_and_approved(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/capabilities/", state=someone)
    expect(page.get_by_text("No capabilities yet")).to_be_visible()
    write(page, server, "adder")
    page.get_by_label("A", exact=True).fill("19")
    page.get_by_label("B", exact=True).fill("23")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_label("Result")).to_have_text("Sum: 42")
    expect(page.locator(".cap-glance div", has_text="Runs")).to_contain_text("1")
    expect(page.locator(".cap-glance div", has_text="Last used")).to_contain_text("today")
    expect(page.locator("#cap-recent tbody tr")).to_have_count(1)
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_focused()
    page.get_by_text("What it printed").click()
    expect(page.get_by_text("log line")).to_be_visible()

    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Hosts").fill("api.example.org")
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.get_by_text("It asks for your permission")).to_be_visible()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    page.get_by_role("button", name="Approve version 2").click()
    expect(page.get_by_text("Approved. Izzy may use it now.")).to_be_visible()

    page.get_by_role("link", name="Versions").click()
    page.get_by_role("link", name="What changed").first.click()
    expect(page.locator(".line-add", has_text="api.example.org").first).to_be_visible()
    page.get_by_role("link", name="Runs").click()
    page.get_by_role("link", name="Run of").first.click()
    expect(page.get_by_label("Result")).to_have_text("Sum: 42")

    page.goto(f"{server.url}/capabilities/")
    page.get_by_role("searchbox", name="Search capabilities").fill("sum of numbers")
    expect(page.get_by_role("link", name="adder")).to_be_visible()
    page.get_by_role("searchbox", name="Search capabilities").fill("zzzz")
    expect(page.get_by_text("Nothing found")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_count(1)  # the list alone was renewed


def test_tab_indents_and_escape_lets_the_keyboard_go_on(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/capabilities/new/", state=someone)
    code = page.get_by_label("main.py")
    code.fill("a\nb")
    code.press("Control+a")
    code.press("Tab")
    expect(code).to_have_value("    a\n    b")
    code.press("Shift+Tab")
    expect(code).to_have_value("a\nb")
    code.press("Escape")
    code.press("Tab")
    expect(code).not_to_be_focused()
    expect(code).to_have_value("a\nb")


def test_the_pages_fit_on_a_phone(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/capabilities/", state=someone, **PHONE)
    write(page, server, "a_name_that_is_as_long_as_the_rule_lets_it_be_ok")
    own = "capabilities/a_name_that_is_as_long_as_the_rule_lets_it_be_ok"
    for path in ("capabilities/", own + "/", own + "/files/", own + "/versions/?compare=1", own + "/runs/", own + "/edit/",
                 "capabilities/new/", "capabilities/install/", "settings/secrets/"):  # fmt: skip
        page.goto(f"{server.url}/{path}")
        page.wait_for_load_state("networkidle")
        assert widths(page) == [], path


def test_a_button_that_was_disabled_meanwhile_has_the_focus_again(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/capabilities/new/", state=someone)
    button = page.get_by_role("button", name="Make it")
    # It can be used again before a busy page looks at what lost the focus.
    button.evaluate(
        """button => {
          button.focus();
          document.addEventListener("focusout", () => (button.disabled = false), { once: true });
          button.disabled = true;
        }"""
    )
    expect(button).to_be_enabled()
    expect(button).to_be_focused()


def test_a_field_that_was_left_on_a_busy_page_stays_left(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/capabilities/new/", state=someone)
    # Both are due at once: that the field is left, and the look at what lost the focus.
    left = page.get_by_label("Name").first.evaluate(
        """async field => {
          field.focus();
          document.body.classList.toggle("busy");
          await null;
          setTimeout(() => field.blur(), 55);
          for (const end = performance.now() + 80; performance.now() < end;);
          await new Promise((done) => setTimeout(done, 100));
          return document.activeElement === document.body;
        }"""
    )
    assert left
