"""A whole conversation on the offline model: set up, tell, ask, correct, forget; with the server killed in between."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, StorageState, expect

from tests.browser.chat import Chat
from tests.browser.conftest import OWNER, PASSWORD, Watch
from tests.browser.server import Server
from tests.waiting import eventually

REST = """async ([method, path, body]) => {
  const { api } = await import("/static/js/core/api.js");
  try {
    return await api(method, "/api/v1" + path, body ?? undefined);
  } catch (error) {
    return { status: error.status };
  }
}"""

RECONNECTING = [r"WebSocket connection to", r"ERR_CONNECTION_REFUSED", r"status of 404"]


def rest(page: Page, method: str, path: str, body: Any = None) -> Any:
    """A REST call with the page's own session."""
    return page.evaluate(REST, [method, path, body])


def note_ids(page: Page, query: str) -> list[str]:
    """The notes a search finds, best first."""
    found = rest(page, "POST", "/search/", {"query": query, "sources": ["memory"]})
    return [hit["id"] for hit in found["results"]]


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server that was never started before, and that a test may kill."""
    server = Server(tmp_path / "data")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def prepared_server(tmp_path: Path) -> Iterator[Server]:
    """One with its first account, to be killed as well."""
    server = Server.prepared(tmp_path / "data")
    server.start()
    yield server
    server.stop()


def test_from_the_link_on_the_console_to_a_forgotten_allergy(
    own_server: Server, open_page: Callable[..., Page], watch: Watch
) -> None:
    watch.allowed += [*RECONNECTING, "status of 422"]  # the first password is refused
    page = open_page(own_server.setup_link)
    expect(page.get_by_label("User name")).to_be_focused()
    page.get_by_label("User name").fill(OWNER)
    page.get_by_label("Password").fill("short")
    page.get_by_role("button", name="Create the account").click()
    expect(page.get_by_text("too short")).to_be_visible()
    expect(page.get_by_label("Set-up code")).to_be_hidden()
    expect(page.get_by_label("User name")).to_have_value(OWNER)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create the account").click()
    page.wait_for_url(f"{own_server.url}/")
    expect(page.get_by_text("Offline mode.")).to_be_visible()
    chat = Chat(page)

    chat.say("remember that I'm allergic to shellfish")
    assert chat.tools() == ["Saved a memory"]
    [note] = rest(page, "GET", "/memories/")["results"]
    assert "shellfish" in note["content"]

    restart(own_server, page)
    expect(chat.turns).to_have_count(1)
    assert rest(page, "GET", f"/memories/{note['id']}/")["content"] == note["content"]

    chat.say("what do you know about food?")
    assert "shellfish" in chat.answer()

    turn = chat.send("actually I'm only allergic to prawns")
    expect(turn.locator(".bubble")).to_have_text("actually I'm only allergic to prawns")
    chat.wait_for(turn, "done")
    corrected = rest(page, "GET", f"/memories/{note['id']}/")
    assert "prawns" in corrected["content"]
    assert "shellfish" not in corrected["content"]
    assert any(
        "shellfish" in str(version)
        for version in rest(page, "GET", f"/memories/{note['id']}/history/")["results"]
    )
    texts = [
        hit["text"]
        for hit in rest(page, "POST", "/search/", {"query": "shellfish", "sources": ["memory"]})[
            "results"
        ]
    ]
    assert not any("shellfish" in text for text in texts)

    restart(own_server, page)
    expect(chat.turns).to_have_count(3)
    chat.say("forget my allergy")
    assert note_ids(page, "prawns allergy") == []
    assert rest(page, "GET", f"/memories/{note['id']}/") == {"status": 404}
    said = rest(
        page, "POST", "/search/", {"query": "allergic to shellfish", "sources": ["conversation"]}
    )
    assert any("shellfish" in hit["text"] for hit in said["results"])

    restart(own_server, page)
    expect(chat.turns).to_have_count(4)
    expect(page.locator(".bubble").last).to_have_text("forget my allergy")
    assert rest(page, "GET", f"/memories/{note['id']}/") == {"status": 404}
    page.reload()
    expect(chat.turns).to_have_count(4)
    expect(page.locator(".conversation-link")).to_have_count(1)


def restart(server: Server, page: Page) -> None:
    """The power goes, and comes back: the page finds its own way to the server again."""
    server.kill()
    expect(page.locator("#banner-lost")).to_be_visible()
    server.start()
    page.get_by_role("button", name="Try now").or_(page.locator("#message")).first.click()
    expect(page.locator("#banner-lost")).to_be_hidden()


def test_a_message_sent_while_the_server_is_away_goes_out_when_it_is_back(
    prepared_server: Server, open_page: Callable[..., Page], watch: Watch
) -> None:
    watch.allowed += RECONNECTING
    page = open_page(prepared_server.url, state=prepared_server.owner)
    chat = Chat(page)
    chat.say("remember that my bike is red")
    prepared_server.kill()
    expect(page.locator("#banner-lost")).to_be_visible()
    waiting = chat.send("remember that my car is blue")
    expect(waiting.get_by_text("Waiting for the connection")).to_be_visible()
    prepared_server.start()
    chat.wait_for(waiting, "done")
    contents = " ".join(note["content"] for note in rest(page, "GET", "/memories/")["results"])
    assert "bike" in contents
    assert "car" in contents
    page.reload()
    expect(chat.turns).to_have_count(2)


def test_two_tabs_show_the_same_conversation(
    server: Server, open_page: Callable[..., Page], someone: StorageState
) -> None:
    first = open_page(server.url, state=someone)
    one = Chat(first)
    one.say("remember that I like oolong tea")
    second = first.context.new_page()
    second.goto(first.url)
    two = Chat(second)
    expect(two.turns).to_have_count(1)
    one.say("what do you know about tea?")
    expect(two.turns).to_have_count(2)
    two.wait_for(two.last, "done")
    assert two.answer() == one.answer()
    two.say("remember that I take it without milk")
    expect(one.turns).to_have_count(3)


def test_surfaced_memories_can_be_corrected_and_deleted_in_place_and_undone(
    server: Server, open_page: Callable[..., Page], someone: StorageState
) -> None:
    page = open_page(server.url, state=someone, viewport={"width": 1500, "height": 900})
    chat = Chat(page)
    note = rest(
        page, "POST", "/memories/", {"content": "My favourite colour is green.", "importance": 5}
    )
    page.get_by_role("link", name="New conversation").first.click()
    chat.say("what do you know about my favourite colour?")
    card = chat.last.locator(".memory-card")
    expect(card).to_contain_text("favourite colour is green")

    card.get_by_role("button", name="Edit this memory").click()
    card.get_by_role("textbox").fill("My favourite colour is orange.")
    page.keyboard.press("Control+Enter")
    expect(card).to_contain_text("orange")
    assert rest(page, "GET", f"/memories/{note['id']}/")["content"] == "My favourite colour is orange."
    card.get_by_role("button", name="Undo").click()
    expect(card).to_contain_text("green")
    assert rest(page, "GET", f"/memories/{note['id']}/")["content"] == "My favourite colour is green."

    card.get_by_role("button", name="Delete this memory").click()
    expect(card).to_contain_text("Deleted")
    assert note_ids(page, "favourite colour") == []
    card.get_by_role("button", name="Undo").click()
    expect(card.get_by_role("button", name="Edit this memory")).to_be_visible()
    assert note_ids(page, "favourite colour") == [note["id"]]

    card.get_by_role("link", name="Open this memory").click()
    page.wait_for_url(f"{server.url}/memory/{note['id']}/")
    expect(page.get_by_role("heading", name="When it came up")).to_be_visible()
    expect(page.locator(".one-use").last).to_contain_text("what do you know about my favourite colour?")
    page.get_by_role("link", name="Edit").click()
    page.get_by_role("textbox", name="Memory", exact=True).fill("My favourite colour is violet.")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".one-words")).to_have_text("My favourite colour is violet.")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".one-words")).to_have_text("My favourite colour is green.")
    page.locator(".one-use").last.get_by_role("link").click()
    expect(page.locator(".turn-pointed")).to_contain_text("what do you know about my favourite colour?")
    page.wait_for_url(re.compile(r"/c/[0-9a-f-]{36}/$"))


def test_the_memories_of_one_turn_do_not_cover_those_of_the_next(
    server: Server, open_page: Callable[..., Page], someone: StorageState
) -> None:
    page = open_page(server.url, state=someone, viewport={"width": 1500, "height": 900})
    chat = Chat(page)
    for topic in ("favourite colour", "bicycle"):
        for number in range(4):
            rest(page, "POST", "/memories/", {"content": f"My {topic} is green, reason {number}."})
    chat.say("what do you know about my favourite colour?")
    chat.say("what do you know about my bicycle?")
    lists = page.locator(".surfaced-list")
    expect(lists.nth(0)).to_be_hidden()
    expect(lists.nth(1)).to_be_visible()
    chat.turns.first.locator(".surfaced summary").click()
    expect(lists.nth(0)).to_be_visible()
    expect(lists.nth(1)).to_be_hidden()
    page.reload()
    expect(lists.nth(1)).to_be_visible()
    expect(lists.nth(0)).to_be_hidden()


def test_what_a_tool_saved_can_be_corrected_in_its_card_and_what_it_deleted_brought_back(
    server: Server, open_page: Callable[..., Page], someone: StorageState
) -> None:
    page = open_page(server.url, state=someone)
    chat = Chat(page)
    saved = chat.tool("Saved a memory", chat.say("remember that my locker is number 12"))
    saved.get_by_role("button", name="Edit this memory").click()
    saved.get_by_role("textbox", name="Memory").fill("The user's locker is number 21.")
    saved.get_by_role("button", name="Save").click()
    expect(saved.locator(".memory-card")).to_contain_text("number 21")
    [note] = rest(page, "GET", "/memories/")["results"]
    assert note["content"] == "The user's locker is number 21."

    known = chat.say("remember that my locker is number 21")
    assert chat.tools(known) == ["Known already"]
    assert "I know already" in chat.answer(known)
    assert len(rest(page, "GET", "/memories/")["results"]) == 1

    # What was changed elsewhere while it was edited here does not give way unseen, nor by undoing.
    card = saved.locator(".memory-card")
    saved.get_by_role("button", name="Edit this memory").click()
    saved.get_by_role("textbox", name="Memory").fill("The user's locker is number 33.")
    rest(page, "PATCH", f"/memories/{note['id']}/", {"content": "The user's locker is 21, on the left."})
    saved.get_by_role("button", name="Save").click()
    expect(card.get_by_role("alert")).to_contain_text("Changed elsewhere meanwhile")
    expect(card.get_by_role("alert")).to_contain_text("21, on the left")
    assert rest(page, "GET", "/memories/")["results"][0]["content"].endswith("on the left.")
    saved.get_by_role("button", name="Save").click()
    expect(card).to_contain_text("number 33")
    rest(page, "PATCH", f"/memories/{note['id']}/", {"content": "The user's locker is number 21."})
    card.get_by_role("button", name="Undo").click()
    expect(card).to_contain_text("number 21")
    assert rest(page, "GET", "/memories/")["results"][0]["content"] == "The user's locker is number 21."

    deleted = chat.tool("Forgot a memory", chat.say("forget my locker"))
    assert rest(page, "GET", "/memories/")["results"] == []
    expect(deleted.locator(".tool-detail")).to_have_text("Your locker is number 21.")
    deleted.get_by_role("button", name="Undo").click()
    expect(deleted.get_by_role("button", name="Edit this memory")).to_be_visible()
    expect(deleted.locator(".memory-card")).to_contain_text("number 21")
    assert [one["id"] for one in rest(page, "GET", "/memories/")["results"]] == [note["id"]]


def test_a_menu_that_is_open_stays_when_the_list_comes_anew(
    server: Server, open_page: Callable[..., Page], someone: StorageState
) -> None:
    page = open_page(server.url, state=someone)
    Chat(page).say("remember that the boiler was serviced in May")
    rows, menu = page.locator(".conversation"), page.locator(".menu:popover-open")
    expect(rows).to_have_count(1)
    held: list[Route] = []
    lists = re.compile(r"/conversations/\?q=")
    page.route(lists, lambda route: held.append(route))
    page.get_by_role("searchbox", name="Search conversations").fill("oboe")
    eventually(lambda: page.evaluate("1") and held)
    page.evaluate("addEventListener('htmx:before:swap', () => (window.came = true))")
    rows.first.get_by_role("button").first.click()
    expect(menu).to_be_visible()
    held[0].continue_()
    eventually(lambda: page.evaluate("window.came ?? false"))
    page.unroute(lists)
    expect(menu).to_be_visible()
    expect(rows).to_have_count(1)
    page.keyboard.press("Escape")
    expect(rows).to_have_count(0)


def test_conversations_are_found_renamed_and_deleted_in_the_sidebar(
    server: Server, open_page: Callable[..., Page], someone: StorageState
) -> None:
    page = open_page(server.url, state=someone)
    chat = Chat(page)
    chat.say("remember that the boiler was serviced in May")
    page.locator("#new-chat").click()
    page.wait_for_url(f"{server.url}/")
    chat.say("remember that Nina plays the oboe")
    rows = page.locator(".conversation")
    expect(rows).to_have_count(2)

    rows.first.hover()
    rows.first.get_by_role("button").first.click()
    button, menu = (
        rows.first.get_by_role("button").first.bounding_box(),
        page.locator(".menu:popover-open").bounding_box(),
    )
    assert button is not None
    assert menu is not None
    assert 0 <= menu["y"] - (button["y"] + button["height"]) < 20
    page.get_by_role("button", name="Rename").click()
    title = page.get_by_role("textbox", name="Title")
    title.fill("Nina's music")
    title.press("Enter")
    expect(rows.first).to_contain_text("Nina's music")
    expect(page.locator("#chat-title")).to_have_text("Nina's music")
    assert page.title() == "Nina's music · Izzy"

    pinned = page.locator('[data-group="Pinned"] .conversation')
    nina = page.locator(".conversation", has_text="Nina's music")
    for what in ("Pin", "Archive"):
        nina.hover()
        nina.get_by_role("button").first.click()
        page.get_by_role("button", name=what, exact=True).click()
        expect(pinned).to_have_count(1 if what == "Pin" else 0)
    expect(rows).to_have_count(1)
    page.locator(".toast", has_text="Archived “").get_by_role("button", name="Undo").click()
    expect(pinned).to_contain_text("Nina's music")

    page.get_by_role("searchbox", name="Search conversations").fill("boiler")
    expect(rows).to_have_count(1)
    rows.first.locator(".conversation-link").click()
    expect(page.locator(".bubble")).to_have_text("remember that the boiler was serviced in May")
    page.get_by_role("searchbox", name="Search conversations").fill("")
    expect(rows).to_have_count(2)

    boiler = page.locator(".conversation", has=page.locator('[aria-current="page"]'))
    boiler.get_by_role("button").first.click()
    page.get_by_role("link", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("Look at it first").click()
    expect(dialog.get_by_role("link", name="The boiler was serviced in May.")).to_be_visible()
    dialog.get_by_label("Delete the memory that came from it, too").check()
    dialog.get_by_role("button", name="Delete").click()
    expect(rows).to_have_count(1)
    page.wait_for_url(f"{server.url}/")
    deleted = page.locator(".banner", has_text="Deleted “")
    expect(deleted).to_contain_text("and 1 memory")
    assert rest(page, "GET", "/memories/?q=boiler")["count"] == 0
    deleted.get_by_role("button", name="Undo").click()
    expect(page.locator(".bubble")).to_have_text("remember that the boiler was serviced in May")
    assert rest(page, "GET", "/memories/?q=boiler")["count"] == 1
    expect(rows).to_have_count(2)

    # Beside every page: into a folder by dragging, back by the toast, in again, and out by dragging onto the list.
    made = {name: rest(page, "POST", "/folders/", {"name": name})["id"] for name in ("Music", "Home")}
    page.reload()
    home = page.locator(f'#conversations .folder[data-folder="{made["Home"]}"]')
    boiler = page.locator("#conversations .conversation-link", has_text="boiler")
    for go_back in (True, False):
        expect(home).to_contain_text("Empty")
        boiler.drag_to(home.get_by_role("button", name="Home"))
        expect(home.locator(".conversation")).to_have_count(1)
        if go_back:
            page.locator(".toast", has_text="Moved “").get_by_role("button", name="Undo").click()
    boiler.drag_to(page.locator('[data-group="Pinned"] h2'))
    expect(home).to_contain_text("Empty")

    page.locator("#new-chat").click()
    page.wait_for_url(f"{server.url}/")
    boiler = page.locator(".conversation", has_text="boiler")
    boiler.hover()
    boiler.get_by_role("button").first.click()
    page.get_by_role("link", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    gone = page.locator(".conversation-deleted")
    expect(gone).to_contain_text("Deleted “")
    expect(gone.get_by_role("button", name="Undo")).to_be_focused()
    page.keyboard.press("Enter")
    expect(gone).to_have_count(0)
    expect(boiler.locator(".conversation-link")).to_be_focused()
    boiler.get_by_role("button").first.click()
    page.get_by_role("link", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(gone).to_have_count(1)
    page.reload()
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("Nina's music")

    # On their page: into a folder by dragging, and back by the toast; then by the menu and the boxes, without a mouse.
    page.goto(f"{server.url}/conversations/")
    shown = page.locator("#conversation-page .conversation")
    where = shown.locator(".conversation-in")
    shown.locator(".conversation-link").drag_to(
        page.locator(f'.folder-chips [data-folder="{made["Music"]}"]')
    )
    expect(where).to_have_text("Music")
    page.locator(".toast", has_text="Moved “").get_by_role("button", name="Undo").click()
    expect(where).to_have_count(0)
    shown.get_by_role("button", name="Options for").focus()
    page.keyboard.press("Enter")
    move = page.get_by_role("link", name="Move to folder").first
    expect(move).to_be_visible()
    move.focus()
    page.keyboard.press("Enter")
    dialog.get_by_label("Home").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(where).to_have_text("Home")
    shown.get_by_role("checkbox").focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Delete…").focus()
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("heading")).to_have_text("Delete 1 conversation?")
    dialog.get_by_role("button", name="Delete").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".done")).to_contain_text("Deleted 1 conversation.")
    expect(shown).to_have_count(0)
    page.keyboard.press("Enter")  # on Undo, which has the focus
    expect(where).to_have_text("Home")

    # A model and instructions of its own, on the page about it.
    shown.get_by_role("button", name="Options for").click()
    page.locator(".menu:popover-open").get_by_role("link", name="About and settings").click()
    page.get_by_label("Instructions").fill("Answer in rhymes.")
    page.wait_for_load_state()  # keys are heard from then on
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("status").first).to_contain_text("Saved.")
    expect(page.get_by_label("Instructions")).to_have_value("Answer in rhymes.")


def test_the_sidebar_of_another_tab_follows_what_is_begun_renamed_and_deleted(
    server: Server, open_page: Callable[..., Page], someone: StorageState
) -> None:
    page = open_page(server.url, state=someone)
    chat = Chat(page)
    other = page.context.new_page()
    other.goto(f"{server.url}/memory/")
    followed, rows = other.locator(".conversation"), page.locator(".conversation")
    expect(other.get_by_text("Your conversations will be listed here.")).to_be_visible()
    offered = ("Teach Izzy something", "plums")  # by an empty chat, the second time what was talked of
    for said, offer in zip(
        ("what do you know about plums?", "what do you know about figs?"), offered, strict=True
    ):
        page.locator("#new-chat").click()
        expect(page.locator("#suggestions")).to_contain_text(offer)
        chat.say(said)
    expect(followed).to_have_count(2)
    expect(followed.first).to_contain_text("figs")
    expect(rows.first.locator('[aria-current="page"]')).to_have_count(1)

    options = rows.nth(1).get_by_role("button").first
    rows.nth(1).hover()
    options.click()
    page.get_by_role("button", name="Rename").click()
    page.get_by_role("textbox", name="Title").fill("Stone fruit")
    page.keyboard.press("Control+Enter")
    expect(rows.nth(1).locator(".conversation-link")).to_be_focused()
    expect(followed.nth(1)).to_contain_text("Stone fruit")

    options.click()
    page.get_by_role("link", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(options).to_be_focused()
    options.click()
    page.get_by_role("link", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator(".conversation-deleted").get_by_role("button", name="Undo")).to_be_focused()
    expect(followed).to_have_count(1)

    other.goto(server.url)
    expect(other.locator("#suggestions")).to_contain_text("figs")
    chat.field.fill("half a thought")
    address = {"X-CSRFToken": str(other.locator('meta[name="csrf-token"]').get_attribute("content"))}
    conversation = page.url.rstrip("/").split("/")[-1]
    other.request.post(
        f"{server.url}/c/{conversation}/delete/", headers=address | {"Referer": server.url}
    )
    page.wait_for_url(f"{server.url}/")
    expect(chat.field).to_have_value("half a thought")
    expect(page.get_by_text("That conversation is no longer there")).to_be_visible()
    expect(followed).to_have_count(0)
    expect(other.locator("#suggestions")).not_to_contain_text("figs")


def test_going_back_in_the_browser_goes_back_to_the_conversation_before(
    server: Server, open_page: Callable[..., Page], someone: StorageState
) -> None:
    page = open_page(server.url, state=someone)
    chat = Chat(page)
    chat.say("remember that the key is under the pot")
    first = page.url
    page.locator("#new-chat").click()
    chat.say("remember that the pot is blue")
    assert re.search(r"/c/[0-9a-f-]{36}/$", page.url)
    page.go_back()
    page.go_back()
    page.wait_for_url(first)
    expect(page.locator(".bubble")).to_have_text("remember that the key is under the pot")
    listeners = listeners_of(page)
    for _ in range(3):
        page.go_forward()
        expect(page.locator(".bubble")).to_have_count(0)
        page.go_back()
        expect(page.locator(".bubble")).to_have_text("remember that the key is under the pot")
    eventually(
        lambda: listeners_of(page) <= listeners, lambda: "conversations that were left stay in memory"
    )


def listeners_of(page: Page) -> float:
    """How many listeners live, of elements that are on the page and of those that something still holds."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")
    for _ in range(2):
        devtools.send("HeapProfiler.collectGarbage")
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    devtools.detach()
    return next(float(metric["value"]) for metric in metrics if metric["name"] == "JSEventListeners")


