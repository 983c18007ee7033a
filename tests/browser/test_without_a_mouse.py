"""Pages by keys alone: skip links, a focus that is seen at every stop, every edit in place left by Escape and saved by Ctrl+Enter,
and settings, tokens, secrets, an import and a purge, done with Tab, Enter, Space and letters."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Locator, Page, StorageState, expect

from tests.browser.server import Server

FILL = """
from apps.chat.models import Conversation
from apps.memory.files.services import file_write
from apps.memory.notes.creation import memory_create
memory_create(user_id=user.pk, content="Bees live behind the shed")
file_write(user_id=user.pk, path="/memories/bees.md", text="Two hives")
Conversation.objects.create(user=user, title="About bees", channel="chat")
"""
UNSEEN = """() => {
  const element = document.activeElement;
  if (element === document.body || element.matches("input[type=date]")) return "";  // whose parts are the browser's
  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element);
  const drawn = (outlineStyle !== "none" && outlineWidth !== "0px") || boxShadow !== "none" || element.closest("label:has(:focus-visible)") !== null;
  const box = element.getBoundingClientRect();
  return drawn && box.width > 0 ? "" : element.outerHTML.slice(0, 120);
}"""
"""Returns what has the focus, where nothing shows it."""


def tab_through(page: Page, stops: int) -> list[str]:
    unseen = []
    for _ in range(stops):
        page.keyboard.press("Tab")
        unseen.append(page.evaluate(UNSEEN))
    return [each for each in unseen if each]


def test_every_page_and_edit_works_by_keys(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    server.shell(someone, FILL)
    page = open_page(server.url + "/memory/browse/", state=someone)
    keys = page.keyboard

    keys.press("Tab")
    skip = page.locator(".skip-link").first
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    assert tab_through(page, 45) == []

    note = page.locator(".note[data-note]").first
    note.get_by_role("button", name="Edit this memory").focus()
    keys.press("Enter")
    field = page.locator(".note textarea").first
    expect(field).to_be_focused()
    keys.press("Escape")
    expect(note).to_contain_text("Bees live behind the shed")
    note.get_by_role("button", name="Edit this memory").focus()
    keys.press("Enter")
    expect(field).to_be_focused()
    field.fill("Bees live in the garden")
    keys.press("Control+Enter")
    expect(note).to_contain_text("Bees live in the garden")

    note.get_by_role("link", name="Open this memory").focus()
    keys.press("Enter")
    page.wait_for_url(re.compile(r"/memory/[0-9a-f-]{36}/$"))
    change = page.locator(".one-valid > summary")
    change.focus()
    keys.press("Enter")
    keys.press("Tab")
    expect(page.locator(".one-valid input:focus")).to_have_count(1)
    keys.press("Escape")
    expect(change).to_be_focused()
    expect(page.locator(".one-valid form")).to_be_hidden()
    page.get_by_role("link", name="Edit", exact=True).focus()
    keys.press("Enter")
    page.wait_for_url("**/?edit*")
    page.locator(".one-text textarea").first.press("Escape")
    page.wait_for_url(re.compile(r"/memory/[0-9a-f-]{36}/$"))

    page.goto(server.url + "/memory/files/")
    page.get_by_role("button", name=re.compile("Edit")).first.focus()
    keys.press("Enter")
    text = page.locator("li .file-editor")
    expect(text).to_be_visible()
    keys.press("Escape")
    expect(text).to_be_hidden()

    page.goto(server.url + "/conversations/")
    page.get_by_role("button", name=re.compile("About bees")).last.focus()
    keys.press("Enter")
    page.locator(".menu:popover-open").get_by_text("Rename").focus()
    keys.press("Enter")
    title = page.get_by_role("textbox", name="Title").first
    expect(title).to_be_focused()
    keys.press("Escape")
    expect(title).to_be_hidden()
    expect(page.get_by_role("link", name="About bees").first).to_be_visible()


MOST_STOPS = 80


@dataclass
class Typist:
    """Has no mouse: gets everywhere by Tab, from the skip link to the content on."""

    page: Page

    def open(self, address: str) -> None:
        self.page.goto(address)
        self.page.keyboard.press("Tab")
        expect(self.page.locator(".skip-link").first).to_be_focused()
        self.page.keyboard.press("Enter")
        expect(self.page.locator("#main")).to_be_focused()

    def reach(self, wanted: Locator) -> None:
        expect(wanted).to_be_attached()
        for _ in range(MOST_STOPS):
            self.page.keyboard.press("Tab")
            if wanted.evaluate("element => element === document.activeElement"):
                return
        raise AssertionError(f"Tab does not lead to {wanted}")

    def write(self, label: str, text: str) -> None:
        self.reach(self.page.get_by_label(label, exact=True))
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)

    def press(self, name: str, key: str = "Enter", role: Any = "button") -> None:
        self.reach(self.page.get_by_role("main").get_by_role(role, name=name).first)
        self.page.keyboard.press(key)


def test_settings_tokens_secrets_an_import_and_a_purge_are_done_without_a_mouse(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page("about:blank", state=someone)
    hands, keys = Typist(page), page.keyboard

    hands.open(f"{server.url}/settings/")
    hands.write("What should Izzy call you?", "Al")
    keys.press("Control+Enter")
    expect(page.get_by_role("status").first).to_contain_text("saved")

    hands.open(f"{server.url}/settings/tokens/")
    hands.write("Name", "laptop")
    keys.press("Enter")
    expect(page.locator("#secret")).to_contain_text("izzy_")
    hands.open(f"{server.url}/settings/tokens/")
    hands.press("Revoke")
    expect(page.get_by_role("dialog")).to_be_visible()
    keys.press("Tab")
    keys.press("Enter")
    expect(page.get_by_role("button", name="Revoke")).to_have_count(0)

    hands.open(f"{server.url}/settings/secrets/")
    hands.write("Name", "GARDEN_KEY")
    hands.write("Value", "s3cret-value")
    keys.press("Enter")
    expect(page.get_by_role("main")).to_contain_text("GARDEN_KEY")

    hands.open(f"{server.url}/settings/data/")
    hands.write("Or paste it", "- Likes plum cake")
    hands.reach(page.get_by_label("I know what it says, and it is right"))
    keys.press("Space")
    hands.press("Bring it in")
    expect(page.locator(".transfer .badge").first).to_have_text("Done")

    hands.open(f"{server.url}/memory/browse/")
    expect(page.locator(".note")).to_contain_text("Likes plum cake")
    hands.press("Open this memory", role="link")
    page.wait_for_url(re.compile(r"/memory/[0-9a-f-]{36}/$"))
    hands.open(page.url)
    hands.press("Delete for good", role="link")
    page.wait_for_url("**/purge/")
    hands.open(page.url)
    hands.press("Delete for good")
    page.wait_for_url("**/memory/purges/**")
