"""The server cannot be reached: the page says so, and goes on when it is back."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, StorageState, expect

from tests.browser.server import Server


def test_the_offline_page_stands_in_until_the_server_is_back(
    server: Server, someone: StorageState, open_page: Callable[..., Page], watch: Any
) -> None:
    watch.allowed += ["ERR_INTERNET_DISCONNECTED", "ERR_FAILED"]
    page = open_page(f"{server.url}/settings/", state=someone, service_workers="allow")
    notices = page.get_by_label("Tell me when a build or a long answer is done")
    expect(notices).not_to_be_checked()
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.context.set_offline(True)
    page.goto(f"{server.url}/memory/files/")
    expect(page.get_by_role("heading", name="You are offline")).to_be_visible()
    page.context.set_offline(False)
    expect(page.get_by_role("heading", name="Memories", level=1)).to_be_visible()


def test_without_these_parts_of_the_browser_nothing_breaks(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/offline/", state=someone)
    page.context.add_init_script(
        "delete Navigator.prototype.serviceWorker; delete window.Notification; delete window.speechSynthesis;"
        "delete window.SpeechRecognition; delete window.webkitSpeechRecognition;"
    )
    page.goto(f"{server.url}/settings/")
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    expect(page.locator("[data-notify]")).to_be_hidden()
    page.wait_for_load_state()
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-list [aria-selected=true]")).to_be_visible()
