"""The review page by keyboard and on a phone."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, StorageState, expect

from tests.browser.chat import Chat
from tests.browser.conftest import PHONE
from tests.browser.server import Server

SAVE = """async (contents) => {
  const token = document.querySelector('meta[name="csrf-token"]').content;
  for (const content of contents) {
    const body = JSON.stringify({ content, status: "pending" });
    const headers = { "Content-Type": "application/json", "X-CSRFToken": token };
    const answer = await fetch("/api/v1/memories/", { method: "POST", headers, body });
    if (!answer.ok) throw new Error(await answer.text());
  }
}"""
ANIMALS = (
    "cat",
    "newt",
    "dog",
    "hen",
    "goose",
    "horse",
    "pony",
    "goat",
    "sheep",
    "carp",
    "parrot",
    "mule",
)
NOTES = ["The user has a cat.", "The user plays the cello.", "The user rows on Fridays."]


def queue(
    open_page: Callable[..., Page], server: Server, state: StorageState, **options: object
) -> Page:
    """The page of a user for whom three notes wait, the last first."""
    page = open_page(server.url + "/settings/", state=state, **options)
    page.evaluate(SAVE, NOTES)
    page.goto(server.url + "/memory/review/")
    return page


def test_what_begins_to_wait_is_counted_on_a_page_that_is_open(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=someone)
    count = page.locator("#review-count-nav")
    expect(count).to_be_empty()
    page.evaluate(SAVE, NOTES)
    expect(count).to_have_text("3, 3 waiting for you")


def test_notes_are_decided_on_by_keyboard(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = queue(open_page, server, someone)
    cards = page.locator("[data-review]")
    expect(cards).to_have_count(3)
    page.keyboard.press("j")
    expect(cards.first).to_be_focused()
    page.keyboard.press("a")
    expect(page.get_by_text("Accepted “You row on Fridays.”.")).to_be_visible()
    expect(page.locator("#review-count-nav")).to_contain_text("2")
    expect(cards.first).to_be_focused()
    page.keyboard.press("r")
    expect(page.get_by_text("Rejected “You play the cello.”.")).to_be_visible()
    page.get_by_role("button", name="Undo").last.click()
    expect(cards).to_have_count(2)
    page.goto(server.url + "/memory/browse/")
    expect(page.locator(".note-text")).to_have_text(["You row on Fridays."])


def test_a_text_is_changed_before_it_is_accepted_on_a_phone(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = queue(open_page, server, someone, **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    card = page.locator("[data-review]").first
    card.get_by_text("Edit first").click()
    card.get_by_label("In your words").fill("I row on Saturdays.")
    card.get_by_role("button", name="Accept").click()
    expect(page.get_by_text("Accepted “I row on Saturdays.”.")).to_be_visible()
    page.locator('[name="notes"]').first.check()
    expect(page.get_by_text("1 ticked")).to_be_visible()
    page.get_by_role("button", name="Reject ticked").click()
    expect(page.get_by_text("Rejected “You play the cello.”.")).to_be_visible()
    expect(page.get_by_role("button", name="Undo")).to_be_focused()
    page.goto(server.url + "/memory/browse/")
    expect(page.locator(".note-text")).to_have_text(["I row on Saturdays."])


def test_ticked_notes_become_one(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = queue(open_page, server, someone)
    page.get_by_role("button", name="Tick all").click()
    expect(page.get_by_text("3 ticked")).to_be_visible()
    page.get_by_role("button", name="Accept ticked").click()
    expect(page.get_by_text("and 1 more.")).to_be_visible()
    page.goto(server.url + "/memory/browse/")
    for box in page.locator(".note-select input").all()[:2]:
        box.check()
    page.get_by_role("button", name="Merge…").click()
    page.get_by_label("What the one memory says").fill("The user rows and plays the cello.")
    page.get_by_role("button", name="Merge into one").click()
    expect(page.locator(".note-text")).to_have_text(["You row and play the cello.", "You have a cat."])
    expect(page.get_by_role("button", name="Undo")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".done", has_text="Undone.")).to_be_focused()
    expect(page.locator(".note-text")).to_have_count(3)


def test_who_reviews_everything_sees_in_the_chat_that_a_note_waits(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url + "/settings/", state=someone)
    page.locator('[name="review"]').select_option("everything")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Your preferences are saved.")).to_be_visible()
    page.goto(server.url)
    chat = Chat(page)
    chat.say("Remember that I row on Fridays")
    expect(chat.last).to_contain_text("remembered once you accept it")
    expect(chat.last.locator(".tool-title")).to_have_text("Waits for your review")
    chat.last.locator(".tool-title").click()
    chat.last.get_by_text("Look at it on the review page").click()
    page.get_by_role("button", name="Accept", exact=True).click()
    expect(page.get_by_text("Accepted “You row on Fridays.”.")).to_be_visible()


def test_many_are_put_away_and_brought_back_with_the_keyboard(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    """Nothing moves when the first is ticked, and the focus is always where one goes on."""
    page = queue(open_page, server, someone)
    page.get_by_role("button", name="Tick all").click()
    page.get_by_role("button", name="Accept ticked").click()
    page.goto(server.url + "/memory/browse/")
    notes, undo = page.locator(".note"), page.get_by_role("button", name="Undo")
    place = notes.nth(2).bounding_box()
    boxes = page.locator(".note-select input")
    boxes.nth(0).focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("1 ticked")).to_be_visible()
    assert notes.nth(2).bounding_box() == place
    boxes.nth(1).focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Archive").press("Enter")
    expect(page.get_by_text("Archived “")).to_be_visible()
    expect(undo).to_be_focused()
    expect(notes).to_have_count(1)
    page.goto(server.url + "/memory/browse/?status=archived")
    boxes.nth(0).focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Tick all").press("Enter")
    page.locator(".note-bulk").get_by_role("button", name="Bring back").press("Enter")
    page.wait_for_url(server.url + "/memory/browse/?status=archived")
    expect(undo).to_be_focused()
    page.goto(server.url + "/memory/browse/")
    expect(notes).to_have_count(3)


def test_a_note_is_edited_in_place_with_the_keyboard(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = queue(open_page, server, someone)
    page.get_by_role("button", name="Tick all").click()
    page.get_by_role("button", name="Accept ticked").click()
    page.goto(server.url + "/memory/browse/")
    note, edit = page.locator(".note").first, page.get_by_role("button", name="Edit this memory").first
    edit.press("Enter")
    expect(note.get_by_role("textbox", name="Memory", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(edit).to_be_focused()
    page.keyboard.press("Enter")
    note.get_by_role("textbox", name="Memory", exact=True).fill("I row on Sundays.")
    page.keyboard.press("Control+Enter")
    expect(edit).to_be_focused()
    expect(note).to_contain_text("I row on Sundays.")
    page.get_by_role("button", name="More for this memory").first.press("Enter")
    note.get_by_role("button", name="Delete").press("Enter")
    expect(page.get_by_role("button", name="Undo")).to_be_focused()
    page.keyboard.press("Enter")
    expect(edit).to_be_focused()


def test_two_notes_of_ones_choice_are_linked(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = queue(open_page, server, someone)
    page.get_by_role("button", name="Tick all").click()
    page.get_by_role("button", name="Accept ticked").click()
    page.goto(server.url + "/memory/browse/")
    cat = page.locator(".note", has_text="cat")
    cat.get_by_role("button", name="More for this memory").click()
    cat.get_by_role("link", name="What is linked to it").click()
    page.get_by_role("searchbox", name="Find a memory to link it to").fill("cello")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Link “You play the cello.”").first.press("Enter")
    expect(page.locator(".done", has_text="Linked to “You play the cello.”.")).to_be_focused()
    expect(page.locator("#links-title + ul")).to_contain_text("You play the cello.")


def test_a_file_gets_its_directory_and_keeps_the_focus(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url + "/memory/files/", state=someone)
    page.get_by_text("Add a file").click()
    page.get_by_label("Path").fill("trips/porto.md")
    page.get_by_label("Text").fill("Fly to Porto")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".done", has_text="Saved /memories/trips/porto.md.")).to_be_focused()
    page.get_by_role("button", name="Edit /memories/trips/porto.md").press("Enter")
    field = page.locator(".file-notes").get_by_label("Text")
    field.fill("Sail to Porto")
    field.press("Control+Enter")
    expect(page.locator(".file-text")).to_have_text("Sail to Porto")
    expect(page.get_by_role("button", name="Close")).to_be_focused()
    page.get_by_role("button", name="Delete /memories/trips/porto.md").press("Enter")
    expect(page.get_by_role("button", name="Undo")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Read /memories/trips/porto.md")).to_be_focused()


def test_what_has_come_up_to_the_place_of_what_was_decided_is_not_skipped(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url + "/settings/", state=someone)
    page.evaluate(SAVE, [f"The user has a {animal}." for animal in ANIMALS])
    page.goto(server.url + "/memory/review/")
    cards, older = page.locator("#review-list [data-review]"), page.get_by_role("link", name="Older")
    expect(cards).to_have_count(10)
    cards.first.get_by_role("button", name="Accept").click()
    expect(cards).to_have_count(9)
    page.get_by_role("button", name="Undo").click()
    expect(cards).to_have_count(10)
    expect(older).to_have_attribute("href", re.compile(r"page=2$"))  # nothing has come up
    cards.first.get_by_role("button", name="Accept").click()
    expect(cards).to_have_count(9)
    older.click()
    expect(cards).to_have_count(10)
    expect(cards.last).to_contain_text("You have a newt.")
    older.click()
    expect(cards).to_have_count(1)
    expect(cards).to_contain_text("You have a cat.")
