"""The pages of the memory, one after the other, as a person goes through them."""

import re
from collections.abc import Callable

from playwright.sync_api import Dialog, Page, StorageState, expect

from tests.browser.conftest import Watch
from tests.browser.server import Server
from tests.browser.test_conversation import rest
from tests.waiting import eventually


def test_a_memory_is_followed_through_all_pages_of_the_memory(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/memory/", state=someone)
    keys, status = page.keyboard, page.locator(".done")
    expect(page.get_by_role("heading", name="Bring it along")).to_be_visible()

    def make(content: str, **fields: object) -> str:
        return str(rest(page, "POST", "/memories/", {"content": content, **fields})["id"])

    oboe = make("Nina plays the oboe", tags=["music"], kind="fact")
    band = make("The band rehearses on Mondays", tags=["music"], valid_from="2025-03-03T18:00:00Z")
    hall = make("The band rehearses in the town hall", tags=["music"])
    barn = make("The band rehearses in the barn")
    rest(page, "POST", f"/memories/{oboe}/links/", {"target": band, "relation": "belongs to"})
    rest(page, "POST", f"/memories/{hall}/links/", {"target": barn, "relation": "contradicts"})

    # From the overview to what waits, and settled.
    page.goto(f"{server.url}/memory/")
    page.get_by_role("link", name=re.compile(r"^1\s*contradiction to settle")).click()
    side = page.locator(".against-side", has_text="in the barn")
    side.get_by_role("button").first.click()
    expect(page.locator(".against")).to_have_count(0)
    assert rest(page, "GET", f"/memories/{hall}/")["status"] != "active"

    # Several at once from the list, and back again.
    page.goto(f"{server.url}/memory/browse/?tag=music")
    notes = page.locator(".note")
    expect(notes).to_have_count(2)
    notes.first.get_by_role("checkbox").check()
    page.get_by_role("button", name="Tick all").click()
    page.get_by_label("Tag to add").fill("evening")
    page.get_by_role("button", name="Add tag").click()
    expect(notes.first).to_contain_text("#evening")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".note", has_text="#evening")).to_have_count(0)

    # A memory's own page: changed, undone, limited in time, approved of by nobody since it is the user's own.
    page.goto(f"{server.url}/memory/{oboe}/")
    keys.press("e")
    page.get_by_role("textbox", name="Memory", exact=True).fill("Nina plays the bassoon")
    page.wait_for_load_state()  # keys are heard from then on
    keys.press("Escape")
    expect(page.locator(".one-words")).to_have_text("Nina plays the oboe")
    page.get_by_role("link", name="Edit").click()
    page.get_by_role("textbox", name="Memory", exact=True).fill("Nina plays the cello")
    page.wait_for_load_state()
    keys.press("Control+Enter")
    expect(page.locator(".one-words")).to_have_text("Nina plays the cello")
    status.get_by_role("button", name="Undo").click()
    expect(page.locator(".one-words")).to_have_text("Nina plays the oboe")
    page.locator(".one-valid summary").click()
    page.get_by_label("Holds until").fill("2024-01-01T00:00")
    page.locator(".one-valid").get_by_role("button", name="Save").click()
    expect(page.get_by_text("until 1 January 2024").first).to_be_visible()

    # To a linked one, in the picture by keys, and to its page.
    page.get_by_role("link", name="As a picture").click()
    page.locator("svg [href*='/memory/'], svg a").first.focus()
    keys.press("+")
    spot = page.locator(f'svg a[href$="/memory/{band}/"]').first
    spot.focus()
    keys.press("Enter")
    page.wait_for_url(f"{server.url}/memory/{band}/")
    page.get_by_role("button", name="Archive").click()
    expect(status).to_contain_text("Archived “The band rehearses on Mondays”")
    status.get_by_role("button", name="Undo").click()

    # By when things were true, and by when they were learned.
    page.goto(f"{server.url}/memory/timeline/?month=2025-03")
    expect(page.locator("#timeline")).to_contain_text("rehearses on Mondays")
    page.get_by_role("link", name="When learned").or_(
        page.locator(".timeline-by a").nth(1)
    ).first.click()
    expect(page.locator("#timeline")).to_contain_text("Nina plays the oboe")

    # And gone for good.
    page.goto(f"{server.url}/memory/{oboe}/")
    page.get_by_role("link", name="Delete for good").click()
    page.get_by_role("button", name=re.compile("^Delete for good")).click()
    page.wait_for_url(re.compile(r"/memory/purges/"))
    assert rest(page, "GET", "/memories/?q=oboe")["count"] == 0


