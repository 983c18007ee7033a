"""The picture of how notes hang together, the same in words, and linking by hand."""

import re
from collections.abc import Callable
from html import unescape
from itertools import pairwise

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from apps.core.ids import uuid7
from apps.memory.models import Memory, MemoryEdge
from apps.memory.notes.changes import memory_delete
from apps.memory.notes.creation import memory_bulk_create, memory_create
from apps.memory.notes.joining import contradiction_resolve, edge_create, memory_supersede
from apps.memory.notes.linked import MAX_NOTES, STEP
from apps.memory.pages.drawing import fitted, positions
from apps.memory.pages.graph import graph_of
from apps.memory.pages.picture import pictures
from tests.memory.conftest import MakeNote

PAGE = "/memory/graph/"


@pytest.fixture
def browser(alice: User, sign_in: Callable[[User], Client]) -> Client:
    return sign_in(alice)


def shown(client: Client, query: str = "") -> str:
    answer = client.get(f"{PAGE}{query}")
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def test_a_search_around_a_note_keeps_the_note_and_offers_to_link_what_it_finds(
    alice: User, browser: Client
) -> None:
    tea, cat = (memory_create(user_id=alice.pk, content=text) for text in ("Likes tea.", "Has a cat."))
    page = shown(browser, f"?note={tea.pk}&q=cat")
    assert f'name="note" value="{tea.pk}"' in page
    assert f'name="target" value="{cat.pk}"' in page
    assert "What is linked to it" in page
    link = {"target": str(cat.pk), "relation": "related"}
    linked = browser.post(reverse("memory:link", args=[tea.pk]), link, follow=True).content.decode()
    assert "Linked to “<bdi>Has a cat.</bdi>”." in linked
    again = shown(browser, f"?note={tea.pk}&q=cat")
    assert f'name="target" value="{cat.pk}"' not in again


def test_a_contradiction_that_was_settled_reads_so(alice: User, browser: Client) -> None:
    one, two = (
        memory_create(user_id=alice.pk, content=text) for text in ("Eats no meat.", "Loves steak.")
    )
    edge = edge_create(user_id=alice.pk, source_id=two.pk, target_id=one.pk, relation="contradicts")
    assert re.search(r">\s*contradicts\s*<", shown(browser, f"?note={one.pk}"))
    contradiction_resolve(user_id=alice.pk, edge_id=edge.pk, keep_id=one.pk)
    for query in (f"?note={one.pk}", ""):
        page = shown(browser, query)
        assert re.search(r">\s*contradicted\s*<", page)
        assert not re.search(r">\s*contradicts\s*<", page)


def drawn(page: str) -> list[str]:
    """The texts of the circles of the wide picture."""
    svg = re.search(r"<svg class=\"graph graph-wide\".*?</svg>", page, flags=re.DOTALL)
    return re.findall(r"class=\"graph-dot[^>]*aria-label=\"([^\"]*)\"", svg[0]) if svg else []


