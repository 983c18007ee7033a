"""Review, merge, supersede, undo and contradictions as programs use them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.core.ids import uuid7
from apps.memory.files.services import file_delete, file_write
from apps.memory.models import Memory, MemoryFile, Origin, Trust
from apps.memory.notes.changes import memory_update
from apps.memory.notes.creation import memory_submit
from apps.memory.notes.joining import edge_create
from apps.memory.notes.revisions import Change
from tests.memory.conftest import MakeNote, found_texts

pytestmark = pytest.mark.django_db

Api = Callable[..., Client]
BASE = "/api/v1/memories/"
FILES = "/api/v1/memory-files/"
FOREIGN = Change(actor=Origin.EXTRACTION, trust=Trust.UNTRUSTED)


def post(client: Client, path: str, body: Any = None) -> Any:
    return client.generic("POST", path, json.dumps(body if body is not None else {}), "application/json")


@pytest.fixture
def alices(alice: User, api: Api) -> Client:
    return api(alice)


@pytest.fixture
def pending(alice: User) -> Memory:
    return memory_submit(user_id=alice.pk, content="The user lives in Oslo, Norway.", change=FOREIGN)


def test_the_queue_lists_what_waits(
    alice: User, alices: Client, pending: Memory, note: MakeNote
) -> None:
    like = note(alice, "The user lives in Norway, Oslo, now.")
    (row,) = alices.get(f"{BASE}review/").json()["results"]
    assert (row["id"], row["proposal"], row["review_reason"]) == (str(pending.pk), "add", "untrusted")
    assert row["most_similar"]["id"] == str(like.pk)
    assert 0 < row["most_similar"]["similarity"] <= 1
    assert any(piece["kind"] == "removed" and "now" in piece["text"] for piece in row["diff"])


def test_accept_reject_and_merge(alice: User, alices: Client, pending: Memory, note: MakeNote) -> None:
    accepted = post(alices, f"{BASE}{pending.pk}/accept/", {"content": "Lives in Oslo."})
    assert (accepted.status_code, accepted.json()["status"], accepted.json()["content"]) == (
        200,
        "active",
        "Lives in Oslo.",
    )
    again = post(alices, f"{BASE}{pending.pk}/accept/")
    assert (again.status_code, again.json()["code"]) == (409, "not_waiting")
    second = memory_submit(user_id=alice.pk, content="Eats fish.", change=FOREIGN)
    assert post(alices, f"{BASE}{second.pk}/reject/").status_code == 204
    third = memory_submit(user_id=alice.pk, content="In Norway.", change=FOREIGN)
    merged = post(alices, f"{BASE}{third.pk}/merge/", {"into": str(pending.pk)})
    assert merged.json()["content"] == "Lives in Oslo.\nIn Norway."
    assert alices.get(f"{BASE}review/").json()["count"] == 0


def test_an_untrusted_note_that_never_waited_is_approved_once(
    alice: User, alices: Client, pending: Memory, note: MakeNote
) -> None:
    heard = note(alice, "The shop closes at six.")
    Memory.everything.filter(pk=heard.pk).update(trust=Trust.UNTRUSTED)
    done = post(alices, f"{BASE}{heard.pk}/approve/").json()
    assert (done["status"], done["trust"], done["review_reason"]) == ("active", "untrusted", "untrusted")
    again = post(alices, f"{BASE}{heard.pk}/approve/")
    assert (again.status_code, again.json()["code"]) == (409, "nothing_to_approve")
    assert post(alices, f"{BASE}{pending.pk}/approve/").json()["status"] == "active"


def test_several_are_decided_at_once(
    alice: User, alices: Client, pending: Memory, note: MakeNote
) -> None:
    active = note(alice)
    body = {"decision": "accept", "notes": [str(pending.pk), str(active.pk)]}
    done = post(alices, f"{BASE}review/", body).json()
    assert done["count"] == 1
    assert [(each["id"], each["code"]) for each in done["failed"]] == [(str(active.pk), "not_waiting")]


@pytest.mark.parametrize(
    ("path", "body", "status", "field"),
    [
        ("review/", {"decision": "maybe", "notes": []}, 400, "decision"),
        ("review/", {"decision": "accept"}, 400, "notes"),
        ("review/", {"decision": "accept", "notes": "x"}, 400, "notes"),
        ("review/", {"decision": "accept", "notes": ["x"]}, 404, None),
        ("{pending}/accept/", {"content": ""}, 400, "content"),
        ("{pending}/accept/", {"content": 5}, 400, "content"),
        ("{pending}/accept/", {"contents": "x"}, 400, "contents"),
        ("{pending}/merge/", {}, 400, "into"),
        ("{pending}/merge/", {"into": "nonsense"}, 404, None),
        ("{pending}/merge/", {"into": "{pending}"}, 400, "into"),
        ("{pending}/undo/", {}, 404, None),
        ("{pending}/undo/", {"version": "1"}, 400, "version"),
        ("{pending}/supersede/", {"content": "x"}, 409, None),
        ("merge/", {"notes": ["{pending}"]}, 400, "notes"),
        ("merge/", {}, 400, "notes"),
        ("contradictions/{pending}/", {"keep": None}, 404, None),
        ("{unknown}/accept/", {}, 404, None),
        ("{unknown}/merge/", {}, 404, None),
        ("{unknown}/supersede/", {}, 404, None),
    ],
)
def test_bad_requests_are_told_and_change_nothing(
    alices: Client, pending: Memory, path: str, body: Any, status: int, field: str | None
) -> None:
    ids = {"pending": str(pending.pk), "unknown": str(uuid7())}
    filled = json.loads(json.dumps(body).replace("{pending}", ids["pending"]))
    answer = post(alices, BASE + path.format(**ids), filled)
    assert answer.status_code == status, answer.content
    if field:
        assert answer.json()["extra"]["field"] == field
    assert Memory.everything.get().status == "pending"


def test_merge_supersede_and_their_undo(alice: User, alices: Client, note: MakeNote) -> None:
    tea, cake = note(alice, "The user likes tea."), note(alice, "The user likes cake.")
    body = {
        "notes": [str(tea.pk), str(cake.pk)],
        "into": str(cake.pk),
        "content": "The user likes tea and cake.",
    }
    merged = post(alices, f"{BASE}merge/", body).json()
    assert (merged["id"], merged["content"]) == (str(cake.pk), "The user likes tea and cake.")
    assert post(alices, f"{BASE}{cake.pk}/undo/").json()["content"] == "The user likes cake."
    assert sorted(found_texts(alice, "likes")) == ["The user likes cake.", "The user likes tea."]
    made = post(alices, f"{BASE}{tea.pk}/supersede/", {"content": "The user likes coffee."})
    assert made.status_code == 201
    assert alices.get(f"{BASE}{tea.pk}/").json()["superseded_by"] == made.json()["id"]
    assert post(alices, f"{BASE}{tea.pk}/undo/", {"version": 1}).json()["status"] == "active"
    assert alices.get(f"{BASE}{made.json()['id']}/").status_code == 404


def test_the_history_tells_state_actor_and_trust(alice: User, alices: Client, note: MakeNote) -> None:
    made = note(alice, "The user likes tea.")
    memory_update(user_id=alice.pk, memory_id=made.pk, content="The user likes rum.")
    newest, first = alices.get(f"{BASE}{made.pk}/history/").json()["results"]
    assert (newest["action"], newest["actor"], newest["current"]) == ("updated", "user", True)
    assert (first["content"], first["trust"], first["status"]) == (
        "The user likes tea.",
        "user",
        "active",
    )
    assert "change" not in first


def test_contradictions_are_listed_and_settled(alice: User, alices: Client, note: MakeNote) -> None:
    one, two = note(alice, "Eats no meat."), note(alice, "Loves steak.")
    edge = edge_create(user_id=alice.pk, source_id=one.pk, target_id=two.pk, relation="contradicts")
    (row,) = alices.get(f"{BASE}contradictions/").json()["results"]
    assert [each["id"] for each in row["notes"]] == [str(one.pk), str(two.pk)]
    wrong = post(alices, f"{BASE}contradictions/{edge.pk}/", {"keep": str(uuid7())})
    assert (wrong.status_code, wrong.json()["extra"]["field"]) == (400, "keep")
    assert post(alices, f"{BASE}contradictions/{edge.pk}/", {"keep": str(two.pk)}).status_code == 204
    assert alices.get(f"{BASE}{one.pk}/").json()["status"] == "superseded"


def test_files_have_their_history_undo_and_restore(alice: User, alices: Client) -> None:
    for text in ("one", "two"):
        file = file_write(user_id=alice.pk, path="/memories/a.md", text=text)
    newest, first = alices.get(f"{FILES}{file.pk}/history/").json()["results"]
    assert (newest["content"], first["content"], first["trust"]) == ("two", "one", "user")
    assert post(alices, f"{FILES}{file.pk}/undo/").json()["path"] == "/memories/a.md"
    assert MemoryFile.objects.for_user(alice).get().content == "one"
    assert post(alices, f"{FILES}{file.pk}/undo/", {"version": 9}).status_code == 404
    file_delete(user_id=alice.pk, path="/memories/a.md")
    (gone,) = alices.get(f"{FILES}?deleted=true").json()["results"]
    assert post(alices, f"{FILES}{gone['id']}/restore/").json()["deleted_at"] is None
    assert MemoryFile.objects.for_user(alice).get().content == "one"


def test_a_token_that_may_only_read_decides_nothing(alice: User, api: Api, pending: Memory) -> None:
    reader = api(alice, "read")
    assert reader.get(f"{BASE}review/").status_code == 200
    for path in (
        f"{pending.pk}/accept/",
        f"{pending.pk}/approve/",
        f"{pending.pk}/reject/",
        "review/",
        "merge/",
    ):
        assert post(reader, BASE + path).status_code == 403
