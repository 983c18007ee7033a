"""The list of memories: what it is narrowed by, its pages, and what many notes are set to at once."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import User
from apps.memory.models import Memory
from apps.memory.notes.changes import memory_update
from apps.memory.notes.creation import memory_bulk_create
from apps.memory.notes.selectors import memory_get, tag_counts
from tests.memory.conftest import MakeNote

SignIn = Callable[[User], Client]


@pytest.fixture
def browser(alice: User, sign_in: SignIn) -> Client:
    return sign_in(alice)


def shown(client: Client, query: str = "") -> str:
    answer = client.get(f"/memory/browse/{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def made_at(note: Memory, day: str) -> Memory:
    """The note, as if it had been saved at noon of that day."""
    moment = datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC)
    Memory.objects.for_user(note.user_id).filter(pk=note.pk).update(created_at=moment, updated_at=moment)
    return note


@pytest.mark.parametrize("query", ["", "?q=honey"])
def test_cards_show_markdown_without_its_signs(
    alice: User, note: MakeNote, browser: Client, query: str
) -> None:
    note(alice, "# Honey\n\n**Ada** sells [it](https://example.org/honey):\n\n- in *jars*")
    page = shown(browser, query)
    assert "Honey<br><br>Ada sells it:<br><br>• in jars" in page


def test_a_search_shows_its_best_and_leads_on(alice: User, browser: Client) -> None:
    drafts = [{"content": f"Walnut tree number {number} stands by the river."} for number in range(25)]
    memory_bulk_create(user_id=alice.pk, drafts=drafts)
    first, second = shown(browser, "?q=walnut"), shown(browser, "?q=walnut&page=2")
    assert (first.count('class="note card"'), second.count('class="note card"')) == (20, 5)
    assert "More matches" in first
    assert "Better matches" in second
    numbers = set(re.findall(r"tree number (\d+)", first + second))
    assert len(numbers) == 25


@pytest.mark.parametrize(
    ("query", "contents"),
    [
        ("?trust=untrusted", ["Said by others"]),
        ("?trust=user", ["Old tea", "New tea"]),
        ("?since=2031-05-02", ["New tea", "Said by others"]),
        ("?until=2031-05-01", ["Old tea"]),
        ("?since=2031-05-01&until=2031-05-01", ["Old tea"]),
        ("?since=nonsense", ["Old tea", "New tea", "Said by others"]),
        ("?until=9999-12-31", ["Old tea", "New tea", "Said by others"]),
        ("?as_of=9999-12-31", ["Old tea", "New tea", "Said by others"]),
        ("?q=tea&since=2031-05-02", ["New tea"]),
    ],
)
def test_the_list_is_narrowed_by_trust_and_day(
    alice: User, browser: Client, note: MakeNote, query: str, contents: list[str]
) -> None:
    made_at(note(alice, "Old tea"), "2031-05-01")
    made_at(note(alice, "New tea"), "2031-05-02")
    others = made_at(note(alice, "Said by others"), "2031-05-03")
    Memory.objects.for_user(alice).filter(pk=others.pk).update(trust="untrusted")
    page = shown(browser, query)
    assert {
        name for name in ("Old tea", "New tea", "Said by others") if f'break">{name}' in page
    } == set(contents)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?since=nonsense&kind=wrong", "Not understood and left out: Kind, Saved from."),
        ("?since=2031-05-02&until=2031-05-01", "“Saved from” is after “Saved until”"),
        ("?status=deleted", "Nothing to bring back"),
        ("?status=deleted&kind=fact", "Nothing found"),
    ],
)
def test_what_cannot_be_found_is_said(
    alice: User, browser: Client, note: MakeNote, query: str, said: str
) -> None:
    note(alice, "Old tea")
    assert said in shown(browser, query)


def test_a_tag_among_the_filters_keeps_what_else_is_set(
    alice: User, browser: Client, note: MakeNote
) -> None:
    note(alice, "Old tea", tags=["drinks"])
    tags = browser.get("/memory/tags/", headers={"HX-Request": "true"}).content.decode()
    assert '<button class="badge" name="tag" value="drinks">' in tags
    asked = "?q=&kind=fact&tag=old&since=&tag=drinks"
    answer = browser.get(f"/memory/browse/{asked}", headers={"HX-Request": "true"})
    assert answer["HX-Push-Url"] == "/memory/browse/?kind=fact&tag=drinks"
    assert re.search(
        r'id="note-chips" hx-swap-oob.*name="tag" value="drinks"', answer.content.decode(), re.DOTALL
    )


def test_programs_narrow_by_the_same(alice: User, api: SignIn, note: MakeNote) -> None:
    made_at(note(alice, "Old tea"), "2031-05-01")
    made_at(note(alice, "New tea"), "2031-05-02")
    found = api(alice).get("/api/v1/memories/?since=2031-05-02T00:00:00Z&trust=user").json()["results"]
    assert [one["content"] for one in found] == ["New tea"]
    assert api(alice).get("/api/v1/memories/?trust=nobody").status_code == 400


@pytest.mark.parametrize("query", ["", "&q=tea"])
def test_as_of_a_day_shows_what_held_then_as_it_read_then(
    alice: User, browser: Client, note: MakeNote, query: str
) -> None:
    yesterday = datetime.now(UTC) - timedelta(days=3)
    changed = note(alice, "Likes green tea.")
    made_at(changed, f"{yesterday:%Y-%m-%d}")
    memory_update(user_id=alice.pk, memory_id=changed.pk, content="Likes black tea.")
    note(alice, "A new tea pot.")
    then, now = shown(browser, f"?as_of={yesterday:%Y-%m-%d}{query}"), shown(browser, f"?{query[1:]}")
    assert "Likes green tea." in then
    assert "It reads otherwise today" in then
    assert "A new tea pot." not in then
    assert "What held at the end of" in then
    assert "Likes black tea." in now
    assert "A new tea pot." in now


def test_tags_and_categories_are_counted_whatever_their_case(
    alice: User, bob: User, browser: Client, note: MakeNote
) -> None:
    for tags in (["Food"], ["food", "tea"], ["Food"]):
        note(alice, f"Note with {tags}", tags=tags, category="kitchen")
    note(bob, "His", tags=["secret"], category="cellar")
    assert tag_counts(alice.pk) == ({"Food": 3, "tea": 1}, {"kitchen": 3})
    for headers in ({}, {"HX-Request": "true"}):
        page = browser.get("/memory/tags/", headers=headers).content.decode()
        assert re.search(
            r'[?" ](?:tag=Food|name="tag" value="Food)"><bdi[^>]*>#Food</bdi> ?<span class="tag-count">3<',
            page,
        )
        assert "kitchen" in page
        assert "secret" not in page
        assert "cellar" not in page


def test_many_tags_are_found_by_a_part_and_come_in_pages(
    alice: User, browser: Client, note: MakeNote
) -> None:
    for start in range(0, 120, 20):
        note(alice, f"Note {start}", tags=[f"tag {number:03}" for number in range(start, start + 20)])
    note(alice, "Another", tags=["tag 119"], category="Garden")
    first = browser.get("/memory/tags/").content.decode()
    assert first.index("#tag 119") < first.index("#tag 000"), "the commonest first"
    assert "#tag 090" not in first
    assert "#tag 090" in browser.get("/memory/tags/?q=&page=2").content.decode()
    by_name = browser.get("/memory/tags/?by=name").content.decode()
    assert by_name.index("#tag 000") < by_name.index("#tag 001")
    assert "#tag 119" not in by_name
    found = browser.get("/memory/tags/?q=TAG+09", headers={"HX-Request": "true"}).content.decode()
    assert set(re.findall(r"#tag \d+", found)) == {f"#tag 09{number}" for number in range(10)}
    assert "<html" not in found
    assert "Garden" not in found
    assert "Garden" in browser.get("/memory/tags/?q=gard").content.decode()
    assert "No tag or category has" in browser.get("/memory/tags/?q=nothing").content.decode()
    among = browser.get("/memory/tags/", headers={"HX-Request": "true"}).content.decode()
    assert len(re.findall("#tag", among)) == 40
    assert "All tags and categories" in among


def test_nobody_without_tags_gets_an_empty_list_of_them(browser: Client) -> None:
    assert "No memory has a tag" in browser.get("/memory/tags/").content.decode()


@pytest.mark.parametrize(
    ("value", "field", "wanted", "said"),
    [
        ("kind fact", "kind", "fact", "Set to Fact"),
        ("tier short_term", "tier", "short_term", "Set to short term"),
    ],
)
def test_ticked_notes_are_set_to_a_kind_or_tier_and_back(
    alice: User, browser: Client, note: MakeNote, value: str, field: str, wanted: str, said: str
) -> None:
    notes = [note(alice, f"Number {number}.") for number in range(2)]
    before = getattr(notes[0], field)
    form = {"do": "set", "value": value, "notes": [str(one.pk) for one in notes]}
    page = browser.post("/memory/ticked/", form, follow=True).content.decode()
    assert said in page
    assert {getattr(memory_get(alice.pk, one.pk), field) for one in notes} == {wanted}
    steps = re.findall(r'name="step" value="([^"]+)"', page)
    browser.post("/memory/take-back/", {"step": steps})
    assert {getattr(memory_get(alice.pk, one.pk), field) for one in notes} == {before}


def test_setting_to_nothing_or_to_what_they_are_says_so(
    alice: User, browser: Client, note: MakeNote
) -> None:
    made = note(alice, kind="fact")
    for value, said in (
        ("", "Choose a kind"),
        ("kind rumour", "Choose a kind"),
        ("kind fact", "like that already"),
    ):
        form = {"do": "set", "value": value, "notes": [str(made.pk)]}
        assert said in browser.post("/memory/ticked/", form, follow=True).content.decode()


def test_pages_have_numbers_and_a_jump_that_keep_the_filters(alice: User, browser: Client) -> None:
    drafts = [{"content": f"Number {number}.", "kind": "fact"} for number in range(200)]
    memory_bulk_create(user_id=alice.pk, drafts=drafts)
    page = shown(browser, "?kind=fact&page=4")
    assert 'aria-current="page" href="/memory/browse/?kind=fact&amp;page=4"' in page
    assert 'href="/memory/browse/?kind=fact&amp;page=7"' in page
    assert "91–120 of 200" in page
    assert re.search(r'<input type="hidden" name="kind" value="fact">', page)
    assert "Number 0." in shown(browser, "?kind=fact&page=7")


def test_a_long_note_shows_its_beginning(alice: User, browser: Client, note: MakeNote) -> None:
    note(alice, "x" * 20_000)
    note(alice, "\n".join(f"Line {number}" for number in range(50)))
    page = shown(browser)
    assert page.count("Read it all") == 2
    assert "x" * 600 not in page
    assert "Line 7" in page
    assert "Line 8" not in page


def test_a_search_says_why_and_how_the_score_is_made(
    alice: User, browser: Client, note: MakeNote
) -> None:
    note(alice, "Allergic to shellfish.", tags=["food"])
    page = shown(browser, "?q=shellfish+food")
    assert re.search(r"<summary>match \d{1,3}%</summary>", page)
    assert "<dt>words</dt>" in page
    assert "tag “food”" in page
    assert "Has the word" in page


def test_the_list_asks_as_often_however_many_notes_there_are(alice: User, browser: Client) -> None:
    counts = []
    for number in (5, 300):
        memory_bulk_create(
            user_id=alice.pk, drafts=[{"content": f"Tea {number}.{each}"} for each in range(number)]
        )
        shown(browser)
        with CaptureQueriesContext(connection) as asked:
            shown(browser)
        counts.append(len(asked))
    assert counts[1] <= counts[0]
    assert counts[1] <= 25
