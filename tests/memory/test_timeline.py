"""The timeline: what was saved and changed, day by day where the reader is."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from html import unescape

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.accounts.services import preferences_update
from apps.memory.models import Memory, MemoryRevision, Origin, Trust
from apps.memory.notes.changes import memory_archive, memory_delete, memory_update
from apps.memory.notes.joining import memory_supersede
from apps.memory.notes.revisions import Change
from apps.memory.notes.undoing import memory_restore
from tests.memory.conftest import MakeNote

PAGE = "/memory/timeline/"
LEARNED = "?by=learned"


@pytest.fixture
def browser(alice: User, sign_in: Callable[[User], Client]) -> Client:
    return sign_in(alice)


def shown(client: Client, query: str = "") -> str:
    """Returns the page's lines about learning."""
    return told(client, LEARNED + query.replace("?", "&"))


def told(client: Client, query: str = "") -> str:
    answer = client.get(f"{PAGE}{query}")
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def days(page: str) -> list[str]:
    return re.findall(r"<h3 id=\"day-[^>]*>([^<]*)</h3>", page)


def events(page: str) -> list[str]:
    """Returns what happened, in the order shown."""
    return re.findall(r"event-line small\"><strong>([^<]*)</strong>", page)


def at(note: Memory, year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> Memory:
    """The note as if it had been saved then."""
    Memory.everything.filter(pk=note.pk).update(
        created_at=datetime(year, month, day, hour, minute, tzinfo=UTC)
    )
    return note


def test_a_memory_without_notes_says_what_will_be_here(browser: Client) -> None:
    assert "Nothing has happened yet" in shown(browser)


def test_each_change_is_told_newest_first_with_what_it_changed(
    alice: User, browser: Client, note: MakeNote
) -> None:
    made = note(alice, "Plays chess on Sundays")
    memory_update(
        user_id=alice.pk,
        memory_id=made.pk,
        content="Plays go on Sundays",
        change=Change(actor=Origin.ASSISTANT, trust=Trust.ASSISTANT),
    )
    memory_update(user_id=alice.pk, memory_id=made.pk, importance=5, tags=["games"])
    memory_archive(user_id=alice.pk, memory_id=made.pk)
    memory_restore(user_id=alice.pk, memory_id=made.pk)
    page = shown(browser)
    assert events(page) == ["Brought back", "Archived", "Changed", "Changed", "Saved"]
    assert "Plays <del>chess</del><ins>go</ins> on Sundays" in page
    assert "Changed: importance, tags." in page
    assert "Plays chess on Sundays" in page, "the first text, which it no longer has"
    assert page.count("by Izzy,") == 1
    assert days(page) == ["Today"]


def test_what_took_a_notes_place_is_told(alice: User, browser: Client, note: MakeNote) -> None:
    old = note(alice, "Lives in Porto")
    memory_supersede(user_id=alice.pk, memory_id=old.pk, content="Lives in Lisbon")
    page = shown(browser, "?what=replaced")
    assert events(page) == ["Replaced"]
    assert re.search(r"Instead</span>\s*Lives in Lisbon", page)
    assert "Changed:" not in page, "that it holds no longer is what being replaced means"


def test_a_deleted_note_is_told_of_as_long_as_it_can_be_brought_back(
    alice: User, browser: Client, note: MakeNote
) -> None:
    gone = note(alice, "Has a locker at the station")
    memory_delete(user_id=alice.pk, memory_id=gone.pk)
    assert events(shown(browser)) == ["Deleted", "Saved"]
    Memory.everything.filter(pk=gone.pk).update(deleted_at=datetime(2020, 1, 1, tzinfo=UTC))
    page = shown(browser)
    assert "locker" not in page
    assert events(page) == []


def test_days_and_months_are_those_of_the_reader(alice: User, browser: Client, note: MakeNote) -> None:
    preferences_update(user_id=alice.pk, time_zone="Pacific/Auckland")
    at(note(alice, "Said at midnight in Auckland"), 2026, 3, 31, 12, 30)
    at(note(alice, "Said in March"), 2026, 3, 5)
    page = shown(browser, "?month=2026-04")
    assert days(page) == ["Wednesday 1 April"]
    assert "Said at midnight" in page
    assert "Said in March" not in page
    assert "month=2026-03" in page, "the way to the month before"
    assert days(shown(browser, "?day=2026-04-01")) == ["Wednesday 1 April"]


def test_it_begins_with_the_last_month_in_which_something_happened(
    alice: User, browser: Client, note: MakeNote
) -> None:
    at(note(alice, "Said in May"), 2024, 5, 17, 10)
    at(note(alice, "Said in June"), 2024, 6, 2, 10)
    page = shown(browser)
    assert "<h2>June 2024</h2>" in page
    assert "2 June: 1 event" in page
    before = shown(browser, "?month=2024-05")
    assert "Said in May" in before
    assert "Said in June" not in before


def test_it_can_be_narrowed_to_what_happened_to_which_kind_by_whom(
    alice: User, browser: Client, note: MakeNote
) -> None:
    note(alice, "Likes tea", kind="preference")
    fact = note(alice, "The flat is on the third floor", kind="fact")
    by_izzy = Change(actor=Origin.ASSISTANT, trust=Trust.ASSISTANT)
    memory_update(
        user_id=alice.pk, memory_id=fact.pk, content="The flat is on the fourth floor", change=by_izzy
    )
    assert events(shown(browser, "?what=changed")) == ["Changed"]
    assert events(shown(browser, "?kind=preference")) == ["Saved"]
    assert events(shown(browser, "?source=assistant")) == ["Changed"]
    assert events(shown(browser, "?source=assistant&what=saved")) == []
    assert len(events(shown(browser, "?what=nonsense"))) == 3, "what it does not know does not limit"


def test_a_full_month_comes_in_pages(alice: User, browser: Client, note: MakeNote) -> None:
    made = note(alice, "Counts 0")
    for number in range(60):
        MemoryRevision.objects.create(
            user=alice, memory=made, version=number + 1, content=f"Counts {number}", actor="user",
            action="updated", state={},
        )  # fmt: skip
    assert len(events(shown(browser))) == 50
    assert len(events(shown(browser, "?page=2"))) == 11
    assert "51–61 of 61" in shown(browser, "?page=99")


def test_somebody_elses_notes_are_not_in_it(
    alice: User, bob: User, browser: Client, note: MakeNote
) -> None:
    theirs = note(bob, "Bob's secret")
    memory_update(user_id=bob.pk, memory_id=theirs.pk, content="Bob's other secret")
    note(alice, "Mine")
    page = shown(browser)
    assert "Mine" in page
    assert "secret" not in page


def test_months_and_days_that_do_not_exist_show_the_last_one(
    alice: User, browser: Client, note: MakeNote
) -> None:
    note(alice, "Said today")
    for query in (
        "month=2026-13",
        "month=x",
        "day=2026-02-30",
        "day=0001-01-01",
        "month=9999-12",
        "day=%D9%A1",
    ):
        assert "Said today" in shown(browser, f"?{query}"), query


def holds(note: Memory, since: str, until: str = "") -> Memory:
    """The note as one that holds from a day to a day."""
    days = [datetime.fromisoformat(day).replace(tzinfo=UTC) if day else None for day in (since, until)]
    Memory.everything.filter(pk=note.pk).update(valid_from=days[0], valid_to=days[1])
    return note


def test_it_opens_on_when_things_happened_whenever_they_were_learned(
    alice: User, bob: User, browser: Client, note: MakeNote
) -> None:
    at(holds(note(alice, "Moved to Porto"), "2019-03-05"), 2026, 5, 17)
    at(note(alice, "Likes tea"), 2026, 5, 17)
    holds(note(bob, "A secret of bob's"), "2019-03-05")
    page = told(browser)
    assert "<h2>May 2026</h2>" in page
    assert events(page) == ["Learned then"]
    assert "Moved to Porto" not in page
    page = told(browser, "?month=2019-03")
    assert days(page) == ["Tuesday 5 March"]
    assert events(page) == ["Since then"]
    assert "5 March: 1 memory" in page
    assert "bob's" not in page
    assert "Moved to Porto" not in shown(browser, "?month=2019-03"), "it was learned later"


def test_what_was_replaced_or_is_over_is_struck_through(
    alice: User, browser: Client, note: MakeNote
) -> None:
    old = holds(note(alice, "Lives in Porto"), "2020-01-10")
    memory_supersede(user_id=alice.pk, memory_id=old.pk, content="Lives in Lisbon")
    holds(note(alice, "Works at the library"), "2020-01-20", "2021-02-01")
    note(alice, "Waits to be looked at", status="pending")
    page = told(browser, "?month=2020-01")
    assert events(page) == ["Over", "Replaced"]
    assert "<s>Lives in Porto</s>" in page
    assert "<s>Works at the library</s>" in page
    assert re.search(r"Instead</span>\s*<a[^>]*>Lives in Lisbon", page)
    assert "Waits to be looked at" not in told(browser)


def test_a_year_is_jumped_to(alice: User, browser: Client, note: MakeNote) -> None:
    for day in ("2012-04-01", "2012-09-30", "2019-03-05"):
        holds(note(alice, f"Since {day}"), day)
    page = told(browser, "?month=2019-03&year=2012")
    assert "<h2>September 2012</h2>" in page
    years = re.findall(r"<option[^>]*>(\d{4})</option>", page)
    assert (years[-1], "<option selected>2012</option>" in page) == ("2012", True)
    assert "<h2>December 2014</h2>" in told(browser, "?year=2014")
    assert "<h2>March 2019</h2>" in told(browser, "?month=2019-03&year=2019")
    assert told(browser, "?year=99999&month=x&day=2031-02-31")


def test_a_long_memory_is_told_by_its_beginning(alice: User, browser: Client, note: MakeNote) -> None:
    note(alice, "W" * 8_000)
    for page in (told(browser), shown(browser)):
        assert re.search(r'<p dir="auto" class="note-text break">(<s>)?W{400,500}…', page)