def test_retry_and_edit_keep_what_they_replace_as_versions(
    server: Server, open_page: Callable[..., Page], someone: StorageState
) -> None:
    page = open_page(server.url, state=someone)
    chat = Chat(page)
    chat.say("what do you know about pears?")
    first = chat.last.get_attribute("data-turn")
    chat.last.get_by_role("button", name="Try again").click()
    expect(chat.last).not_to_have_attribute("data-turn", first or "")
    expect(chat.turns).to_have_count(1)
    chat.wait_for(chat.last, "done")
    chat.last.hover()
    chat.last.get_by_role("button", name="Edit and send again").click()
    expect(chat.field).to_have_value("what do you know about pears?")
    chat.field.fill("what do you know about apples?")
    chat.field.press("Enter")
    expect(page.locator(".bubble")).to_have_text("what do you know about apples?")
    chat.wait_for(chat.last, "done")
    page.reload()
    expect(page.locator(".bubble")).to_have_text(["what do you know about apples?"])
    versions = page.get_by_role("group", name="Version 3 of 3")
    versions.get_by_role("button", name="Version before").press("Enter")
    expect(page.locator(".bubble")).to_have_text(["what do you know about pears?"])
    expect(page.get_by_role("group", name="Version 2 of 3")).to_be_visible()
    expect(page.get_by_role("button", name="Version before")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("group", name="Version 1 of 3")).to_be_visible()
    expect(page.get_by_role("button", name="Version after")).to_be_focused()
    chat.say("list my memories")
    expect(chat.turns).to_have_count(2)


