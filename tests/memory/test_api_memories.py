"""`/api/v1/memories/` as a program uses it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils.dateparse import parse_datetime

from apps.accounts.models import User
from apps.core.ids import uuid7
from apps.core.throttles import ScopeThrottle
from apps.memory.models import Memory
from apps.memory.serializers import MemoryOutput, RelatedOutput, VersionOutput
from apps.memory.services import cycle_advance, edge_create
from tests.memory.conftest import MakeNote, found

Api = Callable[..., Client]
BASE = "/api/v1/memories/"


def send(client: Client, method: str, path: str, body: Any = None) -> Any:
    """The answer's JSON, with its status as `status_code` beside it."""
    return client.generic(method, path, json.dumps(body if body is not None else {}), "application/json")


def post(client: Client, path: str, body: Any = None) -> Any:
    return send(client, "POST", path, body)


@pytest.fixture
def alices(alice: User, api: Api) -> Client:
    return api(alice)


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
    assert set(made) == set(MemoryOutput().fields)
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
    answer = send(alices, "PATCH", f"{BASE}{made['note_id']}/", {"content": "Only prawns.", "importance": 4})
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
    assert set(history["results"][0]) == set(VersionOutput().fields)
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
        ("q=&tier=&ordering=", ["Harbour", "Green tea"]),
    ],
)
def test_the_list_takes_the_documented_filters(
    alice: User, alices: Client, note: MakeNote, query: str, contents: list[str]
) -> None:
    note(alice, "Green tea", tags=["Food"], kind="preference", importance=2)
    note(alice, "Harbour", tier="short_term", category="work", status="pending")
    assert [row["content"] for row in alices.get(f"{BASE}?{query}").json()["results"]] == contents


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
    assert set(made["results"][0]) == set(MemoryOutput().fields)
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
    assert set(near["results"][0]) == set(RelatedOutput().fields)
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


# --- Who may what ----------------------------------------------------------------------------------------------

EVERY = [
    ("GET", ""),
    ("POST", ""),
    ("POST", "bulk/"),
    ("GET", "{id}/"),
    ("PATCH", "{id}/"),
    ("DELETE", "{id}/"),
    ("GET", "{id}/history/"),
    ("POST", "{id}/restore/"),
    ("GET", "{id}/related/"),
    ("GET", "{id}/links/"),
    ("POST", "{id}/links/"),
    ("DELETE", "{id}/links/{id}/"),
]


@pytest.mark.parametrize(("method", "path"), EVERY)
def test_nobody_gets_in_without_credentials(db: None, method: str, path: str) -> None:
    answer = send(Client(), method, BASE + path.format(id=uuid7()))
    assert answer.status_code == 401
    assert set(answer.json()) == {"code", "message", "extra"}


@pytest.mark.parametrize(("method", "path"), [entry for entry in EVERY if entry[0] != "GET"])
def test_a_reading_token_cannot_write(alice: User, api: Api, note: MakeNote, method: str, path: str) -> None:
    made = note(alice)
    answer = send(api(alice, "read"), method, BASE + path.format(id=made.pk), {"content": "Changed."})
    assert (answer.status_code, answer.json()["code"]) == (403, "missing_scope")
    assert list(Memory.objects.for_user(alice).values_list("content", flat=True)) == [made.content]


def test_a_reading_token_reads(alice: User, api: Api, note: MakeNote) -> None:
    made = note(alice)
    reader = api(alice, "read")
    for path in ("", f"{made.pk}/", f"{made.pk}/history/", f"{made.pk}/related/", f"{made.pk}/links/"):
        assert reader.get(BASE + path).status_code == 200


@pytest.mark.parametrize(("method", "path"), [entry for entry in EVERY if "{id}" in entry[1]])
@pytest.mark.parametrize("key", ["foreign", "unknown", "note-xyz", "1", "x" * 300, "%00", "%F0%9F%A6%9E"])
def test_foreign_unknown_and_malformed_ids_are_not_found(
    alice: User, bob: User, api: Api, note: MakeNote, method: str, path: str, key: str
) -> None:
    foreign = note(alice)
    written = {"foreign": str(foreign.pk), "unknown": str(uuid7())}.get(key, key)
    body = {"content": "Bob was here.", "target": str(note(bob).pk)}
    if path.endswith("restore/"):
        body = {}
    answer = send(api(bob), method, BASE + path.format(id=written), body)
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"
    assert Memory.objects.for_user(alice).get().content == foreign.content


