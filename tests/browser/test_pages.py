"""The pages: no console error, nothing refused by the content security policy, and what is done on them."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, StorageState, expect

from tests.browser.audit import widths
from tests.browser.chat import Chat
from tests.browser.conftest import PHONE, Watch
from tests.browser.server import Server


def test_pages_open_without_a_complaint(
    server: Server, owner: StorageState, open_page: Callable[..., Page]
) -> None:
    """Also of what these load later. All others are opened, and looked at, in test_every_page.py."""
    page = open_page(server.url, state=owner)
    for path in ("/", "/memory/", "/api/docs/", "/admin/"):
        page.goto(server.url + path)
        page.wait_for_load_state("networkidle")
        assert page.title(), path


def test_a_long_conversation_is_not_wider_than_a_phone(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=someone, **PHONE)
    chat = Chat(page)
    chat.say("remember that the word is " + "Rindfleischetikettierungsueberwachung" * 6)
    chat.say("what do you know about words?")
    for card in page.locator(".tool summary").all():
        card.click()
    assert widths(page) == []


def test_an_empty_chat_is_read_from_its_top(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=someone, **(PHONE | {"viewport": {"width": 360, "height": 560}}))
    page.wait_for_selector("#composer[data-ready]")
    page.wait_for_timeout(200)
    assert page.evaluate("document.getElementById('chat-scroll').scrollTop") == 0
    expect(page.get_by_role("button", name="Jump to latest")).to_be_hidden()


def test_a_menu_that_was_open_leaves_nothing_behind_for_the_list_that_replaces_it(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    """The console's complaint about an inline style fails this test."""
    page = open_page(server.url, state=someone)
    Chat(page).say("remember that the boiler was serviced in May")
    row = page.locator(".conversation").first
    row.hover()
    row.get_by_role("button").first.click()
    expect(page.locator(".menu:popover-open")).to_be_visible()
    page.keyboard.press("Escape")
    with page.expect_response("**/conversations/?q=boiler*"):
        page.get_by_role("searchbox", name="Search conversations").fill("boiler")
    expect(page.locator(".conversation")).to_have_count(1)
    page.wait_for_timeout(200)


def test_a_menu_stays_within_a_low_window(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=someone, viewport={"width": 1280, "height": 330})
    Chat(page).say("remember that the boiler was serviced in May")
    row = page.locator(".conversation").first
    row.hover()
    row.get_by_role("button").first.click()
    menu = page.locator(".menu:popover-open").bounding_box()
    assert menu is not None
    assert menu["y"] >= 0
    assert menu["y"] + menu["height"] <= 330