def test_a_tag_is_chosen_along_with_the_other_filters(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/memory/browse/", state=someone)
    for number, kind in enumerate(("fact", "preference")):
        rest(
            page,
            "POST",
            "/memories/",
            {"content": f"Tea number {number}", "kind": kind, "tags": ["drinks"]},
        )
    page.reload()
    page.locator(".note-filters [name=kind]").select_option("fact")
    page.wait_for_url("**/memory/browse/?kind=fact*")
    page.get_by_text("Dates, tags and categories").click()
    page.get_by_role("button", name="#drinks").click()
    page.wait_for_url("**tag=drinks*")
    assert "kind=fact" in page.url
    assert "since" not in page.url
    expect(page.get_by_label("Tag", exact=True)).to_have_value("drinks")
    expect(page.locator("#note-list .note")).to_have_count(1)
    page.get_by_label("Search memories").press("Enter")
    page.get_by_label("Tag", exact=True).fill("")
    page.get_by_label("Tag", exact=True).press("Enter")
    expect(page.get_by_label("Tag", exact=True)).to_have_count(0)
    assert "tag=" not in page.url


def test_a_button_that_the_server_cannot_follow_says_why(
    server: Server, someone: StorageState, open_page: Callable[..., Page], watch: Watch
) -> None:
    watch.allowed.append("status of 503")
    page = open_page(f"{server.url}/memory/browse/", state=someone)
    rest(page, "POST", "/memories/", {"content": "Nina plays the oboe"})
    page.reload()
    full = "The disk is full."
    page.route("**/edit/", lambda route: route.fulfill(status=503, content_type="text/plain", body=full))
    page.get_by_role("button", name="Edit this memory").click()
    expect(page.locator("#toasts")).to_contain_text(full)
    expect(page.locator(".note")).to_contain_text("Nina plays the oboe")


def test_what_was_written_is_asked_for_before_the_page_is_left_until_it_is_saved(
    server: Server, someone: StorageState, open_page: Callable[..., Page], watch: Watch
) -> None:
    watch.allowed.append("status of 422")  # what is refused
    page = open_page(f"{server.url}/memory/", state=someone)
    oboe = rest(page, "POST", "/memories/", {"content": "Nina plays the oboe"})["id"]
    note, field = page.locator(".note"), page.get_by_role("textbox", name="Memory", exact=True)
    away = page.locator('.sidebar a[href="/memory/"]').first
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    page.goto(f"{server.url}/memory/browse/")
    page.get_by_role("button", name="Edit this memory").click()
    note.locator(field).click()
    away.click()
    page.wait_for_url("**/memory/")
    page.goto(f"{server.url}/memory/browse/")
    page.get_by_role("button", name="Edit this memory").click()
    assert asked == []  # nothing was written
    note.locator(field).fill("Nina plays the cello")
    away.click(no_wait_after=True)
    eventually(lambda: page.evaluate("1") and asked)
    note.get_by_role("button", name="Save").click()
    expect(note).to_contain_text("Nina plays the cello")
    away.click()
    page.wait_for_url("**/memory/")
    assert asked == ["beforeunload"]

    page.goto(f"{server.url}/memory/{oboe}/?edit")
    field.fill("")
    page.get_by_role("button", name="Save", exact=True).first.click()
    expect(page.locator("main [aria-invalid=true]")).to_be_visible()
    away.click(no_wait_after=True)
    eventually(lambda: page.evaluate("1") and len(asked) == 2)