def in_words(page: str) -> str:
    found = re.search(r"<details class=\"graph-words\".*?</details>", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", found[0]).split()) if found else ""


def hub(user: User, spokes: int) -> tuple[Memory, list[Memory]]:
    """A note that others are linked to."""
    contents = [f"Spoke number {number}" for number in range(spokes)]
    middle, *others = memory_bulk_create(
        user_id=user.pk, drafts=[{"content": text} for text in ("The hub", *contents)]
    )
    for other in others:
        edge_create(user_id=user.pk, source_id=other.pk, target_id=middle.pk)
    return middle, others


def test_without_notes_and_without_links_it_says_where_links_come_from(
    alice: User, browser: Client, note: MakeNote
) -> None:
    assert "Nothing to draw yet" in shown(browser)
    note(alice)
    page = shown(browser)
    assert "No links yet" in page
    assert drawn(page) == []


def test_it_shows_linked_notes_and_says_the_same_in_words(
    alice: User, browser: Client, note: MakeNote
) -> None:
    trip, folder, _ = (
        note(alice, "Goes to Lisbon in May"),
        note(alice, "The passport is in the blue folder"),
        note(alice, "Likes tea"),
    )
    edge_create(user_id=alice.pk, source_id=folder.pk, target_id=trip.pk, relation="elaborates")
    page = shown(browser)
    assert set(drawn(page)) == {"Goes to Lisbon in May", "The passport is in the blue folder"}
    assert "The passport is in the blue folder adds to Goes to Lisbon in May" in in_words(page)
    assert "Goes to Lisbon in May has more in The passport is in the blue folder" in in_words(page)
    assert "2 linked memories" in page


def test_around_a_note_stand_those_two_steps_away_and_no_further(
    alice: User, browser: Client, note: MakeNote
) -> None:
    chain = [note(alice, f"Link {number} of the chain") for number in range(4)]
    for one, two in pairwise(chain):
        edge_create(user_id=alice.pk, source_id=one.pk, target_id=two.pk)
    page = shown(browser, f"?note={chain[0].pk}")
    assert drawn(page) == ["Link 0 of the chain", "Link 1 of the chain", "Link 2 of the chain"]
    assert "3 within two steps" in page


def test_a_replaced_note_stays_and_a_deleted_one_goes(
    alice: User, browser: Client, note: MakeNote
) -> None:
    old = note(alice, "Lives in Porto")
    memory_supersede(user_id=alice.pk, memory_id=old.pk, content="Lives in Lisbon")
    one, two = note(alice, "Stays"), note(alice, "Goes")
    edge_create(user_id=alice.pk, source_id=one.pk, target_id=two.pk)
    memory_delete(user_id=alice.pk, memory_id=two.pk)
    page = shown(browser)
    assert set(drawn(page)) == {"Lives in Porto", "Lives in Lisbon"}
    assert "Lives in Lisbon replaces Lives in Porto" in in_words(page)


def test_of_many_the_best_linked_are_shown_and_more_on_demand(alice: User, browser: Client) -> None:
    middle, _ = hub(alice, STEP + 20)
    for query in ("", f"?note={middle.pk}"):
        page = shown(browser, query)
        assert len(drawn(page)) == STEP
        assert "The hub" in drawn(page)[0]
        assert f"?most={2 * STEP}" in page
    assert f"The {STEP} best linked of {STEP + 21}" in shown(browser)
    page = shown(browser, f"?most={2 * STEP}")
    assert len(drawn(page)) == STEP + 21
    assert "Show more" not in page
    assert len(drawn(shown(browser, "?most=100000"))) == STEP + 21 <= MAX_NOTES


def test_it_is_narrowed_by_kind_and_tag_and_a_note_opens_its_page(
    alice: User, browser: Client, note: MakeNote
) -> None:
    tea, milk = (
        note(alice, "Likes tea", kind="preference", tags=["Food"]),
        note(alice, "Hates milk", kind="preference", tags=["food"]),
    )
    trip = note(alice, "Goes to Lisbon", kind="fact")
    edge_create(user_id=alice.pk, source_id=tea.pk, target_id=milk.pk, relation="contradicts")
    edge_create(user_id=alice.pk, source_id=tea.pk, target_id=trip.pk)
    page = shown(browser)
    assert len(drawn(page)) == 3
    assert f'href="/memory/{tea.pk}/" data-place' in page
    assert re.search(r'graph-name graph-named"[^>]*>contradicts<', page)
    for query in ("?kind=preference", "?tag=FOOD"):
        assert sorted(drawn(shown(browser, query))) == ["Hates milk", "Likes tea"]
    assert "Nothing found" in shown(browser, "?kind=project")
    assert len(drawn(shown(browser, "?kind=nonsense"))) == 3


def test_what_it_asks_of_the_database_does_not_grow_with_the_notes(
    alice: User, browser: Client, django_assert_max_num_queries: Callable[..., object]
) -> None:
    hub(alice, 30)
    with django_assert_max_num_queries(15):  # type: ignore[attr-defined]
        shown(browser)


def test_a_note_can_be_found_to_look_around(alice: User, browser: Client, note: MakeNote) -> None:
    tea = note(alice, "Drinks green tea in the morning")
    assert f"?note={tea.pk}" in shown(browser, "?q=green+tea")
    assert "No memory fits “<bdi>zeppelin</bdi>”" in shown(browser, "?q=zeppelin")


def test_notes_about_the_same_are_offered_and_can_be_linked_and_unlinked(
    alice: User, browser: Client, note: MakeNote
) -> None:
    one, two = (
        note(alice, "Runs along the river on Mondays"),
        note(alice, "Runs along the river on Fridays"),
    )
    here = f"{PAGE}?note={one.pk}"
    assert "About the same" in shown(browser, f"?note={one.pk}")
    link = reverse("memory:link", args=[one.pk])
    assert (
        browser.post(link, {"target": str(two.pk), "relation": "elaborates"}).headers["Location"] == here
    )
    edge = MemoryEdge.objects.for_user(alice).get()
    assert (edge.source_id, edge.target_id, edge.relation) == (one.pk, two.pk, "elaborates")
    page = shown(browser, f"?note={one.pk}")
    assert "About the same" not in page
    assert drawn(page) == [one.content, two.content]
    assert browser.post(reverse("memory:unlink", args=[one.pk, edge.pk])).headers["Location"] == here
    assert not MemoryEdge.objects.for_user(alice).exists()


def test_nothing_can_be_linked_to_what_is_not_ones_own(
    alice: User, bob: User, browser: Client, note: MakeNote
) -> None:
    mine, theirs = note(alice, "Mine"), note(bob, "Theirs")
    for source, target in (
        (mine.pk, theirs.pk),
        (theirs.pk, mine.pk),
        (mine.pk, uuid7()),
        (mine.pk, "x"),
    ):
        answer = browser.post(reverse("memory:link", args=[source]), {"target": str(target)})
        assert answer.status_code == 404
    itself = browser.post(reverse("memory:link", args=[mine.pk]), {"target": str(mine.pk)}, follow=True)
    assert "cannot be linked to itself" in itself.content.decode()
    assert browser.get(f"{PAGE}?note={theirs.pk}").status_code == 404
    assert not MemoryEdge.everything.exists()


@pytest.mark.parametrize("spokes", [1, 2, 47])
def test_circles_stay_apart_and_labels_inside_and_off_each_other(alice: User, spokes: int) -> None:
    hub(alice, spokes)
    for picture in pictures(graph_of(alice.pk, STEP), chosen=False):
        dots, canvas = picture.dots, picture.canvas
        assert len(dots) == spokes + 1
        for dot in dots:
            radius = float(dot.radius)
            assert radius <= dot.x <= canvas.width - radius
            assert radius <= dot.y <= canvas.height - radius
        near = min(
            ((one.x - two.x) ** 2 + (one.y - two.y) ** 2) ** 0.5
            for place, one in enumerate(dots)
            for two in dots[:place]
        )
        assert near > 24, "a finger meets one of two"
        if spokes < 3:
            assert all(dot.label.shown for dot in dots), canvas.name


def test_the_same_notes_always_stand_at_the_same_places() -> None:
    links = [(0, place) for place in range(1, 12)]
    first = fitted(positions(12, links, pinned=True), 1.6)
    assert first.tolist() == fitted(positions(12, links, pinned=True), 1.6).tolist()
    assert ((first[0] - 0.5) ** 2).sum() < 0.02, "what was chosen stands near the middle"
