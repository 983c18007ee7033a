"""The page of all conversations as a person uses it: a search leads to the message, a folder is made, emptied and deleted, and what
was said is saved as a file."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, StorageState, expect

from tests.browser.server import Server
from tests.waiting import eventually

FILL = """
import json
from apps.chat.conversations.folders import conversations_file, folder_create
from apps.chat.conversations.ingest import messages_ingest
from apps.chat.models import Conversation

def talk(session, title, texts):
    words = [{"role": "user", "content": text, "external_id": str(number)} for number, text in enumerate(texts)]
    place = messages_ingest(user_id=user.pk, session=session, channel="mail", messages=words, extract=False).conversation_id
    Conversation.objects.for_user(user).filter(pk=place).update(channel="chat", session="", title=title)
    return place

texts = [f"Row {number} of the seed list" for number in range(90)]
texts[49] = "The quince jelly stands on the upper shelf"
places = [talk("seeds", "On seeds", texts), talk("tools", "On tools", ["The spade is blunt"])]
garden = folder_create(user_id=user.pk, name="Garden")
conversations_file(user_id=user.pk, conversation_ids=places, folder_id=garden.pk)
print("MADE", json.dumps([str(place) for place in places]))
"""


@pytest.fixture
def gardener(server: Server, someone: StorageState) -> list[str]:
    """The ids of two conversations of `someone`, both in a folder; the first is long."""
    ids: list[str] = server.shell(someone, FILL)
    return ids


def test_a_hit_far_back_opens_at_its_message(
    server: Server, someone: StorageState, gardener: list[str], open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/conversations/", state=someone)
    field = page.get_by_role("searchbox", name="Search all conversations")
    field.fill("quince jelly")  # found while it is typed
    expect(page.get_by_role("link", name="Found")).to_have_attribute("aria-current", "page")
    row = page.locator("#conversation-page .conversation")
    expect(row).to_have_count(1)
    expect(row.locator("mark")).to_have_text("quince jelly")
    field.fill("")
    expect(row).to_have_count(2)
    field.fill("quince jelly")
    expect(row).to_have_count(1)
    row.locator(".conversation-link").click()
    page.wait_for_url(f"{server.url}/c/{gardener[0]}/**")
    pointed = page.locator(".turn-pointed")
    expect(pointed).to_be_focused()
    expect(pointed.locator(".bubble")).to_have_text("The quince jelly stands on the upper shelf")
    expect(pointed.locator(".bubble")).to_be_in_viewport()
    expect(page.locator(".bubble").last).not_to_be_in_viewport()


def test_a_list_that_comes_while_a_menu_is_open_takes_nothing_of_its_place_along(
    server: Server, gardener: list[str], open_page: Callable[..., Page], someone: StorageState
) -> None:
    assert gardener
    page = open_page(
        f"{server.url}/conversations/", state=someone
    )  # which fails where the console names an error
    held: list[Route] = []
    page.route(re.compile(r"/conversations/\?q=quince"), lambda route: held.append(route))
    page.get_by_role("searchbox", name="Search all conversations").fill("quince")
    eventually(lambda: page.evaluate("1") and held)
    rows = page.locator("#conversation-page .conversation")
    seeds = rows.filter(has_text="On seeds")
    seeds.get_by_role("button").first.click()
    expect(page.locator(".menu:popover-open")).to_be_visible()
    held[0].continue_()
    expect(rows).to_have_count(1)
    expect(rows.locator(".menu")).not_to_have_attribute("style", re.compile("."))
    seeds.get_by_role("button").first.click()
    button, menu = (
        seeds.get_by_role("button").first.bounding_box(),
        page.locator(".menu:popover-open").bounding_box(),
    )
    assert button is not None
    assert menu is not None
    assert 0 <= menu["y"] - (button["y"] + button["height"]) < 20


def test_a_conversation_is_saved_as_markdown(
    server: Server, someone: StorageState, gardener: list[str], open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/conversations/", state=someone, accept_downloads=True)
    page.locator("#conversation-page").get_by_role("button", name="Options for “On tools”").click()
    with page.expect_download() as saving:
        page.locator(".menu:popover-open").get_by_role("link", name="Save as Markdown").click()
    assert saving.value.suggested_filename.endswith(".md")
    assert "The spade is blunt" in Path(saving.value.path()).read_text()


def test_what_is_in_folders_is_dragged_out_and_outlives_them(
    server: Server, someone: StorageState, gardener: list[str], open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/conversations/", state=someone)
    rows = page.locator("#conversation-page .conversation")
    tools = rows.filter(has_text="On tools")
    where = rows.locator(".conversation-in")
    expect(where).to_have_text(["Garden", "Garden"])

    # Both are in a folder: the list beside the page still has a place for one that is dragged out, and so has the page.
    beside = page.locator("#conversations")
    beside.locator(".conversation-link", has_text="On tools").drag_to(
        beside.get_by_text("What you drag here")
    )
    expect(where).to_have_text(["Garden"])
    expect(beside.get_by_text("What you drag here")).to_have_count(0)
    toast = page.locator(".toast", has_text="out of its folder")
    expect(toast).to_contain_text("Took “\u2068On tools\u2069” out")  # whatever direction it has
    toast.get_by_role("button", name="Undo").click()
    expect(where).to_have_text(["Garden", "Garden"])
    chips = page.get_by_role("navigation", name="Folders")
    tools.locator(".conversation-link").drag_to(chips.get_by_role("link", name="No folder"))
    expect(where).to_have_text(["Garden"])
    chips.get_by_role("link", name="No folder").click()
    expect(page.locator("#conversation-page .conversation-link")).to_have_text(["On tools"])

    chips.get_by_role("link", name="Garden").click()
    expect(page.locator("#conversation-page .conversation-link")).to_have_text(["On seeds"])
    page.get_by_role("main").get_by_role("link", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("The conversation in it stays")
    dialog.get_by_role("button", name="Delete the folder").click()
    expect(page.get_by_role("status").first).to_contain_text("1 conversation stays in your list")
    expect(rows).to_have_count(2)
    expect(where).to_have_count(0)
    expect(chips.get_by_role("link", name="Garden")).to_have_count(0)
    expect(beside.locator(".conversation-link")).to_have_count(2)