def test_a_note_cannot_be_linked_to_somebody_elses(alice: User, bob: User, api: Api, note: MakeNote) -> None:
    mine, his = note(alice), note(bob)
    answer = post(api(alice), f"{BASE}{mine.pk}/links/", {"target": str(his.pk)})
    assert answer.status_code == 404


def test_lists_show_own_notes_alone(alice: User, bob: User, api: Api, note: MakeNote) -> None:
    note(alice, "Alice's.", tags=["x"])
    note(bob, "Bob's.", tags=["x"])
    for query in ("", "?q=s", "?tag=x", "?ordering=-priority", "?status=active"):
        results = api(bob).get(BASE + query).json()["results"]
        assert [row["content"] for row in results] == ["Bob's."]


def test_writing_is_throttled_and_reading_is_not(
    alice: User, alices: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.IZZY_THROTTLE = True
    monkeypatch.setattr(ScopeThrottle, "THROTTLE_RATES", {"write": "2/min"})
    cache.clear()
    assert [post(alices, BASE, {"content": "tea"}).status_code for _ in range(3)] == [201, 201, 429]
    refused = post(alices, BASE, {"content": "tea"})
    assert refused.json()["code"] == "throttled"
    assert int(refused["Retry-After"]) > 0
    assert alices.get(BASE).status_code == 200
    assert post(alices, "/api/v1/search/", {"query": "tea"}).status_code == 200
    cache.clear()


# --- Bad input -------------------------------------------------------------------------------------------------

BAD_NOTES: list[Any] = [
    {},
    {"content": ""},
    {"content": "   "},
    {"content": None},
    {"content": 5},
    {"content": ["tea"]},
    {"content": {"text": "tea"}},
    {"content": "tea", "tier": "medium"},
    {"content": "tea", "kind": "rumour"},
    {"content": "tea", "importance": "3"},
    {"content": "tea", "importance": 3.5},
    {"content": "tea", "importance": 10**30},
    {"content": "tea", "tags": "food"},
    {"content": "tea", "tags": [1]},
    {"content": "tea", "category": ["x"]},
    {"content": "tea", "status": "deleted"},
    {"content": "tea", "valid_from": "soon"},
    {"content": "tea", "valid_from": 20260501},
    {"content": "tea", "valid_from": "2026-05-01", "valid_to": "2026-04-01"},
    {"content": "tea", "priority": 2},
    {"content": "tea", "id": "00000000-0000-7000-8000-000000000000"},
    {"content": "tea", "user": "x"},
    {"content": "tea", "user_id": "x"},
    {"content": "tea", "memory_id": "x", "change": 1, "provenance": {}},
    [],
    "tea",
    5,
    None,
    True,
]


@pytest.mark.parametrize("body", BAD_NOTES, ids=lambda body: json.dumps(body)[:40])
def test_a_bad_note_is_refused_and_the_field_named(alice: User, alices: Client, body: Any) -> None:
    answer = alices.generic("POST", BASE, json.dumps(body), "application/json")
    assert 400 <= answer.status_code < 500
    error = answer.json()
    assert set(error) == {"code", "message", "extra"}
    if isinstance(body, dict):
        assert error["extra"]["field"]
    assert Memory.objects.for_user(alice).count() == 0


@pytest.mark.parametrize(
    "body", [entry for entry in BAD_NOTES if entry != {}], ids=lambda body: json.dumps(body)[:40]
)
def test_a_bad_change_is_refused_and_changes_nothing(
    alice: User, alices: Client, note: MakeNote, body: Any
) -> None:
    made = note(alice)
    answer = alices.generic("PATCH", f"{BASE}{made.pk}/", json.dumps(body), "application/json")
    assert 400 <= answer.status_code < 500
    assert set(answer.json()) == {"code", "message", "extra"}
    assert Memory.objects.for_user(alice).get().content == made.content


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"\xff\xfe",
        b'{"content": "\\ud800"}',
        b'{"content": "a\\u0000b"}',
        b'{"content": NaN}',
        b"[" * 5000,
        b'{"content": "\xff"}',
    ],
    ids=["cut", "not utf-8", "surrogate", "nul", "nan", "deep", "bad byte"],
)
@pytest.mark.parametrize("path", ["", "bulk/"])
def test_a_body_that_is_no_clean_json_is_refused(alices: Client, raw: bytes, path: str) -> None:
    answer = alices.generic("POST", BASE + path, raw, "application/json")
    assert answer.status_code == 400
    assert set(answer.json()) == {"code", "message", "extra"}


