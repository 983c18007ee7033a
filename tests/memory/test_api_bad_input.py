"""`/api/v1/memories/` refuses bad input, and changes nothing then."""

import json
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.memory.models import Memory
from tests.memory.calling import BASE, post
from tests.memory.calling import alices as alices
from tests.memory.conftest import MakeNote

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
    {"content": "tea", "valid_to": "9999-12-31T23:59:59Z"},
    {"content": "tea", "valid_from": "0001-01-01"},
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
    answer = alices.generic(
        "POST", f"{BASE}{note(alice).pk}/restore/", json.dumps(body), "application/json"
    )
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
def test_a_bad_link_is_refused(
    alice: User, alices: Client, note: MakeNote, body: Any, status: int
) -> None:
    a, b = note(alice, "A"), note(alice, "B")
    if isinstance(body, dict) and body.get("target") in {"self", "other"}:
        body = {**body, "target": str(a.pk if body["target"] == "self" else b.pk)}
    answer = alices.generic("POST", f"{BASE}{a.pk}/links/", json.dumps(body), "application/json")
    assert answer.status_code == status
    assert set(answer.json()) == {"code", "message", "extra"}
