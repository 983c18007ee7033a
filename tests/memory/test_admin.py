"""The admin shows all memories to the superuser and changes them through the services."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.accounts.models import User
from apps.memory.models import Memory, OccasionsBy, Origin, Trust
from apps.memory.notes.changes import cycle_advance, memory_delete, memory_update
from apps.memory.notes.joining import edge_create
from apps.memory.notes.revisions import Change
from apps.memory.notes.selectors import memory_get, note_history
from tests.memory.conftest import MakeNote, found

MODELS = ["memory", "memoryrevision", "memoryedge", "decaycycle"]


@pytest.fixture
def browser(admin: User, sign_in: Callable[[User], Client]) -> Client:
    return sign_in(admin)


@pytest.fixture
def rows(alice: User, note: MakeNote) -> Memory:
    """A row of every model, all of alice's."""
    made, other = note(alice, "Likes tea."), note(alice, "Other.")
    edge_create(user_id=alice.pk, source_id=made.pk, target_id=other.pk)
    memory_update(user_id=alice.pk, memory_id=made.pk, content="Likes green tea.")
    cycle_advance(user_id=alice.pk)
    return made


@pytest.mark.parametrize("model", MODELS)
def test_every_model_has_a_list_with_search(browser: Client, rows: Memory, model: str) -> None:
    page = reverse(f"admin:memory_{model}_changelist")
    for query in ("", "?q=tea", "?q=alice"):
        answer = browser.get(page + query)
        assert answer.status_code == 200
    assert "alice" in browser.get(page).content.decode()


def test_the_list_reads_no_whole_notes(browser: Client, alice: User, note: MakeNote) -> None:
    note(alice, "The beginning. " + "x" * 5000)
    with CaptureQueriesContext(connection) as queries:
        page = browser.get(reverse("admin:memory_memory_changelist")).content.decode()
    assert "The beginning." in page
    assert "x" * 200 not in page
    lists = [query["sql"] for query in queries if "SUBSTR" in query["sql"].upper()]
    assert lists
    assert all('"memory_memory"."content",' not in sql.upper().replace("SUBSTR", "") for sql in lists)


def test_the_admin_changes_a_note_with_history_and_search(
    browser: Client, alice: User, note: MakeNote
) -> None:
    made = note(alice, "Likes tea.", tags=["food"])
    page = reverse("admin:memory_memory_change", args=[made.pk])
    assert browser.get(page).status_code == 200
    form = {
        "content": "Likes coffee.",
        "tier": "long_term",
        "kind": "preference",
        "importance": "4",
        "tags": '["food"]',
        "category": "",
        "valid_from_0": "",
        "valid_from_1": "",
        "valid_to_0": "",
        "valid_to_1": "",
    }
    answer = browser.post(page, form)
    assert answer.status_code == 302, answer.content.decode()[:3000]
    now = memory_get(alice.pk, made.pk)
    assert (now.content, now.kind, now.importance) == ("Likes coffee.", "preference", 4)
    newest = note_history(alice.pk, made.pk)[0]
    assert (newest.actor, newest.reason) == ("user", "in the admin")
    assert found(alice, "coffee") == [made.pk]


@pytest.mark.parametrize("kept", ["\n", "\r\n"])
def test_others_words_stay_theirs_where_the_admin_changes_only_the_importance(
    browser: Client, alice: User, note: MakeNote, kept: str
) -> None:
    theirs = Change(actor=Origin.ASSISTANT, trust=Trust.UNTRUSTED)
    made = note(alice, f"A page says:{kept}the user likes tea.", change=theirs)
    form = {
        "content": "A page says:\r\nthe user likes tea.",  # as a browser sends it
        "tier": "long_term",
        "kind": "general",
        "importance": "5",
    }
    assert browser.post(reverse("admin:memory_memory_change", args=[made.pk]), form).status_code == 302
    now = memory_get(alice.pk, made.pk)
    assert (now.importance, now.content, now.trust) == (5, made.content, Trust.UNTRUSTED)


def test_words_with_a_comma_stand_in_quotes_in_the_admin_too(
    browser: Client, alice: User, note: MakeNote
) -> None:
    made = note(alice, tags=["Paris, Texas"], occasions=["planning a hike, or a tour"])
    Memory.everything.filter(pk=made.pk).update(occasions_by=OccasionsBy.MODEL)
    form = {
        "content": made.content,
        "tier": "long_term",
        "kind": "general",
        "importance": "5",
        "tags": '"Paris, Texas"',
        "occasions": '"planning a hike, or a tour"',
    }
    page = reverse("admin:memory_memory_change", args=[made.pk])
    assert 'value="&quot;Paris, Texas&quot;"' in browser.get(page).content.decode()
    assert browser.post(page, form).status_code == 302
    now = memory_get(alice.pk, made.pk)
    assert (now.importance, now.tags, now.occasions) == (5, made.tags, made.occasions)
    assert now.occasions_by == OccasionsBy.MODEL
    browser.post(page, form | {"tags": "Paris, France"})
    assert memory_get(alice.pk, made.pk).tags == ["Paris", "France"]


def test_the_admin_cannot_save_what_a_note_cannot_hold(
    browser: Client, alice: User, note: MakeNote
) -> None:
    made = note(alice, "Likes tea.")
    page = reverse("admin:memory_memory_change", args=[made.pk])
    form = {
        "content": "x" * 20_001,
        "tier": "long_term",
        "kind": "general",
        "importance": "3",
        "tags": "[]",
    }
    assert browser.post(page, form).status_code == 200
    assert memory_get(alice.pk, made.pk).content == "Likes tea."


def test_deleting_in_the_admin_can_be_undone_and_deleting_again_cannot(
    browser: Client, alice: User, note: MakeNote
) -> None:
    made = note(alice, "Likes tea.")
    page = reverse("admin:memory_memory_delete", args=[made.pk])
    browser.post(page, {"post": "yes"})
    assert Memory.objects.with_deleted(alice.pk).get().status == "deleted"
    assert found(alice, "tea") == []
    assert browser.get(reverse("admin:memory_memory_change", args=[made.pk])).status_code == 200
    browser.post(page, {"post": "yes"})
    assert not Memory.objects.with_deleted(alice.pk).exists()


def test_many_notes_are_deleted_through_the_service(
    browser: Client, alice: User, note: MakeNote
) -> None:
    notes = [note(alice, f"Tea number {number}.") for number in range(3)]
    form = {
        "action": "delete_selected",
        "_selected_action": [str(row.pk) for row in notes],
        "post": "yes",
    }
    browser.post(reverse("admin:memory_memory_changelist"), form)
    assert found(alice, "tea") == []
    assert {row.status for row in Memory.objects.with_deleted(alice.pk)} == {"deleted"}


def test_a_deleted_note_is_listed_in_the_admin(browser: Client, alice: User, note: MakeNote) -> None:
    memory_delete(user_id=alice.pk, memory_id=note(alice, "Likes tea.").pk)
    page = browser.get(reverse("admin:memory_memory_changelist") + "?status__exact=deleted")
    assert "Likes tea." in page.content.decode()


@pytest.mark.parametrize("model", MODELS)
def test_others_do_not_get_in(alice: User, sign_in: Callable[[User], Client], model: str) -> None:
    answer = sign_in(alice).get(reverse(f"admin:memory_{model}_changelist"))
    assert answer.status_code in {302, 403, 404}
