"""Access to `/api/v1/memories/`: who may do what."""

from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from apps.accounts.models import User
from apps.core.http.drf import ScopeThrottle
from apps.core.ids import uuid7
from apps.memory.models import Memory
from tests.memory.calling import BASE, Api, post, send
from tests.memory.calling import alices as alices
from tests.memory.conftest import MakeNote

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
def test_a_reading_token_cannot_write(
    alice: User, api: Api, note: MakeNote, method: str, path: str
) -> None:
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
@pytest.mark.parametrize(
    "key", ["foreign", "unknown", "note-xyz", "1", "x" * 300, "%00", "%F0%9F%A6%9E"]
)
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


def test_a_note_cannot_be_linked_to_somebody_elses(
    alice: User, bob: User, api: Api, note: MakeNote
) -> None:
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
