"""The right note at the right moment, offline, among sixty others of which some are years old: and the page says why."""

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, StorageState, expect

from tests.browser.chat import Chat
from tests.browser.server import Server
from tests.browser.test_conversation import rest
from tests.waiting import eventually

SHELLFISH = "The user is allergic to shellfish."
VEGETARIAN = "The user's daughter Mia has been a vegetarian since she was ten."
HOME = "The user lives in Leeds, at 14 Alder Road."
WANTED = [SHELLFISH, VEGETARIAN, HOME]
OTHERS = """The user works as a physiotherapist at St James's Hospital.
The user's sister Anna is a pilot and flies out of Manchester.
The user's brother Tom teaches history in Bristol.
The user plays the cello in an amateur orchestra on Thursdays.
The user drives a blue Skoda Octavia estate.
The user's cat is called Pixel and hates the vacuum cleaner.
The router stands in the hall closet behind the coats.
The user prefers window seats on long flights.
The user speaks Portuguese with her mother.
The user wants to run the Edinburgh marathon one day.
The user's wedding anniversary is on 14 June.
The user takes 50 mg of sertraline every morning.
The user's passport expires in March 2029.
The user's laptop is a ThinkPad with Debian on it.
The user reads crime novels, mostly by Tana French.
The user's accountant is Mr Okafor in Harrogate.
The user pays 40 pounds a month for the gym at the Meanwood sports centre.
The user broke her left wrist in 2021 while climbing.
The user is afraid of heights since a fall in the Alps.
The user's husband Daniel repairs old radios.
The user's mother turned seventy in September.
The user collects vinyl records from the seventies.
The user wants answers without bullet points.
The user dislikes phone calls before nine in the morning.
The user's team at work is moving to a new rota in autumn.
The user's neighbour Harriet waters the plants in the holidays.
The user has a season ticket for Headingley.
The user's son Leo learns the trumpet.
The user's son Leo has a peanut-free classroom project about volcanoes.
The user studied in Porto from 2004 to 2008.
The user's old flatmate Inês lives in Lisbon.
The user keeps the spare key under the third flowerpot.
The user's bank is the Yorkshire Building Society.
The user's car insurance is due in November.
The user wears glasses for driving at night.
The user cannot stand the smell of lilies.
The user sings in the choir at Christmas only.
The user's favourite painter is Paula Rego.
The user's phone number at work ends in 4471.
The user takes the 7:42 train to work.
The user is learning to sail on Ullswater.
The user volunteers at the library on Saturdays.
The user's dentist is Dr Webb on Otley Road.
The user's printer only works over the cable.
The user's boss is called Margaret.
The user wants to learn to knit.
The user's bicycle was stolen in May 2022.
The user's best friend is Rosa, a vet.
The user's father died in 2015.
The user's grandmother came from Madeira.
The user hates horror films.
The user's shoe size is 39.
The user sleeps badly when the moon is full.
The user backs up photos on a disk in the attic.
The user's Wi-Fi network is called Wobble.
The user votes by post.
The user's boiler was replaced in 2023.
The user's lucky number is 17.
The user plays chess online as rookmother.
The user's garden has two apple trees.""".splitlines()
AGE = """
from datetime import timedelta
from django.db import transaction
from apps.memory.models import Memory
from apps.memory.notes.creation import notes_reindex
with transaction.atomic():
    notes = list(Memory.objects.unscoped().select_for_update().filter(pk__in={ids}).order_by("pk"))
    for number, note in enumerate(notes):
        note.created_at = note.updated_at = note.created_at - timedelta(days=19 * number)
        note.save(update_fields=["created_at", "updated_at"])
    notes_reindex(notes[0].user_id, notes)
"""
"""The wanted ones, made last, are three years old."""


@pytest.fixture(scope="module")
def knowing(server: Server) -> StorageState:
    """Someone about whom Izzy knows much, some of it for three years."""
    return server.someone()


@pytest.fixture
def page(server: Server, open_page: Callable[..., Page], knowing: StorageState) -> Page:
    page = open_page(server.url, state=knowing, viewport={"width": 1500, "height": 900})
    if rest(page, "GET", "/memories/")["results"] == []:
        contents = [*WANTED, *OTHERS]
        drafts = [{"content": text, "kind": "fact"} for text in reversed(contents)]
        made = rest(page, "POST", "/memories/bulk/", {"memories": drafts})["results"]
        server.manage(
            "shell", "-v", "0", "-c", AGE.format(ids=json.dumps([note["id"] for note in made]))
        )
        first = [note["id"] for note in made if note["content"] in WANTED]

        def have_occasions() -> bool:
            return all(rest(page, "GET", f"/memories/{key}/")["occasions"] for key in first)

        eventually(have_occasions, lambda: "no occasions")
    return page


def brought_up(page: Page, text: str) -> Locator:
    """The cards of the memories that come up for a message, in a conversation of its own."""
    page.get_by_role("link", name="New conversation").first.click()
    chat = Chat(page)
    turn = chat.say(text)
    expect(turn.locator(".surfaced")).to_be_visible()
    return turn.locator(".surfaced .memory-card")


def texts(cards: Locator) -> list[str]:
    return [text.strip() for text in cards.locator(".memory-text").all_inner_texts()]


def card(cards: Locator, words: str) -> Locator:
    return cards.filter(has_text=words)


@pytest.mark.parametrize("words", ["order paella for two", "what should I cook tonight"])
def test_an_allergy_comes_up_where_food_is_ordered_or_cooked(page: Page, words: str) -> None:
    cards = brought_up(page, words)
    allergy = card(cards, "allergic to shellfish")
    expect(allergy).to_have_count(1)
    expect(allergy.locator(".memory-reason")).to_contain_text("Came up because of")
    assert len(texts(cards)) <= 4


def test_where_the_user_lives_comes_up_and_nobody_elses_home(page: Page) -> None:
    cards = brought_up(page, "where do I live?")
    home = card(cards, "Leeds, at 14 Alder Road")
    expect(home).to_have_count(1)
    expect(home.locator(".memory-reason")).not_to_be_empty()
    assert len(texts(cards)) <= 4


def test_asked_what_it_knows_as_much_comes_up_as_there_is_room_for(page: Page) -> None:
    cards = brought_up(page, "what do you know about me?")
    assert len(texts(cards)) >= 12
    expect(cards.locator(".memory-reason").first).to_contain_text("most important")
