"""Files beside a message, as a person brings them."""

import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Dialog, Page, Response, Route, StorageState, expect

from tests.browser.chat import Chat
from tests.browser.conftest import Watch
from tests.browser.model import Model
from tests.browser.server import Server
from tests.chat.attached import SAID, pdf, png
from tests.peers.anthropic_server import reply, text
from tests.waiting import eventually

DROP = """([name, type, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, { type }));
  document.getElementById("message").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""
COPY = """async (body) => {
  const bytes = Uint8Array.from(atob(body), (each) => each.charCodeAt(0));
  await navigator.clipboard.write([new ClipboardItem({ "image/png": new Blob([bytes], { type: "image/png" }) })]);
}"""
"""Puts a picture into the clipboard, as a screenshot would be."""
DRAG = """([steps, name, type, body]) => {
  const dataTransfer = new DataTransfer();
  const bytes = typeof body === "number" ? new Uint8Array(body) : Uint8Array.from(atob(body), (each) => each.charCodeAt(0));
  dataTransfer.items.add(new File([bytes], name, { type }));
  for (const step of steps) document.getElementById("log").parentElement.dispatchEvent(new DragEvent(step, { dataTransfer, bubbles: true, cancelable: true }));
}"""
"""Drags a file of this content, or of so many bytes, over the messages."""
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


def test_what_is_taken_away_unsent_is_deleted_and_what_a_message_had_stays(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=someone)
    chat, ready = Chat(page), page.locator(".attached-chip[data-state=ready]")
    pick = page.locator("[data-attach-input]")

    def kept() -> list[str]:
        answer = page.request.get(f"{server.url}/api/v1/attachments/").json()
        return [row["name"] for row in answer["results"]]

    def is_deletion(response: Response) -> bool:
        return response.request.method == "DELETE"

    pick.set_input_files([picked("one.txt", b"One.")])
    expect(ready).to_have_count(1)
    assert kept() == ["one.txt"]
    with page.expect_response(is_deletion):
        page.get_by_role("button", name="Take one.txt away").click()
    assert kept() == []

    pick.set_input_files([picked("two.txt", b"Two.")])
    expect(ready).to_have_count(1)
    chat.say("Look at this")
    chat.last.locator(".user").hover()
    chat.last.locator("[data-edit]").click()
    page.get_by_role("button", name="Take two.txt away").click()
    pick.set_input_files([picked("three.txt", b"Three.")])
    expect(ready).to_have_count(1)
    with page.expect_response(is_deletion):
        page.get_by_role("button", name="Cancel").click()
    assert kept() == ["two.txt"]


def test_what_is_pasted_and_dropped_reaches_the_model_and_what_is_too_large_does_not(
    model: Model, model_server: Server, open_page: Callable[..., Page], watch: Watch
) -> None:
    watch.allowed.append("status of 404")  # a file that is gone
    page = open_page(
        model_server.url,
        state=model_server.someone(),
        permissions=["clipboard-read", "clipboard-write"],
    )
    chat, chips = Chat(page), page.locator(".attached-chip")
    page.wait_for_selector("#composer[data-ready]")
    page.evaluate(COPY, b64encode(png(320, 200)).decode())
    chat.field.focus()
    page.keyboard.press("Control+v")
    expect(chips).to_contain_text("Image")
    expect(chips).to_have_attribute("data-state", "ready")
    letter = ["letter.pdf", "application/pdf", b64encode(pdf(2)).decode()]
    page.evaluate(DRAG, [["dragover"], *letter])
    expect(page.locator("#composer[data-drop]")).to_be_visible()
    page.evaluate(DRAG, [["drop"], *letter])
    expect(page.locator("#composer[data-drop]")).to_have_count(0)
    expect(chips.nth(1)).to_contain_text("PDF, 2 pages")
    page.evaluate(DRAG, [["drop"], "film.txt", "text/plain", 10_400_000])
    expect(chips.nth(2)).to_contain_text("at most 10 MB can be attached")
    expect(page.locator("#announcer-urgent")).to_contain_text("at most 10 MB can be attached")
    chips.nth(2).get_by_role("button").press("Enter")
    expect(chips).to_have_count(2)

    model.add(reply(text("A heron.")))
    chat.say("What is on them?")
    sent = model.asked[-1]["messages"][-1]["content"]
    [image] = [block for block in sent if block["type"] == "image"]
    assert image["source"]["media_type"] == "image/png"
    assert "This is page 2." in json.dumps(sent)
    assert SAID in json.dumps(sent)

    # Under /memories it is a file like any other, and stays when the attachment goes.
    chip = chat.last.get_by_role("button", name="letter.pdf")
    chip.click()
    shown = page.get_by_role("dialog")
    with page.expect_response("**/keep/") as kept:
        shown.get_by_role("button", name="Put under /memories").click()
    path = kept.value.json()["path"]
    with page.expect_response("**/api/v1/attachments/*/") as gone:
        shown.get_by_role("button", name="Delete").click()
        page.locator("#confirm-ok").click()
    expect(chip).to_have_count(0)
    address = gone.value.url
    assert page.request.get(address + "content/").status == 404
    assert page.request.get(address + "text/").status == 404
    model.add(reply(text("It was deleted.")))
    chat.say("And what was in the letter?")
    assert "(A file was attached here. It has been deleted.)" in json.dumps(model.asked[-1])
    assert SAID not in json.dumps(model.asked[-1])
    page.goto(f"{model_server.url}/memory/files/")
    file = page.locator("[data-file]", has_text=path)
    file.get_by_role("button", name="Read").click()
    expect(page.locator(".file-text")).to_contain_text(SAID)
    expect(page.locator("[data-file]")).to_contain_text("untrusted")


def test_a_file_waits_for_the_connection_and_is_asked_for_before_the_page_is_left(
    server: Server, someone: StorageState, open_page: Callable[..., Page], watch: Watch
) -> None:
    watch.allowed.append("Failed to load resource")
    page = open_page(server.url, state=someone)
    chip, field = page.locator(".attached-chip"), Chat(page).field
    field.press_sequentially("Look")  # a browser asks nobody who has touched nothing
    away = [True]
    page.route("**/api/v1/attachments/", lambda route: route.abort() if away[0] else route.continue_())
    page.locator("[data-attach-input]").set_input_files([picked("one.txt", b"One.")])
    expect(chip).to_contain_text("Waiting for the connection")
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    page.locator('.sidebar a[href="/memory/"]').first.click(no_wait_after=True)
    eventually(lambda: page.evaluate("1") and asked)
    assert asked == ["beforeunload"]
    away.clear()
    away.append(False)
    expect(page.locator(".attached-chip[data-state=ready]")).to_have_count(1)
    page.locator('.sidebar a[href="/memory/"]').first.click()
    page.wait_for_url("**/memory/")
    assert asked == ["beforeunload"]


def test_what_is_sent_while_a_file_is_on_its_way_goes_when_it_is_there_unless_it_is_changed_before(
    server: Server, someone: StorageState, open_page: Callable[..., Page], watch: Watch
) -> None:
    watch.allowed.append("status of 400")  # the file that is refused
    page = open_page(server.url, state=someone)
    chat, says = Chat(page), page.locator("[data-counter]")
    pick, chips = page.locator("[data-attach-input]"), page.locator(".attached-chip")
    send = page.get_by_role("button", name="Send", exact=True)
    held: list[Route] = []
    page.route("**/api/v1/attachments/", lambda route: held.append(route))
    pick.set_input_files([picked("one.txt", b"One.")])
    eventually(lambda: page.evaluate("1") and held)
    chat.field.fill("What is this")
    chat.field.press("Enter")
    expect(says).to_have_text("Sent as soon as the files are read.")
    expect(send).to_be_disabled()
    chat.field.press("?")
    expect(says).to_be_hidden()
    send.click()
    expect(chat.turns).to_have_count(0)
    held.pop().continue_()
    expect(chat.turns).to_have_count(1)
    expect(chat.last.locator(".bubble")).to_have_text("What is this?")
    expect(chat.last.locator(".attached li")).to_have_count(1)
    chat.wait_for(chat.last, "done")

    pick.set_input_files([picked("letter.docx", b"PK\x03\x04\x00\x00")])
    eventually(lambda: page.evaluate("1") and held)
    chat.field.fill("And this?")
    chat.field.press("Enter")
    held.pop().continue_()
    expect(page.locator(".attached-chip[data-state=failed]")).to_have_count(1)
    expect(says).to_be_hidden()
    chips.get_by_role("button").click()
    expect(send).to_be_enabled()
    expect(chat.turns).to_have_count(1)


def test_a_file_on_its_way_stays_with_its_draft_when_another_conversation_is_opened(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=someone)
    chat, chips = Chat(page), page.locator(".attached-chip")
    pick = page.locator("[data-attach-input]")
    chat.say("remember that my desk is by the window")
    held: list[Route] = []
    page.route("**/api/v1/attachments/", lambda route: held.append(route))
    pick.set_input_files([picked("one.txt", b"One."), picked("two.txt", b"Two.")])
    expect(chips).to_have_count(2)
    eventually(lambda: page.evaluate("1") and len(held) == 2)
    page.locator("#new-chat").click()
    expect(chips).to_have_count(0)
    with page.expect_response("**/api/v1/attachments/"):
        held[0].continue_()
    expect(page.locator("#announcer")).to_contain_text("is attached")
    expect(chips).to_have_count(0)

    page.locator(".conversation-link").first.click()
    expect(page.locator(".attached-chip[data-state=ready]")).to_have_count(1)
    expect(page.locator(".attached-chip[data-state=sending]")).to_have_count(1)
    chat.turns.first.hover()
    chat.turns.first.get_by_role("button", name="Edit and send again").click()
    expect(chips).to_have_count(0)
    page.get_by_role("button", name="Cancel").click()
    expect(chips).to_have_count(2)
    held[1].continue_()
    expect(page.locator(".attached-chip[data-state=ready]")).to_have_count(2)