def test_what_is_being_written_outlives_an_edit_another_conversation_and_a_reload(
    server: Server, open_page: Callable[..., Page], someone: StorageState
) -> None:
    page = open_page(server.url, state=someone)
    chat = Chat(page)
    chat.say("what do you know about plums?")
    chat.field.fill("half a thought")
    chat.last.hover()
    chat.last.get_by_role("button", name="Edit and send again").click()
    chat.field.fill("what do you know about quinces?")
    page.locator("#new-chat").click()
    expect(chat.field).to_have_value("")
    page.locator(".conversation-link").click()
    expect(chat.field).to_have_value("what do you know about quinces?")
    page.reload()
    expect(page.get_by_text("Sending makes a new version")).to_be_visible()
    expect(chat.field).to_have_value("what do you know about quinces?")
    chat.field.press("Enter")
    expect(page.locator(".bubble")).to_have_text("what do you know about quinces?")
    expect(chat.field).to_have_value("half a thought")
    chat.wait_for(chat.last, "done")
    page.reload()
    expect(chat.field).to_have_value("half a thought")


def test_who_signs_in_next_in_a_tab_gets_nothing_that_the_one_before_left_unsent(
    server: Server, open_page: Callable[..., Page], someone: StorageState
) -> None:
    page = open_page(server.url, state=someone)
    chat = Chat(page)
    page.wait_for_selector("#composer[data-ready]")
    chat.field.fill("a letter to my lawyer")
    page.evaluate(
        """async () => {
          const { Outbox } = await import("/static/js/chat/drafts.js");
          new Outbox().add({ type: "message", text: "tell nobody", client_id: crypto.randomUUID() });
        }"""
    )
    page.goto(f"{server.url}/healthz")  # nothing is sent from here
    page.context.clear_cookies()
    page.context.add_cookies(server.someone()["cookies"])  # type: ignore[arg-type]
    page.goto(server.url)
    page.wait_for_selector("#composer[data-ready]")
    expect(chat.field).to_have_value("")
    chat.say("what do you know about plums?")
    expect(page.locator(".bubble")).to_have_text("what do you know about plums?")
    page.context.clear_cookies()
    page.context.add_cookies(someone["cookies"])  # type: ignore[arg-type]
    page.goto(server.url)
    page.wait_for_selector("#composer[data-ready]")
    expect(chat.field).to_have_value("")
    expect(chat.turns).to_have_count(0)


