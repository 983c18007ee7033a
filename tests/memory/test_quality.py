"""The numbers that tell how good a memory is, and the notes behind them."""

import json
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any
from unittest.mock import Mock

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounts.models import User
from apps.memory import quality
from apps.memory.files.services import file_write
from apps.memory.models import CaptureWindow, Memory
from apps.memory.notes.changes import memory_archive, memory_delete, memory_update
from apps.memory.notes.joining import edge_create
from apps.memory.pages.overview import breakdown
from apps.memory.quality import duplicate_ids, duplicates, memory_quality, most_used
from apps.memory.summary.keeping import counted
from apps.search.selectors import alike_pairs
from tests.memory.conftest import MakeNote

pytestmark = pytest.mark.django_db

TWICE = ("Alice is allergic to shellfish.", "Alice is allergic to shellfish!")


def test_an_empty_memory_has_numbers_too(alice: User) -> None:
    figures = memory_quality(alice.pk)
    assert figures["active"] == figures["duplicates"] == figures["never_retrieved"] == 0
    assert figures["gated_out"] is figures["untrusted_share"] is None


def test_what_is_said_twice_is_a_pair(alice: User, bob: User, note: MakeNote) -> None:
    first, second = (note(alice, text) for text in TWICE)
    note(alice, "The train to Graz leaves at nine.")
    note(bob, TWICE[0])
    assert memory_quality(alice.pk)["duplicates"] == 1
    assert memory_quality(bob.pk)["duplicates"] == 0
    (pair,) = duplicates(alice.pk, duplicate_ids(alice.pk))
    assert (pair.one.pk, pair.two.pk) == (first.pk, second.pk)
    assert 0.85 <= pair.similarity <= 1


@pytest.mark.parametrize("away", [memory_delete, memory_archive])
def test_a_pair_is_gone_with_one_of_its_notes(
    alice: User, note: MakeNote, away: Callable[..., Any]
) -> None:
    _, second = (note(alice, text) for text in TWICE)
    assert memory_quality(alice.pk)["duplicates"] == 1
    away(user_id=alice.pk, memory_id=second.pk)
    assert memory_quality(alice.pk)["duplicates"] == 0


def test_a_changed_note_is_compared_anew(alice: User, note: MakeNote) -> None:
    first, _ = note(alice, TWICE[0]), note(alice, "The train to Graz leaves at nine.")
    assert duplicate_ids(alice.pk) == []
    memory_update(
        user_id=alice.pk, memory_id=first.pk, content="The train to Graz leaves at nine o'clock."
    )
    assert len(duplicate_ids(alice.pk)) == 1


def test_what_differs_in_a_number_is_no_duplicate(alice: User, note: MakeNote) -> None:
    note(alice, "The user takes 50 mg of metoprolol every morning.")
    note(alice, "The user takes 100 mg of metoprolol every morning.")
    assert memory_quality(alice.pk)["duplicates"] == 0


def test_each_number_counts_its_own(alice: User, note: MakeNote) -> None:
    old = note(alice, "Old and never used.")
    used = note(alice, "Old and used once in a while.")
    Memory.objects.for_user(alice).update(created_at=timezone.now() - timedelta(days=8))
    Memory.objects.for_user(alice).filter(pk=used.pk).update(access_count=1)
    note(alice, "A young one has had no chance yet.")
    note(alice, "Waits to be looked at by somebody.", status="pending")
    put_away = note(alice, "Archived long ago, like a winter coat.")
    memory_archive(user_id=alice.pk, memory_id=put_away.pk)
    faint = note(alice, "Faded, as some colours do in the sun.")
    Memory.objects.for_user(alice).filter(pk=faint.pk).update(priority=0.01)
    Memory.objects.for_user(alice).filter(pk=old.pk).update(trust="untrusted")
    edge_create(user_id=alice.pk, source_id=old.pk, target_id=used.pk, relation="contradicts")
    file_write(user_id=alice.pk, path="/memories/a.txt", text="12345")
    figures = memory_quality(alice.pk)
    expected = {
        "active": 4, "never_retrieved": 1, "pending_review": 1, "archived": 1, "faded": 1, "untrusted": 1,
        "untrusted_share": round(1 / 6, 4), "contradictions_open": 1, "files": 1, "file_bytes": 5,
    }  # fmt: skip
    assert {name: figures[name] for name in expected} == expected


