"""Files beside a message, as a person brings them."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, StorageState, expect

from tests.browser.chat import Chat
from tests.browser.conftest import Watch
from tests.browser.server import Server
from tests.chat.attached import SAID, png

DROP = """([name, type, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, { type }));
  document.getElementById("message").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""
HOSTILE = "\u202e<script>alert(1)<script>תקציר.md"


def picked(name: str, body: bytes, kind: str = "text/plain") -> Any:
    return {"name": name, "mimeType": kind, "buffer": body}


def test_files_are_brought_refused_sent_looked_at_kept_and_deleted(
    server: Server, someone: StorageState, open_page: Callable[..., Page], watch: Watch
) -> None:
    watch.allowed.append("status of 400")  # the file that is refused
    page = open_page(server.url, state=someone)
    page.wait_for_selector("#composer[data-ready]")
    pick = page.locator("[data-attach-input]")
    send = page.get_by_role("button", name="Send", exact=True)
    pick.set_input_files([picked("photo.png", png(300, 200), "image/png")])
    pick.set_input_files([picked("letter.docx", b"PK\x03\x04\x00\x00")])
    refused = page.locator(".attached-chip[data-state=failed]")
    expect(refused).to_contain_text("cannot be read here")
    page.get_by_role("textbox", name="Message", exact=True).fill("What are these?")
    expect(send).to_be_disabled()
    refused.get_by_role("button", name="Take letter.docx away").click()
    page.evaluate(DROP, [HOSTILE, "text/markdown", SAID])
    expect(page.locator(".attached-chip[data-state=ready]")).to_have_count(2)

    page.reload()  # a draft keeps its files
    page.wait_for_selector("#composer[data-ready]")
    expect(page.locator(".attached-chip[data-state=ready]")).to_have_count(2)
    expect(page.get_by_role("textbox", name="Message", exact=True)).to_have_value("What are these?")
    send.click()
    chat = Chat(page)
    chat.wait_for(chat.last, "done")
    expect(page.locator(".attached-tray li")).to_have_count(0)
    expect(chat.last.locator(".attached li")).to_have_count(2)
    picture = chat.last.locator(".attached-picture img")
    expect(picture).to_have_js_property("naturalWidth", 300)

    chip = chat.last.get_by_role("button", name="script")
    chip.focus()
    page.keyboard.press("Enter")
    shown = page.get_by_role("dialog")
    expect(shown).to_contain_text(SAID)
    with page.expect_download() as download:
        shown.get_by_role("link", name="Download").click()
    assert download.value.path().read_text() == SAID
    shown.get_by_role("button", name="Put under /memories").click()
    expect(page.locator("#toasts")).to_contain_text("/memories/attachments/")
    shown.get_by_role("button", name="Close").click()

    chat.last.locator(".user").hover()
    chat.last.locator("[data-edit]").click()  # an edit keeps them, but for what is taken away
    page.get_by_role("button", name="Take photo.png away").click()
    send.click()
    expect(chat.last.locator(".attached li")).to_have_count(1)
    chat.wait_for(chat.last, "done")
    chat.last.get_by_role("button", name="script").click()
    shown.get_by_role("button", name="Delete").click()
    page.locator("#confirm-ok").click()
    expect(chat.last.locator(".attached li")).to_have_count(0)
    page.reload()
    expect(chat.last.locator(".bubble")).to_have_text("What are these?")
    expect(chat.last.locator(".attached li")).to_have_count(0)
