"""`/api/v1/memories/` as a program uses it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils.dateparse import parse_datetime

from apps.accounts.models import User
from apps.memory.api.history_shapes import VersionOutput
from apps.memory.api.shapes import MemoryOutput, RelatedOutput
from apps.memory.models import Memory
from apps.memory.notes.changes import cycle_advance
from apps.memory.notes.joining import edge_create
from tests.memory.calling import BASE, post, send
from tests.memory.calling import alices as alices
from tests.memory.conftest import MakeNote, found


def test_a_saved_note_has_the_whole_shape(alices: Client) -> None:
    body = {
        "content": "I am allergic to shellfish.",
        "tier": "short_term",
        "kind": "fact",
        "importance": 5,
        "tags": ["food", "health"],
        "category": "body",
        "valid_from": "2026-01-01",
        "valid_to": "2027-01-01T10:00:00+02:00",
    }
    answer = post(alices, BASE, body)
    made = answer.json()
    assert answer.status_code == 201
    assert set(made) == set(MemoryOutput.model_fields)
    assert {name: made[name] for name in body if not name.startswith("valid")} == {
        name: value for name, value in body.items() if not name.startswith("valid")
    }
    assert (made["valid_from"], made["valid_to"]) == ("2026-01-01T00:00:00Z", "2027-01-01T08:00:00Z")
    assert (made["priority"], made["decay_rate"], made["faded"]) == (0.6, 0.02, False)
    assert (made["origin"], made["trust"], made["status"]) == ("api", "user", "active")
    assert made["note_id"] == f"note-{made['id']}"
    assert (made["access_count"], made["last_accessed"], made["deleted_at"]) == (0, None, None)
    assert parse_datetime(made["created_at"]) is not None


def test_the_browsers_session_saves_as_the_user(alice: User, sign_in: Callable[[User], Client]) -> None:
    assert post(sign_in(alice), BASE, {"content": "Likes tea."}).json()["origin"] == "user"


def test_the_session_needs_a_csrf_token(alice: User) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    answer = post(browser, BASE, {"content": "Likes tea."})
    assert (answer.status_code, answer.json()["code"]) == (403, "csrf_failed")


def test_a_note_is_read_by_either_form_of_its_id(alices: Client) -> None:
    made = post(alices, BASE, {"content": "Likes tea."}).json()
    for written in (made["id"], made["note_id"], made["id"].upper()):
        assert alices.get(f"{BASE}{written}/").json() == made


def test_reading_over_the_api_is_no_access(alices: Client) -> None:
    made = post(alices, BASE, {"content": "Likes tea."}).json()
    alices.get(f"{BASE}{made['id']}/")
    assert alices.get(BASE).json()["results"][0]["access_count"] == 0


def test_a_change_keeps_the_id_and_the_rest(alice: User, alices: Client) -> None:
    made = post(alices, BASE, {"content": "Allergic to shellfish.", "tags": ["food"]}).json()
    answer = send(
        alices, "PATCH", f"{BASE}{made['note_id']}/", {"content": "Only prawns.", "importance": 4}
    )
    changed = answer.json()
    assert answer.status_code == 200
    assert (changed["id"], changed["content"], changed["importance"]) == (made["id"], "Only prawns.", 4)
    assert changed["tags"] == ["food"]
    assert changed["updated_at"] > made["updated_at"]
    assert [str(pk) for pk in found(alice, "prawns")] == [made["id"]]


def test_a_note_is_sent_back_whole_as_it_was_read(alices: Client) -> None:
    made = post(alices, BASE, {"content": "Likes tea."}).json()
    url = f"{BASE}{made['id']}/"
    changed = send(alices, "PATCH", url, {**made, "content": "Likes green tea."})
    assert (changed.status_code, changed.json()["content"]) == (200, "Likes green tea.")
    raised = send(alices, "PATCH", url, {"trust": "assistant"})
    assert (raised.status_code, raised.json()["extra"]) == (400, {"field": "trust"})
    post(alices, f"{url}supersede/", {"content": "Likes black tea."})
    replaced = send(alices, "PATCH", url, {**alices.get(url).json(), "tags": ["drink"]})
    assert (replaced.status_code, replaced.json()["tags"]) == (200, ["drink"])


def test_a_deleted_note_is_gone_and_comes_back(alice: User, alices: Client) -> None:
    made = post(alices, BASE, {"content": "Likes green tea."}).json()
    answer = alices.delete(f"{BASE}{made['id']}/")
    assert (answer.status_code, answer.content) == (204, b"")
    assert alices.get(f"{BASE}{made['id']}/").status_code == 404
    assert alices.delete(f"{BASE}{made['id']}/").status_code == 404
    assert alices.get(f"{BASE}{made['id']}/history/").status_code == 404
    assert alices.get(BASE).json()["count"] == 0
    assert found(alice, "tea") == []
    (trashed,) = alices.get(f"{BASE}?status=deleted").json()["results"]
    assert (trashed["id"], trashed["status"]) == (made["id"], "deleted")
    assert trashed["deleted_at"]
    back = post(alices, f"{BASE}{made['note_id']}/restore/").json()
    assert (back["id"], back["status"], back["deleted_at"]) == (made["id"], "active", None)
    assert [str(pk) for pk in found(alice, "tea")] == [made["id"]]


def test_history_lists_versions_newest_first_and_restore_goes_back(alices: Client) -> None:
    made = post(alices, BASE, {"content": "One."}).json()
    url = f"{BASE}{made['id']}/"
    send(alices, "PATCH", url, {"content": "Two."})
    send(alices, "PATCH", url, {"content": "Three.", "tags": ["x"]})
    history = alices.get(f"{url}history/").json()
    assert history["count"] == 3
    assert [(row["version"], row["content"], row["current"]) for row in history["results"]] == [
        (3, "Three.", True),
        (2, "Two.", False),
        (1, "One.", False),
    ]
    assert [row["action"] for row in history["results"]] == ["updated", "updated", "created"]
    assert {row["actor"] for row in history["results"]} == {"api"}
    assert set(history["results"][0]) == set(VersionOutput.model_fields)
    back = post(alices, f"{url}restore/", {"version": 1})
    assert (back.status_code, back.json()["content"], back.json()["tags"]) == (200, "One.", [])
    assert alices.get(f"{url}history/").json()["count"] == 4


def test_an_archived_note_is_restored_without_a_version(alices: Client) -> None:
    made = post(alices, BASE, {"content": "One."}).json()
    url = f"{BASE}{made['id']}/"
    assert send(alices, "PATCH", url, {"status": "archived"}).json()["status"] == "archived"
    assert post(alices, f"{url}restore/").json()["status"] == "active"


def test_lists_have_pages(alice: User, alices: Client, note: MakeNote) -> None:
    for number in range(5):
        note(alice, f"Note {number}.")
    first = alices.get(f"{BASE}?page_size=2&ordering=created_at").json()
    assert (first["count"], first["previous"], len(first["results"])) == (5, None, 2)
    second = alices.get(first["next"]).json()
    assert [row["content"] for row in second["results"]] == ["Note 2.", "Note 3."]
    assert second["previous"]
    assert alices.get(f"{BASE}?page=9").status_code == 404


@pytest.mark.parametrize(
    ("query", "contents"),
    [
        ("q=tea", ["Green tea"]),
        ("tier=short_term", ["Harbour"]),
        ("kind=preference", ["Green tea"]),
        ("tag=FOOD", ["Green tea"]),
        ("category=work", ["Harbour"]),
        ("status=pending", ["Harbour"]),
        ("source=user", ["Harbour", "Green tea"]),
        ("source=api", []),
        ("ordering=importance", ["Green tea", "Harbour"]),
        ("q=", ["Harbour", "Green tea"]),
    ],
)
def test_the_list_takes_the_documented_filters(
    alice: User, alices: Client, note: MakeNote, query: str, contents: list[str]
) -> None:
    note(alice, "Green tea", tags=["Food"], kind="preference", importance=2)
    note(alice, "Harbour", tier="short_term", category="work", status="pending")
    assert [row["content"] for row in alices.get(f"{BASE}?{query}").json()["results"]] == contents


@pytest.mark.parametrize("query", ["tier=", "ordering=", "page=", "page_size=", "status=", "tier=none"])
def test_a_filter_without_a_value_or_with_an_impossible_one_is_refused(
    alices: Client, query: str
) -> None:
    refused = alices.get(f"{BASE}?{query}")
    assert (refused.status_code, refused.json()["extra"]["field"]) == (400, query.partition("=")[0])


def test_the_list_shows_what_priorities_are_by_now(alice: User, alices: Client, note: MakeNote) -> None:
    note(alice, "Fades.", tier="short_term")
    for _ in range(28):
        cycle_advance(user_id=alice.pk)
    (row,) = alices.get(BASE).json()["results"]
    assert (row["priority"], row["faded"]) == (pytest.approx(0.04), True)


@pytest.mark.parametrize(
    "wrap", [lambda notes: {"memories": notes}, lambda notes: notes], ids=["object", "list"]
)
def test_bulk_saves_many_in_order(alice: User, alices: Client, wrap: Callable[[Any], Any]) -> None:
    drafts = [{"content": f"Fact {number}", "tags": ["bulk"]} for number in range(40)]
    answer = post(alices, f"{BASE}bulk/", wrap(drafts))
    assert answer.status_code == 201
    made = answer.json()
    assert made["count"] == 40
    assert [row["content"] for row in made["results"]] == [draft["content"] for draft in drafts]
    assert set(made["results"][0]) == set(MemoryOutput.model_fields)
    assert Memory.objects.for_user(alice).count() == 40
    assert len(found(alice, "fact 7")) > 0


def test_bulk_is_all_or_nothing(alice: User, alices: Client) -> None:
    answer = post(
        alices, f"{BASE}bulk/", {"memories": [{"content": "fine"}, {"content": "x", "importance": 9}]}
    )
    assert answer.status_code == 400
    assert answer.json()["extra"] == {"field": "importance", "index": 1}
    assert Memory.objects.for_user(alice).count() == 0


def test_related_notes_come_with_the_way_to_them(alice: User, alices: Client, note: MakeNote) -> None:
    a, b, c = (note(alice, text) for text in "ABC")
    edge_create(user_id=alice.pk, source_id=a.pk, target_id=b.pk, relation="elaborates")
    edge_create(user_id=alice.pk, source_id=b.pk, target_id=c.pk)
    near = alices.get(f"{BASE}{a.note_id}/related/").json()
    assert (near["count"], near["next"], near["previous"]) == (2, None, None)
    assert [(row["content"], row["depth"], row["relation"], row["via"]) for row in near["results"]] == [
        ("B", 1, "elaborates", str(a.pk)),
        ("C", 2, "related", str(b.pk)),
    ]
    assert set(near["results"][0]) == set(RelatedOutput.model_fields)
    assert alices.get(f"{BASE}{a.pk}/related/?depth=1").json()["count"] == 1


def test_links_are_made_listed_and_removed(alice: User, alices: Client, note: MakeNote) -> None:
    a, b = note(alice, "A"), note(alice, "B")
    url = f"{BASE}{a.pk}/links/"
    answer = post(alices, url, {"target": b.note_id, "relation": "contradicts", "weight": 0.5})
    edge = answer.json()
    assert answer.status_code == 201
    assert (edge["source"], edge["target"]) == (str(a.pk), str(b.pk))
    assert (edge["relation"], edge["weight"]) == ("contradicts", 0.5)
    assert post(alices, url, {"target": str(b.pk)}).json()["relation"] == "related"
    assert alices.get(f"{BASE}{b.pk}/links/").json()["count"] == 2
    assert alices.delete(f"{url}{edge['id']}/").status_code == 204
    assert alices.get(url).json()["count"] == 1
