"""Choices among memories: whose words they are, when, of which kind, which of two that contradict each other; and where
each is from and where it can be taken."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, StorageState, expect

from tests.browser.server import Server

FILL = """
import json
from datetime import datetime, timezone
from apps.capabilities.catalog.drafts import Draft
from apps.capabilities.catalog.versions import capability_create
from apps.chat.conversations.ingest import messages_ingest
from apps.chat.models import Conversation, Message
from apps.memory.files.services import file_write
from apps.memory.models import Memory, Origin, Trust
from apps.memory.notes.changes import memory_update
from apps.memory.notes.creation import memory_bulk_create, memory_create
from apps.memory.notes.joining import edge_create
from apps.memory.notes.revisions import Change

def note(content, change=None, **fields):
    return memory_create(user_id=user.pk, content=content, **({"change": change} if change else {}), **fields)

words = [{"role": "user", "content": f"Message number {number} about bees", "external_id": str(number)} for number in range(90)]
place = messages_ingest(user_id=user.pk, session="s", channel="mail", messages=words, extract=False).conversation_id
Conversation.objects.for_user(user).filter(pk=place).update(channel="chat", session="", title="On bees")
first = Message.objects.for_user(user).filter(conversation=place).order_by("position").first()
hives = note("Bees live behind the shed", Change(actor=Origin.USER, trust=Trust.USER, conversation_id=place, message_id=first.pk), tags=["bees"], kind="fact")
memory_update(user_id=user.pk, memory_id=hives.pk, content="Bees live behind the old barn")
file_write(user_id=user.pk, path="/memories/bees.md", text="Bees live behind the old barn")
counter = Draft(description="Counts the bees on a picture", input_schema={"type": "object"}, main="def run(args):\\n    return 1\\n")
capability_create(user_id=user.pk, name="bee_counter", draft=counter)
page = Change(actor=Origin.ASSISTANT, trust=Trust.UNTRUSTED)
said = note("Bees sleep in winter, says a page", page)
memory_bulk_create(user_id=user.pk, drafts=[{"content": f"Honey jar number {number} weighs {number} grams", "category": "pantry"} for number in range(1, 62)])
old = note("The first hive was a present", valid_from=datetime(2019, 5, 4, tzinfo=timezone.utc))
pairs = [(f"The queen of hive {name} is {age}", f"The queen of hive {name} is {age + 1}") for name, age in (("A", 2), ("B", 4), ("C", 6))]
for one, other in pairs:
    edge_create(user_id=user.pk, source_id=note(one).pk, target_id=note(other).pk, relation="contradicts")
for number, jar in enumerate(Memory.objects.for_user(user).filter(category="pantry")):
    edge_create(user_id=user.pk, source_id=hives.pk if number < 30 else old.pk, target_id=jar.pk, relation="extends")