def test_the_share_that_the_gate_passes_over(alice: User, note: MakeNote) -> None:
    conversation = note(alice).pk
    for gate in ("passed", "idle", "idle", "idle", ""):
        CaptureWindow.objects.create(
            user=alice, conversation_id=conversation, gate=gate, state="done", injected_again=1
        )
    figures = memory_quality(alice.pk)
    assert (figures["gated_out"], figures["injected_again"]) == (0.75, 5)


def test_nothing_is_looked_up_twice(
    alice: User, note: MakeNote, api: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in TWICE:
        note(alice, text)
    with CaptureQueriesContext(connection) as asked:
        assert api(alice).get("/api/v1/stats/").json()["capture"]["windows"] == 0
    assert sum('FROM "memory_capturewindow"' in each["sql"] for each in asked) == 1
    looked = Mock(wraps=alike_pairs)
    monkeypatch.setattr(quality, "alike_pairs", looked)
    figures, _, _ = counted(alice.pk)
    assert figures.quality["duplicates"] == len(figures.pairs) == looked.call_count == 1


def test_over_rest_and_on_the_command_line(
    alice: User, bob: User, note: MakeNote, api: Callable[..., Client]
) -> None:
    for text in TWICE:
        note(alice, text)
    assert api(alice).get("/api/v1/stats/").json()["memory_quality"]["duplicates"] == 1
    out = StringIO()
    call_command("memory_quality", json=True, user="alice", stdout=out)
    assert list(json.loads(out.getvalue())) == ["alice"]
    out = StringIO()
    call_command("memory_quality", stdout=out)
    assert "duplicates" in out.getvalue()
    with pytest.raises(CommandError):
        call_command("memory_quality", user="nobody")


def test_every_number_of_the_page_leads_to_its_notes(
    alice: User, note: MakeNote, sign_in: Callable[[User], Client]
) -> None:
    first, second = (note(alice, text) for text in TWICE)
    Memory.objects.for_user(alice).update(
        created_at=timezone.now() - timedelta(days=8), trust="untrusted"
    )
    edge_create(user_id=alice.pk, source_id=first.pk, target_id=second.pk, relation="contradicts")
    browser = sign_in(alice)
    page = browser.get("/memory/quality/").content.decode()
    assert "Said twice" in page
    assert "Tokens per memory" not in page, "nothing has been read yet"
    for show in ("duplicates", "contradictions", "unused", "untrusted"):
        assert (
            "allergic to shellfish" in browser.get(f"/memory/quality/?show={show}").content.decode()
        ), show
    shown = browser.get("/memory/quality/?show=duplicates").content.decode()
    assert f"notes={first.pk}&amp;notes={second.pk}" in shown
    assert browser.get("/memory/quality/?show=nonsense&page=x").status_code == 200


def test_the_page_says_what_there_is_and_each_line_leads_to_that_many_notes(
    alice: User, note: MakeNote, sign_in: Callable[[User], Client]
) -> None:
    used, *_ = (note(alice, f"Likes tea number {number}", kind="preference") for number in range(2))
    note(alice, "Lives on the third floor", kind="fact")
    archived = note(alice, "Put aside", kind="fact")
    memory_archive(user_id=alice.pk, memory_id=archived.pk)
    Memory.objects.for_user(alice).filter(pk=used.pk).update(use_count=7)
    lines = {line.label: line for _, group in breakdown(counted(alice.pk)[0]) for line in group}
    assert (lines["Preference"].count, lines["Preference"].percent) == (2, 100)
    assert (lines["Fact"].count, lines["Fact"].percent) == (1, 50)
    assert [found.pk for found in most_used(alice.pk)] == [used.pk]
    browser = sign_in(alice)
    page = browser.get("/memory/quality/").content.decode()
    for line in lines.values():
        assert line.href.replace("&", "&amp;") in page
        assert browser.get(line.href).content.decode().count("data-note=") == line.count


def test_the_command_says_where_there_is_nobody(db: None) -> None:
    out = StringIO()
    call_command("memory_quality", stdout=out)
    assert out.getvalue() == "There are no users yet.\n"
