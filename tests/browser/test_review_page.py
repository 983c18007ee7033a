"""The review page by keyboard and on a phone."""

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
NOTES = ["The user has a cat.", "The user plays the cello.", "The user rows on Fridays."]


def queue(open_page: Callable[..., Page], server: Server, state: StorageState, **options: object) -> Page:
    """The page of a user for whom three notes wait, the last first."""
    page = open_page(server.url + "/settings/", state=state, **options)
    page.evaluate(SAVE, NOTES)
    page.goto(server.url + "/memory/review/")
    return page


def test_notes_are_decided_on_by_keyboard(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = queue(open_page, server, someone)
    cards = page.locator("[data-review]")
    expect(cards).to_have_count(3)
    page.keyboard.press("j")
    expect(cards.first).to_be_focused()
    page.keyboard.press("a")
    expect(page.get_by_text("Accepted.")).to_be_visible()
    expect(page.locator("#review-count-nav")).to_contain_text("2")
    expect(cards.first).to_be_focused()
    page.keyboard.press("r")
    expect(page.get_by_text("Rejected.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(cards).to_have_count(2)
    page.goto(server.url + "/memory/")
    expect(page.locator(".note-text")).to_have_text(["Rows on Fridays."])


def test_a_text_is_changed_before_it_is_accepted_on_a_phone(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = queue(open_page, server, someone, **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    card = page.locator("[data-review]").first
    card.get_by_text("Edit first").click()
    card.get_by_label("In your words").fill("I row on Saturdays.")
    card.get_by_role("button", name="Accept").click()
    expect(page.get_by_text("Accepted.")).to_be_visible()
    page.locator('[name="notes"]').first.check()
    page.get_by_role("button", name="Reject ticked").click()
    expect(page.get_by_text("Rejected: 1.")).to_be_visible()
    page.goto(server.url + "/memory/")
    expect(page.locator(".note-text")).to_have_text(["I row on Saturdays."])


def test_ticked_notes_become_one(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = queue(open_page, server, someone)
    page.locator("#review-all").click()
    page.get_by_role("button", name="Accept ticked").click()
    expect(page.get_by_text("Accepted: 3.")).to_be_visible()
    page.goto(server.url + "/memory/")
    for box in page.locator(".note-select input").all()[:2]:
        box.check()
    page.get_by_role("button", name="Merge…").click()
    page.get_by_label("What the one memory says").fill("The user rows and plays the cello.")
    page.get_by_role("button", name="Merge into one").click()
    expect(page.locator(".note-text")).to_have_text(["Rows and plays the cello.", "Has a cat."])


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
    expect(page.get_by_text("Accepted.")).to_be_visible()