def test_the_chat_tells_the_time_by_the_users_clock_and_as_every_other_page(
    server: Server, open_page: Callable[..., Page], someone: StorageState
) -> None:
    page = open_page(server.url, state=someone, timezone_id="Asia/Tokyo", locale="de-DE")
    Chat(page).say("what do you know about clocks?")
    expect(page.locator(".user time")).to_have_text(re.compile(r"^today, \d\d:\d\d$"))
    page.goto(f"{page.url}log/")
    written = """async (there) => {
      const { moment } = await import("/static/js/chat/format.js");
      const here = moment(there.dateTime);
      return [here.textContent, here.title, there.textContent, there.title];
    }"""
    words, whole, *there = page.locator(".decision-time time").evaluate(written)
    assert [words, whole] == there


def test_a_suggestion_sends_its_message(
    server: Server, open_page: Callable[..., Page], someone: StorageState
) -> None:
    page = open_page(server.url, state=someone)
    page.get_by_role("button", name="List my memories").click()
    chat = Chat(page)
    chat.wait_for(chat.last, "done")
    expect(page.locator(".bubble")).to_have_text("List my memories")


def test_a_conversation_without_memory_says_so_and_uses_none(
    server: Server, open_page: Callable[..., Page], someone: StorageState
) -> None:
    page = open_page(server.url, state=someone)
    rest(page, "POST", "/memories/", {"content": "The spare key hangs in the cellar.", "importance": 5})
    page.get_by_role("checkbox", name="Use my memories").uncheck()
    chat = Chat(page)
    chat.say("where does the spare key hang?")
    expect(page.locator(".memory-card")).to_have_count(0)
    page.reload()
    expect(page.get_by_text("This conversation works without memories.")).to_be_visible()


def test_the_list_goes_on_when_a_deletion_can_no_longer_be_undone(
    server: Server, open_page: Callable[..., Page], someone: StorageState
) -> None:
    page = open_page("about:blank", state=someone)
    page.clock.install()
    page.goto(server.url)
    Chat(page).say("remember that the boiler was serviced in May")
    page.locator("#new-chat").click()
    rows = page.locator("#conversations .conversation-link")
    expect(rows).to_have_count(1)
    rows.first.hover()
    page.get_by_role("button", name="Options for").first.click()
    page.get_by_role("link", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    gone = page.locator(".conversation-deleted")
    expect(gone.get_by_role("button", name="Undo")).to_be_focused()
    rest(page, "POST", "/conversations/", {"title": "From elsewhere"})
    page.clock.fast_forward("02:10")
    expect(gone).to_have_count(0)
    expect(page.locator("#new-chat")).to_be_focused()
    page.clock.fast_forward("00:10")
    expect(rows).to_have_text(["From elsewhere"])