def test_ten_megabytes_are_too_large(alice: User, alices: Client) -> None:
    answer = post(alices, BASE, {"content": "x" * 10_000_000})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert post(alices, BASE, {"content": "x" * 20_001}).status_code == 413
    assert Memory.objects.for_user(alice).count() == 0


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"memories": []},
        {"memories": "x"},
        {"memories": {}},
        {"memories": [5]},
        {"memories": [{"content": "x"}], "more": 1},
        {"notes": []},
        "x",
        None,
    ],
    ids=lambda body: json.dumps(body)[:40],
)
def test_a_bad_bulk_is_refused(alices: Client, body: Any) -> None:
    answer = alices.generic("POST", f"{BASE}bulk/", json.dumps(body), "application/json")
    assert answer.status_code == 400
    assert set(answer.json()) == {"code", "message", "extra"}


def test_a_thousand_and_one_notes_are_too_many(alices: Client) -> None:
    answer = post(alices, f"{BASE}bulk/", {"memories": [{"content": "x"}] * 1001})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_many")


@pytest.mark.parametrize(
    "query",
    [
        "tier=medium",
        "kind=x",
        "status=x",
        "source=x",
        "ordering=x",
        "q=%00",
        "tag=%00",
        f"q={'x' * 2000}",
        f"tag={'x' * 60}",
        "category=%00",
    ],
)
def test_a_bad_filter_is_refused(alices: Client, query: str) -> None:
    answer = alices.get(f"{BASE}?{query}")
    assert 400 <= answer.status_code < 500
    assert set(answer.json()) == {"code", "message", "extra"}


@pytest.mark.parametrize("depth", ["0", "6", "-1", "x", "2.5", "9" * 40, "%00", "²"])
def test_a_bad_depth_is_refused(alice: User, alices: Client, note: MakeNote, depth: str) -> None:
    answer = alices.get(f"{BASE}{note(alice).pk}/related/?depth={depth}")
    assert (answer.status_code, answer.json()["extra"]["field"]) == (400, "depth")


@pytest.mark.parametrize(
    "body",
    [
        {"version": 0},
        {"version": "1"},
        {"version": 1.5},
        {"version": True},
        {"version": 10**30},
        {"other": 1},
        [],
        "x",
    ],
)
def test_a_bad_version_is_refused(alice: User, alices: Client, note: MakeNote, body: Any) -> None:
    answer = alices.generic("POST", f"{BASE}{note(alice).pk}/restore/", json.dumps(body), "application/json")
    assert answer.status_code == 400


def test_a_version_there_never_was_is_not_found(alice: User, alices: Client, note: MakeNote) -> None:
    answer = post(alices, f"{BASE}{note(alice).pk}/restore/", {"version": 7})
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_version")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"target": "x"}, 404),
        ({"target": None}, 404),
        ({"target": "self"}, 400),
        ({"target": "other", "relation": ""}, 400),
        ({"target": "other", "relation": 5}, 400),
        ({"target": "other", "weight": 2}, 400),
        ({"target": "other", "weight": "1"}, 400),
        ({"target": "other", "strength": 1}, 400),
        ([], 400),
    ],
    ids=lambda value: json.dumps(value),
)
def test_a_bad_link_is_refused(alice: User, alices: Client, note: MakeNote, body: Any, status: int) -> None:
    a, b = note(alice, "A"), note(alice, "B")
    if isinstance(body, dict) and body.get("target") in {"self", "other"}:
        body = {**body, "target": str(a.pk if body["target"] == "self" else b.pk)}
    answer = alices.generic("POST", f"{BASE}{a.pk}/links/", json.dumps(body), "application/json")
    assert answer.status_code == status
    assert set(answer.json()) == {"code", "message", "extra"}