def test_the_drawer_opens_and_closes_on_a_phone(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=someone, **PHONE)
    sidebar = page.locator("#sidebar")
    expect(sidebar).to_be_hidden()
    page.get_by_role("button", name="Open menu").click()
    expect(sidebar).to_be_visible()
    expect(page.get_by_role("button", name="Close menu").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(sidebar).to_be_hidden()
    expect(page.get_by_role("button", name="Open menu")).to_be_focused()
    page.get_by_role("button", name="Open menu").click()
    page.get_by_role("link", name="Memories").click()
    page.wait_for_url(f"{server.url}/memory/")


def test_the_theme_follows_the_system_until_one_is_chosen(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=someone, color_scheme="dark")
    background = "() => getComputedStyle(document.documentElement).backgroundColor"
    dark = page.evaluate(background)
    switch = page.get_by_role("button", name="Theme: system")
    switch.click()
    light = page.evaluate(background)
    assert light != dark
    page.reload()
    assert page.evaluate(background) == light


@pytest.mark.parametrize(
    ("path", "heading", "way"),
    [
        ("/nothing/here/", "Nothing here", "Back to Izzy"),
        ("/c/not-an-id/", "This conversation is not here", "New conversation"),
    ],
)
def test_an_address_that_is_not_there_has_a_page_that_leads_back(
    path: str,
    heading: str,
    way: str,
    server: Server,
    owner: StorageState,
    open_page: Callable[..., Page],
    watch: Watch,
) -> None:
    watch.allowed.append("status of 404")
    page = open_page(server.url + path, state=owner)
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    page.get_by_role("main").get_by_role("link", name=way).click()
    page.wait_for_url(f"{server.url}/")


def test_the_filters_of_the_memories_fold_away_on_a_phone(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/memory/browse/", state=someone, **PHONE)
    expect(page.locator(".note-filters")).to_have_count(0)  # nothing to filter yet
    page.get_by_role("textbox", name="Memory", exact=True).fill("The piano tuner is called Ferdinand.")
    page.get_by_role("button", name="Remember this").click()
    expect(page.locator(".note")).to_be_visible()
    page.goto(f"{server.url}/memory/browse/?kind=decision")
    kinds = page.get_by_role("combobox", name="Kind")
    expect(kinds).to_be_hidden()
    page.get_by_text("Filters and order, 1 set").locator("..").click()
    kinds.select_option("")
    expect(page.locator(".note")).to_contain_text("Ferdinand")


def test_the_description_of_the_interface_is_dark_in_the_dark(
    server: Server, owner: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/api/docs/", state=owner, color_scheme="dark")
    expect(page.locator(".opblock").first).to_be_visible()
    ground = "() => getComputedStyle(document.querySelector('.swagger-ui')).backgroundColor"
    red, green, blue = (int(part) for part in re.findall(r"\d+", page.evaluate(ground))[:3])
    assert max(red, green, blue) < 60
    page.get_by_role("link", name="Back to Izzy").click()
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()


def test_signing_in_and_out(
    server: Server, owner: StorageState, open_page: Callable[..., Page], watch: Watch
) -> None:
    watch.allowed.append("status of 422")
    page = open_page(f"{server.url}/memory/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{server.url}/memory/")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_token_is_shown_once_and_can_be_revoked(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/settings/tokens/", state=someone)
    page.get_by_label("Name").fill("laptop")
    page.get_by_role("button", name="Make the token").click()
    expect(page.locator("#secret")).to_contain_text("izzy_")
    page.goto(f"{server.url}/settings/tokens/")
    expect(page.locator("#secret")).to_have_count(0)
    page.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("button", name="Revoke")).to_have_count(0)


def test_preferences_are_kept(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/settings/", state=someone)
    page.get_by_label("What should Izzy call you?").fill("Al")
    page.once("dialog", lambda dialog: dialog.dismiss())  # the browser asks: stay
    page.get_by_role("link", name="Capabilities").first.click()
    page.wait_for_url(f"{server.url}/settings/")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_contain_text("saved")
    page.goto(server.url)
    expect(page.get_by_role("heading", name="Hello, Al.")).to_be_visible()


def test_a_memory_is_added_found_edited_deleted_and_brought_back(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/memory/browse/", state=someone)
    page.get_by_role("textbox", name="Memory", exact=True).fill(
        "The <b>piano</b> tuner is called Ferdinand."
    )
    page.get_by_role("button", name="Remember this").click()
    note = page.locator(".note")
    expect(note).to_contain_text("The <b>piano</b> tuner is called Ferdinand.")
    page.reload()
    note.get_by_role("button", name="Edit this memory").click()
    note.get_by_role("textbox", name="Memory", exact=True).fill("The piano tuner is called Francis.")
    note.get_by_role("button", name="Save").click()
    expect(note).to_contain_text("Francis")
    page.get_by_role("searchbox", name="Search memories").fill("who tunes the piano")
    expect(note).to_contain_text("match")  # the search's answer has replaced the list
    expect(note).to_contain_text("Francis")
    note.get_by_role("button", name="More for this memory").click()
    note.get_by_role("button", name="Delete").click()
    note.get_by_role("button", name="Undo").click()
    expect(note.get_by_role("button", name="Edit this memory")).to_be_visible()


def test_when_a_memory_comes_up_is_shown_and_edited(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/memory/browse/", state=someone)
    page.get_by_role("textbox", name="Memory", exact=True).fill("The user is allergic to peanuts.")
    page.get_by_role("button", name="Remember this").click()
    note = page.locator("#note-list .note").first
    expect(note.get_by_text("by Izzy")).to_be_visible()
    made = note.locator(".note-occasions").inner_text()
    for number, text in enumerate(("The user is allergic to walnuts.", "Zorp.")):
        note.get_by_role("button", name="Edit this memory").click()
        if number:
            note.get_by_label("When it matters").fill("at the fair\n\nbaking a cake")
            note.get_by_role("button", name="Save").click()
            expect(note.get_by_text("yours")).to_be_visible()
            note.get_by_role("button", name="Edit this memory").click()
        note.get_by_role("textbox", name="Memory", exact=True).fill(text)
        note.get_by_role("button", name="Save").click()
        expect(note.get_by_role("status")).to_have_text(
            "Yours stay: look whether they still fit." if number else "Made anew for the new text."
        )
    expect(note.locator(".note-occasions")).to_contain_text("at the fair")
    assert made


def test_everything_can_be_done_with_the_keyboard_alone(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=someone)
    chat, keys = Chat(page), page.keyboard
    expect(chat.field).to_be_focused()
    keys.type("remember that my desk is by the window")
    keys.press("Enter")
    chat.wait_for(chat.last, "done")
    expect(chat.field).to_be_focused()

    tool = chat.last.locator(".tool summary")
    tool.focus()
    keys.press("Enter")
    expect(chat.last.locator(".tool-body")).to_contain_text("desk is by the window")

    keys.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    keys.press("Escape")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_hidden()
    keys.press("/")
    expect(chat.field).to_be_focused()
    keys.press("ArrowUp")
    expect(chat.field).to_have_value("remember that my desk is by the window")
    keys.press("Escape")
    expect(chat.field).to_have_value("")
    keys.press("Alt+n")
    page.wait_for_url(f"{server.url}/")
    expect(chat.field).to_be_focused()
    keys.press("Alt+k")
    expect(page.get_by_role("searchbox", name="Search conversations")).to_be_focused()
    keys.press("Alt+m")
    page.wait_for_url(f"{server.url}/memory/")


def test_focus_is_always_visible(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/settings/", state=someone)
    seen = 0
    for _ in range(25):
        page.keyboard.press("Tab")
        visible = page.evaluate("""() => {
          const element = document.activeElement;
          if (!element || element === document.body) return null;
          const style = getComputedStyle(element);
          return (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
        }""")
        assert visible is not False
        seen += visible is True
    assert seen > 10


def test_markup_in_notes_titles_and_names_is_inert(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    evil = '"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script><b hx-get="/sign-out/" hx-trigger="load">'
    page = open_page(f"{server.url}/settings/", state=someone)
    page.get_by_label("What should Izzy call you?").fill(evil[:80])
    page.get_by_role("button", name="Save").click()
    page.goto(server.url)
    chat = Chat(page)
    chat.say(f"remember that {evil}")
    link = page.locator(".conversation-link")
    expect(link).to_contain_text("<img")
    with page.expect_response("**/conversations/?q=*"):
        page.get_by_role("searchbox", name="Search conversations").fill("<img src=x")
    page.reload()
    expect(link).to_contain_text("<img")
    page.goto(f"{server.url}/memory/review/")
    expect(page.locator(".review").first).to_contain_text("<script>")
    page.get_by_role("button", name="Accept", exact=True).click()
    expect(page.locator(".review-done")).to_be_visible()
    for path in ("/memory/review/", "/memory/", "/memory/browse/?q=img", "/settings/", "/"):
        page.goto(server.url + path)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("window.hacked") is None
        expect(page.locator("img[onerror], [hx-get='/sign-out/']")).to_have_count(0)
    page.goto(f"{server.url}/memory/browse/")
    expect(page.locator(".note").first).to_contain_text("<script>")


def test_memories_are_tried_brought_in_taken_out_and_brought_in_again(
    server: Server, open_page: Callable[..., Page], someone: StorageState, watch: Watch
) -> None:
    watch.allowed.append("status of 422")
    page = open_page(f"{server.url}/settings/data/", state=someone, **PHONE)
    newest = page.locator(".transfer").first
    cells = newest.locator("tbody tr", has_text="Memories").locator("td")
    bring = page.get_by_role("button", name="Bring it in")

    def give(*ticks: str, text: str = "") -> None:
        page.get_by_label("Or paste it").fill(text)
        for label in ticks:
            page.get_by_label(label).check()
        bring.click()
        expect(newest.locator(".badge").first).to_have_text("Done")

    expect(page.get_by_role("heading", name="Nothing was brought in yet")).to_be_visible()
    bring.click()
    expect(page.locator(".notice-danger, .error").first).to_be_visible()
    page.get_by_text("What can be brought in, and how to get it").click()
    expect(page.get_by_text("Data controls, Export data")).to_be_visible()

    listed = "- Likes plum cake\n- Has a brother in Graz\n"
    give("Only try it", text=listed)
    expect(newest).to_contain_text("Would be")
    expect(cells.nth(1)).to_have_text("2")
    give("I know what it says, and it is right", text=listed)
    expect(newest).to_contain_text("Brought in")
    with page.expect_download() as begun:
        page.get_by_role("link", name="Everything, as JSON Lines").click()
    page.get_by_label("File", exact=True).set_input_files(begun.value.path())
    give("This is my own export")
    expect(cells.nth(1)).to_have_text("0")
    page.goto(f"{server.url}/memory/browse/")
    expect(page.locator(".note")).to_have_count(2)


def test_saved_preferences_leave_alone_what_was_changed_elsewhere_meanwhile(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    server.shell(
        someone,
        "from apps.accounts.services import preferences_update\n"
        "preferences_update(user_id=user.pk, instructions='One line.\\nAnother.', capture=True)",
    )
    page, other = (open_page(server.url + "/settings/", state=someone) for _ in range(2))
    other.get_by_text("Single tools").click()
    other.get_by_label("Delete a conversation").select_option("never")
    other.get_by_label("Instructions").fill("Be brief.")
    other.get_by_label("Remember by itself").uncheck()
    other.get_by_role("group", name="Tools at hand").get_by_role("checkbox").first.uncheck()
    other.get_by_role("button", name="Save").click()
    expect(other.get_by_text("Your preferences are saved.")).to_be_visible()

    page.get_by_label("What should Izzy call you?").fill("Mira")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Your preferences are saved.")).to_be_visible()
    expect(page.get_by_label("What should Izzy call you?")).to_have_value("Mira")
    expect(page.get_by_label("Instructions")).to_have_value("Be brief.")
    expect(page.get_by_label("Remember by itself")).not_to_be_checked()
    tools = page.get_by_role("group", name="Tools at hand").get_by_role("checkbox")
    expect(tools.first).not_to_be_checked()
    expect(tools.nth(2)).to_be_checked()
    expect(page.get_by_label("Delete a conversation")).to_have_value("never")
    # What is emptied is emptied.
    page.get_by_label("Instructions").fill("")
    for tool in tools.all():
        tool.uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Instructions")).to_have_value("")
    expect(page.get_by_role("checkbox", checked=True).and_(tools)).to_have_count(0)