print("MADE", json.dumps({"hives": str(hives.pk), "said": str(said.pk), "old": str(old.pk)}))
"""

MOVED = """async (picture, end) => {
  const { x, y, width, height } = picture.getBoundingClientRect();
  const point = (type, far) =>
    picture.dispatchEvent(new PointerEvent(type, { clientX: x + width / 2 + far, clientY: y + height / 2, bubbles: true }));
  const click = () => picture.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
  point("pointerdown", 0);
  point("pointermove", 40);
  point(end, 40);
  const own = end === "pointerup" ? { "own click": click() } : {};
  await new Promise((done) => setTimeout(done));
  point("pointerdown", 0);
  point("pointerup", 0);
  return { ...own, next: click() };
}"""
"""Moves the picture and presses it; of each click, whether it does what it would."""


@pytest.fixture(scope="module")
def keeper(server: Server) -> tuple[StorageState, dict[str, str]]:
    """Somebody who keeps bees, of whom much is known."""
    state = server.someone()
    return state, server.shell(state, FILL)


Keeper = tuple[StorageState, dict[str, str]]


def test_contradictions_are_settled_by_keys(
    server: Server, keeper: Keeper, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/memory/", state=keeper[0])
    page.get_by_role("link", name=re.compile(r"^3\s*contradictions to settle")).click()
    cards = page.locator("[data-review]")
    expect(cards).to_have_count(3)
    expect(cards.first.locator(".against-facts").first).to_contain_text("your words")
    kept = []
    page.wait_for_load_state()  # keys are heard from then on
    page.keyboard.press("j")
    for key, place in (("1", 0), ("2", 1), ("b", 0)):
        expect(cards.first).to_be_focused()
        kept.append(cards.first.locator(".note-text").nth(place).inner_text())
        left = cards.count() - 1
        page.keyboard.press(key)
        expect(cards).to_have_count(left)
    expect(page.get_by_text("Both are kept as true.")).to_be_visible()
    page.goto(f"{server.url}/memory/browse/?q=queen")
    expect(page.locator(".note")).to_have_count(4)
    for text in kept:
        expect(page.locator(".note-text", has_text=text)).to_have_count(1)


def test_a_memory_is_looked_at_from_all_sides(
    server: Server, keeper: Keeper, open_page: Callable[..., Page]
) -> None:
    state, ids = keeper
    page = open_page(f"{server.url}/memory/{ids['hives']}/", state=state)
    words, done = page.locator(".one-words"), page.locator(".done")
    expect(words).to_have_text("Bees live behind the old barn")

    # To the very message, sixty turns back.
    page.get_by_role("link", name="Open the message").click()
    pointed = page.locator(".turn-pointed")
    expect(pointed).to_contain_text("Message number 0 about bees")
    expect(pointed).to_be_in_viewport()
    page.go_back()

    for kind, text in (("Markdown", "Bees live behind the old barn"), ("JSON Lines", '"content"')):
        with page.expect_download() as begun:
            page.get_by_role("link", name=kind, exact=True).click()
        assert text in Path(begun.value.path()).read_bytes().decode(errors="ignore")
    page.get_by_role("link", name="/memories/bees.md").click()
    expect(page.locator(".file-text")).to_have_text("Bees live behind the old barn")
    page.go_back()

    expect(page.locator("#history .diff, #history del").first).to_contain_text("shed")
    page.get_by_role("button", name="Go back to this version, 1").click()
    expect(words).to_have_text("Bees live behind the shed")
    done.get_by_role("button", name="Undo").click()
    expect(words).to_have_text("Bees live behind the old barn")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(done).to_contain_text("Deleted")
    done.get_by_role("button", name="Undo").click()
    expect(page.locator(".done")).to_contain_text("Undone")

    page.goto(f"{server.url}/memory/browse/?trust=untrusted")
    untrusted = page.locator(".note").get_by_role("link", name=re.compile("^untrusted"))
    untrusted.click()
    expect(page.get_by_text("somebody else said, so Izzy takes")).to_be_visible()
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("somebody else said, so Izzy takes")).to_be_hidden()
    done.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Approve")).to_be_visible()


def test_memories_are_narrowed_leafed_through_and_set_in_one_go(
    server: Server, keeper: Keeper, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/memory/browse/", state=keeper[0])
    notes, filters = page.locator("#note-list .note"), page.locator(".note-filters")
    pages = page.get_by_role("navigation", name="Pages of the list")

    # By pages, and by number.
    pages.get_by_role("link", name="Next page").click()
    page.wait_for_url("**page=2**")
    expect(pages.get_by_role("link", name="Page 2")).to_have_attribute("aria-current", "page")
    pages.get_by_role("link", name="Page 3").click()
    expect(page.locator(".note", has_text="Bees live behind")).to_have_count(1)

    # Whose words, since when, and by category.
    filters.get_by_label("Whose words").select_option("untrusted")
    expect(notes).to_have_count(1)
    expect(notes).to_contain_text("Bees sleep in winter")
    filters.get_by_label("Whose words").select_option("")
    expect(notes).to_have_count(30)
    filters.get_by_text("Dates, tags and categories").click()
    filters.get_by_label("Saved from").fill("2031-01-01")
    expect(page.get_by_role("heading", name="Nothing found")).to_be_visible()
    filters.get_by_label("Saved from").fill("")
    expect(notes).to_have_count(30)
    filters.get_by_label("As of").fill("2019-01-01")
    expect(page.get_by_role("heading", name="Nothing found")).to_be_visible()
    filters.get_by_label("As of").fill("")
    page.get_by_role("button", name="pantry").click()
    page.wait_for_url("**category=pantry**")
    expect(page.locator(".pagination")).to_contain_text("of 61")

    # Several at once: kind, then how long they are kept; undone.
    for box in page.locator(".note-select input").all()[:3]:
        box.check()
    bulk = page.locator("#note-bulk")
    bulk.get_by_label("Kind, or how long to keep them").select_option(label="Short term")
    bulk.get_by_role("button", name="Set", exact=True).click()
    expect(page.locator(".done")).to_contain_text("3")
    filters.get_by_label("Long and short term").or_(filters.locator("[name=tier]")).first.select_option(
        "short_term"
    )
    expect(notes).to_have_count(3)
    notes.first.get_by_role("checkbox").check()
    page.get_by_role("button", name="Tick all").click()
    bulk.get_by_label("Kind, or how long to keep them").select_option(label="Fact")
    bulk.get_by_role("button", name="Set", exact=True).click()
    expect(notes.first.locator(".badge-memory")).to_have_text("Fact")
    page.locator(".done").get_by_role("button", name="Undo").click()
    expect(page.locator(".done")).to_contain_text("Undone")

    # A search says why, and on demand of what its score is made.
    page.goto(f"{server.url}/memory/browse/")
    page.get_by_role("searchbox", name="Search memories").fill("where do the bees live")
    hit = page.locator(".note", has_text="Bees live behind the old barn")
    expect(hit.locator(".note-reason")).not_to_be_empty()
    expect(hit.locator(".note-match dl")).to_be_hidden()
    hit.get_by_text(re.compile(r"^match \d+%$")).click()
    expect(hit.locator(".note-match dl")).to_be_visible()


def test_years_of_the_timeline_and_parts_of_the_picture_are_chosen(
    server: Server, keeper: Keeper, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/memory/timeline/", state=keeper[0])
    page.get_by_label("Year").select_option("2019")
    expect(page.get_by_role("heading", name="May 2019")).to_be_visible()
    expect(page.locator("#timeline")).to_contain_text("The first hive was a present")

    page.goto(f"{server.url}/memory/graph/")
    dots = page.locator(".graph >> nth=0").locator(".graph-dot")
    expect(dots).to_have_count(48)
    page.get_by_role("link", name="Show more").click()
    expect(dots).to_have_count(69)
    graph = page.locator(".graph >> nth=0")
    whole = graph.get_attribute("viewBox") or "?"
    page.get_by_role("button", name="Zoom in (plus key)").click()
    expect(graph).not_to_have_attribute("viewBox", whole)
    page.keyboard.press("0")
    expect(graph).to_have_attribute("viewBox", whole)
    dots.first.focus()
    expect(page.locator(".graph-now")).to_have_text(dots.first.get_attribute("aria-label") or "?")
    page.locator(".graph-filters [name=kind]").select_option("fact")
    page.locator(".graph-filters").get_by_role("button", name="Show").click()
    expect(page.get_by_role("heading", name="Nothing found")).to_be_visible()


def test_things_of_every_kind_are_found_and_opened_by_the_palette(
    server: Server, keeper: Keeper, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/usage/", state=keeper[0])
    kinds = (
        ("on bees", "Conversations", "On bees", ".turn .bubble", "about bees"),
        ("old barn", "Memories", "Bees live behind the old barn", ".one-words", "behind the old barn"),
        ("bees", "Files", "bees.md", ".file-text", "Bees live behind the old barn"),
        ("counter", "Capabilities", "bee counter", "h1", "bee_counter"),
        ("timel", "Go to", "Timeline", "h1", "Memories"),
    )
    for typed, group, name, place, words in kinds:
        page.wait_for_load_state()  # keys are heard from then on
        page.keyboard.press("Control+k")
        expect(page.get_by_role("option", name="Import and export")).to_be_visible()
        page.keyboard.insert_text(typed)
        expect(page.get_by_role("option", name="Import and export")).to_have_count(0)
        option = page.get_by_role("group", name=group).get_by_role("option", name=name)
        expect(option).to_be_visible()
        while option.get_attribute("aria-selected") != "true":
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.locator(place).first).to_contain_text(words)


def test_the_click_that_ends_a_move_of_the_picture_is_no_press_and_the_next_one_is(
    server: Server, keeper: Keeper, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/memory/graph/", state=keeper[0])
    page.get_by_role("button", name="Zoom in (plus key)").click()
    graph = page.locator(".graph >> nth=0")
    assert graph.evaluate(MOVED, "pointerup") == {"own click": False, "next": True}
    assert graph.evaluate(MOVED, "pointercancel")["next"] is True  # as where a finger scrolls the page
