"""The overview that memory opens on: figures that the worker keeps, what waits, and a beginning for newcomers."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from unittest.mock import patch

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.services import preferences_update
from apps.agent.models import ModelCall
from apps.memory.models import CaptureWindow, Memory, MemorySummary, Purged
from apps.memory.notes.changes import memory_archive
from apps.memory.notes.joining import edge_create
from apps.memory.pages import charts
from apps.memory.purge import memory_purge
from apps.memory.summary import keeping
from apps.memory.summary.keeping import Counted, counted
from tests.memory.conftest import MakeNote

pytestmark = pytest.mark.django_db

PAGE = "/memory/"


@pytest.fixture
def browser(alice: User, sign_in: Callable[[User], Client]) -> Client:
    return sign_in(alice)


@pytest.fixture
def large() -> Any:
    """Any memory counts as one that is too large to be counted while somebody waits."""
    with patch.object(keeping, "SMALL", -1):
        yield


def shown(client: Client, url: str = PAGE, **headers: str) -> str:
    answer = client.get(url, headers=headers)
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def test_a_newcomer_is_told_how_to_begin(browser: Client) -> None:
    page = shown(browser)
    assert "Izzy does not know you yet" in page
    for way in ("/", "/memory/browse/", "/settings/data/"):
        assert f'href="{way}">' in page
    assert "<figure" not in page


def test_what_waits_is_one_click_away(alice: User, browser: Client, note: MakeNote) -> None:
    first, second = note(alice, "Lives in Porto"), note(alice, "Lives in Lisbon")
    note(alice, "Somebody said so", status="pending")
    edge_create(user_id=alice.pk, source_id=first.pk, target_id=second.pk, relation="contradicts")
    words = [{"text": "We meet on Thursday.", "seen": False}, {"text": "Said before.", "seen": True}]
    for state in ("waiting", "gave_up"):
        CaptureWindow.objects.create(user=alice, conversation_id=first.pk, segments=words, state=state)
    page = shown(browser)
    waits = re.findall(
        r'<a class="card over-wait[^>]*href="([^"]+)"><span class="over-count">(\d+)', page
    )
    assert waits == [
        ("/memory/review/#waiting-title", "1"),
        ("/memory/review/#against-title", "1"),
        ("/memory/passages/", "1"),
    ]
    passages = shown(browser, "/memory/passages/")
    assert "We meet on Thursday." in passages
    assert "Said before." not in passages
    assert "1 part of your conversations could not be read" in passages


def test_figures_are_of_what_holds_by_use_and_not_by_being_found(
    alice: User, bob: User, browser: Client, note: MakeNote
) -> None:
    used, found = (
        note(alice, "Likes tea", kind="preference"),
        note(alice, "Found ten times", kind="fact"),
    )
    memory_archive(user_id=alice.pk, memory_id=note(alice, "Put aside").pk)
    note(bob, "A secret of bob's")
    note(alice, "Plain words, please", category="standing")
    Memory.everything.filter(pk=used.pk).update(use_count=3)
    long_ago = timezone.now() - timedelta(days=40)
    Memory.everything.filter(pk=found.pk).update(access_count=10, created_at=long_ago)
    figures, _, _ = counted(alice.pk)
    assert (figures.notes, figures.most_used, figures.never_used) == (4, [str(used.pk)], [str(found.pk)])
    assert (sum(figures.months.values()), sum(figures.days.values())) == (4, 3)
    assert figures.kinds == {"fact": 1, "general": 1, "preference": 1}
    page = shown(browser)
    assert re.search(r"Most used.*Likes tea.*3×.*Never used.*Found ten times", page, re.DOTALL)
    assert re.search(r"Always borne in mind.*Plain words, please", page, re.DOTALL)
    assert "bob's" not in page


def test_a_chart_says_in_words_and_as_a_table_what_it_draws(
    alice: User, browser: Client, note: MakeNote
) -> None:
    for text in ("One", "Two"):
        note(alice, text)
    call = ModelCall.objects.create(
        user=alice, model="m", endpoint="custom", purpose="extraction", input_tokens=90, cost_usd="0.25"
    )
    page = shown(browser)
    assert "2 saved in the last 30 days; 2 in all." in page
    assert "$0.25 in the last 30 days." in page
    assert page.count('role="img"') == 2
    for name in ("growth", "cost"):
        assert f'aria-describedby="{name}-desc"' in page
    assert re.search(r'data-label="Saved">2</td><td class="numeric" data-label="In all">2', page)
    ModelCall.everything.filter(pk=call.pk).update(cost_usd=0)
    assert "90 tokens in the last 30 days." in shown(browser)


def test_months_are_those_of_the_user_and_the_curve_begins_where_they_were(
    alice: User, note: MakeNote
) -> None:
    preferences_update(user_id=alice.pk, time_zone="Pacific/Auckland")
    made = note(alice, "Said at midnight in Auckland")
    Memory.everything.filter(pk=made.pk).update(created_at=datetime(2026, 3, 31, 12, 30, tzinfo=UTC))
    assert counted(alice.pk)[0].months == {"2026-04": 1}
    figures = Counted(notes=10, months={"2020-01": 7, "2031-04": 2, "2031-05": 1})
    chart = charts.growth(figures, datetime(2031, 5, 17, tzinfo=UTC).date())
    assert chart is not None
    assert chart.table == [("May 2031", "1", "10"), ("April 2031", "2", "9")]
    assert chart.sentence == "3 saved in the last 24 months; 10 in all."
    for oldest, months in ("2031-01", 12), ("2030-01", 17):
        younger = charts.growth(
            Counted(notes=1, months={oldest: 1}), datetime(2031, 5, 17, tzinfo=UTC).date()
        )
        assert younger is not None
        assert len(younger.bars) == months


def test_an_old_address_of_the_list_still_leads_to_it(browser: Client) -> None:
    for query in ("q=tea&kind=fact", "page=2", "status=deleted"):
        assert browser.get(f"{PAGE}?{query}")["Location"] == f"/memory/browse/?{query}"


def test_a_large_memory_is_counted_by_the_worker(
    alice: User, browser: Client, note: MakeNote, large: None
) -> None:
    note(alice, "Likes tea", tags=["Drinks"])
    page = shown(browser)
    assert "being counted for the first time" in page
    assert 'hx-trigger="every 2s"' in page
    assert "being counted" in shown(browser, "/memory/quality/")
    keeping.due_keep()
    page = shown(browser, **{"HX-Request": "true"})
    assert page.lstrip().startswith('<div id="overview">')
    assert "1 saved in the last 30 days; 1 in all." in page
    assert "#Drinks" in shown(browser, "/memory/tags/")
    note(alice, "Likes coffee")
    assert "1 in all." in shown(browser), "as of when it was counted"
    assert "every 2s" not in shown(browser)


def test_it_is_counted_anew_when_somebody_looks_at_old_figures(
    alice: User, bob: User, browser: Client, note: MakeNote, large: None
) -> None:
    note(alice, "Likes tea")
    for user in (alice, bob):
        keeping.summary_keep(user.pk)
    assert "/memory/renew/" not in shown(browser)
    MemorySummary.objects.update(made_at=timezone.now() - timedelta(minutes=5))
    assert 'hx-post="/memory/renew/"' in shown(browser)
    note(alice, "Likes coffee")
    assert keeping._due() == []
    assert browser.post("/memory/renew/", headers={"HX-Request": "true"}).status_code == 204
    assert keeping._due() == [alice.pk]
    keeping.due_keep()
    assert keeping._due() == []
    assert "2 in all." in shown(browser)


def test_what_has_not_changed_is_not_counted_again(alice: User, note: MakeNote) -> None:
    note(alice, "Likes tea")
    keeping.summary_keep(alice.pk)
    row = MemorySummary.objects.get(pk=alice.pk)
    with patch.object(keeping, "counted") as again:
        keeping.summary_keep(alice.pk)
        assert not again.called
        note(alice, "Likes coffee")
        again.return_value = (Counted(notes=2), [], [])
        keeping.summary_keep(alice.pk)
        assert again.called
    assert MemorySummary.objects.get(pk=alice.pk).made_at > row.made_at


def test_a_purge_leaves_no_tag_in_the_figures(alice: User, note: MakeNote) -> None:
    made = note(alice, "Has a walrus", tags=["xylographic"])
    keeping.summary_keep(alice.pk)
    assert MemorySummary.objects.get(pk=alice.pk).tags == [["xylographic", 1]]
    receipt = memory_purge(user_id=alice.pk, ids=[made.pk], source=Purged.NOTE)
    assert receipt.left == []
    assert not MemorySummary.objects.filter(pk=alice.pk).exists()


def test_figures_that_were_counted_before_a_purge_are_not_kept(alice: User, note: MakeNote) -> None:
    made = note(alice, "Has a walrus", tags=["xylographic"])

    def purged_meanwhile(user_id: Any, now: Any = None) -> Any:
        found = counted(user_id, now)
        memory_purge(user_id=alice.pk, ids=[made.pk], source=Purged.NOTE)
        return found

    with patch.object(keeping, "counted", purged_meanwhile):
        keeping.summary_keep(alice.pk)
    assert "xylographic" not in str(list(MemorySummary.objects.values_list("tags", flat=True)))
    assert keeping._row(alice.pk) is None, "it is small enough to be counted where it is looked at"


def test_only_a_large_memory_that_somebody_looked_at_costs_the_worker_anything(
    alice: User, bob: User, note: MakeNote
) -> None:
    for number in range(3):
        note(alice, f"Note {number}")
    note(bob, "A single note")
    with patch.object(keeping, "SMALL", 2):
        assert keeping._due() == []
        for user in (alice, bob):
            keeping.tags_of(user.pk)
        assert keeping._due() == [alice.pk]
