"""`/search/`, `/context/` and `/stats/` as a program uses them."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.core.ids import uuid7
from apps.core.registries import owners
from apps.core.text import estimate_tokens
from apps.memory.api.shapes import HitOutput
from apps.memory.files.services import file_write
from apps.memory.models import Memory, Origin, Trust
from apps.memory.notes.changes import memory_archive, memory_delete, memory_update
from apps.memory.notes.revisions import Change
from apps.search.documents import Document, Source
from apps.search.services import documents_index
from tests.memory.conftest import MakeNote

Api = Callable[..., Client]
SEARCH, CONTEXT, STATS = "/api/v1/search/", "/api/v1/context/", "/api/v1/stats/"


def ask(client: Client, path: str, body: Any) -> Any:
    return client.generic("POST", path, json.dumps(body), "application/json")


def results(client: Client, query: str, **body: Any) -> list[dict[str, Any]]:
    answer = ask(client, SEARCH, {"query": query, **body})
    assert answer.status_code == 200, answer.content
    return list(answer.json()["results"])


def texts(client: Client, query: str, **body: Any) -> list[str]:
    return [hit["text"] for hit in results(client, query, **body)]


@pytest.fixture
def alices(alice: User, api: Api) -> Client:
    return api(alice, "read")


@pytest.fixture
def conversation(alice: User, monkeypatch: pytest.MonkeyPatch) -> UUID:
    """A conversation of alice with a message about routers."""
    conversation_id = uuid7()
    document = Document(
        source=Source.CONVERSATION,
        source_id=uuid7(),
        external_id="msg-1",
        text="My router keeps dropping the connection.",
        happened_at=timezone.now(),
        conversation_id=conversation_id,
        speaker="user",
    )
    documents_index(user_id=alice.pk, documents=[document])
    known = {(alice.pk, conversation_id)}
    monkeypatch.setitem(owners, "conversation", lambda user_id, row_id: (user_id, row_id) in known)
    return conversation_id


def test_a_result_has_the_documented_fields(alice: User, alices: Client, note: MakeNote) -> None:
    made = note(alice, "The router stands in the hall closet.")
    answer = ask(alices, SEARCH, {"query": "router", "top_k": 5}).json()
    assert set(answer) == {"results", "took_ms"}
    assert answer["took_ms"] > 0
    (hit,) = answer["results"]
    assert set(hit) == set(HitOutput.model_fields) - {"untrusted"}
    assert (hit["source"], hit["id"], hit["text"]) == ("memory", str(made.pk), made.content)
    assert 0 < hit["score"] <= 1
    assert {"keywords", "meaning"} <= set(hit["parts"])


def test_other_words_with_the_same_meaning_find_a_note(
    alice: User, alices: Client, note: MakeNote
) -> None:
    made = note(alice, "Router and network configuration: the SSID is izzy, the channel is 11.")
    note(alice, "The cat is called Mia and likes boxes.")
    note(alice, "Dentist appointment every May.")
    assert results(alices, "WiFi problem")[0]["id"] == str(made.pk)


def test_notes_and_conversations_are_searched_together(
    alice: User, alices: Client, note: MakeNote, conversation: UUID
) -> None:
    note(alice, "The router stands in the hall closet.")
    assert {hit["source"] for hit in results(alices, "router")} == {"memory", "conversation"}
    assert {hit["source"] for hit in results(alices, "router", sources=["memory"])} == {"memory"}
    (said,) = results(alices, "router", sources=["conversation"])
    assert said["external_id"] == "msg-1"
    assert {hit["source"] for hit in results(alices, "router", sources=[])} == {"memory", "conversation"}


def test_a_search_can_keep_to_one_conversation(
    alice: User, alices: Client, note: MakeNote, conversation: UUID
) -> None:
    note(alice, "The router stands in the hall closet.")
    assert texts(alices, "router", conversation=str(conversation)) == [
        "My router keeps dropping the connection."
    ]


def test_foreign_and_unknown_conversations_are_not_found(
    bob: User, api: Api, conversation: UUID
) -> None:
    for written in (str(conversation), str(uuid7()), "x", 5, ["x"]):
        for path in (SEARCH, CONTEXT):
            answer = ask(api(bob), path, {"query": "router", "conversation": written})
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_tags_limit_a_search_to_notes_with_all_of_them(
    alice: User, alices: Client, note: MakeNote, conversation: UUID
) -> None:
    note(alice, "Router at home.", tags=["Home", "tech"])
    note(alice, "Router at work.", tags=["work", "tech"])
    assert texts(alices, "router", tags=["home"]) == ["Router at home."]
    assert sorted(texts(alices, "router", tags=["tech"])) == ["Router at home.", "Router at work."]
    assert texts(alices, "router", tags=["tech", "work"]) == ["Router at work."]
    assert texts(alices, "router", tags=["nothing"]) == []
    assert texts(alices, "router", tags=["home"], sources=["conversation"]) == []


def test_a_search_in_the_past_answers_what_was_so_then(
    alice: User, alices: Client, note: MakeNote
) -> None:
    made = note(alice, "The user lives in Portland.")
    ended = note(alice, "The user lives in a tent.", valid_from="2020-01-01", valid_to="2021-01-01")
    then = timezone.now()
    memory_update(user_id=alice.pk, memory_id=made.pk, content="The user lives in Austin.")
    assert texts(alices, "lives") == ["The user lives in Austin."]
    assert texts(alices, "lives", as_of=then.isoformat()) == ["The user lives in Portland."]
    assert texts(alices, "lives", as_of="2020-06-01") == [ended.content]
    assert texts(alices, "lives", as_of=(then - timedelta(days=1)).isoformat()) == []


def test_deleted_and_archived_notes_are_not_found(alice: User, alices: Client, note: MakeNote) -> None:
    one, other = note(alice, "Router at home."), note(alice, "Router at work.")
    memory_delete(user_id=alice.pk, memory_id=one.pk)
    memory_archive(user_id=alice.pk, memory_id=other.pk)
    assert results(alices, "router") == []
    assert ask(alices, CONTEXT, {"query": "router"}).json()["items"] == []


def test_nobody_finds_anything_of_others(
    alice: User, bob: User, api: Api, note: MakeNote, conversation: UUID
) -> None:
    note(alice, "The router stands in the hall closet.", tags=["home"])
    for body in ({}, {"tags": ["home"]}, {"sources": ["memory"]}, {"as_of": "2030-01-01"}):
        assert results(api(bob), "router", **body) == []
    assert ask(api(bob), CONTEXT, {"query": "router"}).json() == {"text": "", "tokens": 0, "items": []}


def test_top_k_limits_the_results(alice: User, alices: Client, note: MakeNote) -> None:
    for number in range(12):
        note(alice, f"Router number {number}.")
    assert len(results(alices, "router")) == 10
    assert len(results(alices, "router", top_k=3)) == 3
    assert len(results(alices, "router", top_k=100)) == 12


def test_searching_is_no_access(alice: User, alices: Client, note: MakeNote) -> None:
    note(alice, "Router at home.")
    results(alices, "router")
    ask(alices, CONTEXT, {"query": "router"})
    assert Memory.objects.for_user(alice).get().access_count == 0


def test_context_packs_text_within_the_budget(alice: User, alices: Client, note: MakeNote) -> None:
    for number in range(60):
        note(
            alice,
            f"Router number {number} stands in room {number} and was bought in the year {1960 + number}.",
        )
    packed = ask(alices, CONTEXT, {"query": "where do the routers stand"}).json()
    assert set(packed) == {"text", "tokens", "items"}
    assert set(packed["items"][0]) == {"source", "id", "external_id", "score", "reason"}
    assert 0 < packed["tokens"] <= 500
    assert estimate_tokens(packed["text"]) <= 500
    small = ask(alices, CONTEXT, {"query": "where do the routers stand", "budget_tokens": 60}).json()
    assert 0 < small["tokens"] <= 60
    assert len(small["items"]) < len(packed["items"])


@pytest.mark.parametrize(
    "messages",
    [
        ["Where is the router?"],
        [{"role": "user", "content": "Where is the router?"}],
        [
            {
                "role": "user",
                "content": [{"type": "text", "text": "Where is the router?"}, {"type": "image"}],
            }
        ],
        [
            "Hello",
            {"role": "assistant", "content": "Hi"},
            {"role": "user", "content": "Where is the router?"},
        ],
    ],
)
def test_context_takes_messages_too(
    alice: User, alices: Client, note: MakeNote, messages: list[Any]
) -> None:
    note(alice, "The router stands in the hall closet.")
    assert "hall closet" in ask(alices, CONTEXT, {"messages": messages}).json()["text"]


def test_context_looks_at_the_last_three_messages_alone(
    alice: User, alices: Client, note: MakeNote
) -> None:
    note(alice, "The router stands in the hall closet.")
    note(alice, "Paella is made on Sundays.")
    messages = ["router router router", "a", "b", "What about paella?"]
    (item, *_) = ask(alices, CONTEXT, {"messages": messages}).json()["items"]
    assert item["id"] == str(Memory.objects.for_user(alice).get(content__startswith="Paella").pk)


def test_context_searches_everything_by_default(
    alice: User, alices: Client, note: MakeNote, conversation: UUID
) -> None:
    note(alice, "The router stands in the hall closet.")
    everything = ask(alices, CONTEXT, {"query": "router"}).json()["items"]
    assert {item["source"] for item in everything} == {"memory", "conversation"}
    notes = ask(alices, CONTEXT, {"query": "router", "sources": ["memory"]}).json()["items"]
    assert {item["source"] for item in notes} == {"memory"}


BAD: list[Any] = [
    {},
    {"query": ""},
    {"query": "  "},
    {"query": None},
    {"query": 5},
    {"query": ["router"]},
    {"query": "router", "sources": "memory"},
    {"query": "router", "sources": ["notes"]},
    {"query": "router", "sources": [1]},
    {"query": "router", "limit": 5},
    [],
    "router",
    None,
    5,
]
BAD_SEARCHES: list[Any] = [
    {"query": "router", "top_k": 0},
    {"query": "router", "top_k": 101},
    {"query": "router", "top_k": "5"},
    {"query": "router", "top_k": 2.5},
    {"query": "router", "top_k": True},
    {"query": "router", "as_of": "then"},
    {"query": "router", "as_of": 5},
    {"query": "router", "tags": "home"},
    {"query": "router", "tags": [""]},
    {"query": "router", "tags": [5]},
    {"query": "router", "tags": ["x"] * 101},
]
BAD_CONTEXTS: list[Any] = [
    {"query": "router", "budget_tokens": 0},
    {"query": "router", "budget_tokens": 10**9},
    {"query": "router", "budget_tokens": "500"},
    {"query": "router", "messages": ["router"]},
    {"messages": []},
    {"messages": "router"},
    {"messages": [5]},
    {"messages": [{}]},
    {"messages": [{"content": 5}]},
    {"messages": [""]},
    {"messages": [None]},
    {"messages": [{"content": [{"type": "text", "text": 5}]}]},
    {"messages": [{"content": [{"type": "image"}]}]},
]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        *((SEARCH, body) for body in BAD + BAD_SEARCHES),
        *((CONTEXT, body) for body in BAD + BAD_CONTEXTS),
    ],
    ids=lambda value: json.dumps(value)[:50],
)
def test_bad_input_is_refused(alices: Client, path: str, body: Any) -> None:
    answer = ask(alices, path, body)
    assert answer.status_code == 400
    assert set(answer.json()) == {"code", "message", "extra"}


@pytest.mark.parametrize("path", [SEARCH, CONTEXT])
@pytest.mark.parametrize("raw", [b"{", b"\xff", b'{"query": "\\ud800"}', b'{"query": "\\u0000"}'])
def test_a_body_that_is_no_clean_json_is_refused(alices: Client, path: str, raw: bytes) -> None:
    assert alices.generic("POST", path, raw, "application/json").status_code == 400


@pytest.mark.parametrize("path", [SEARCH, CONTEXT])
@pytest.mark.parametrize("size", [10_001, 10_000_000])
def test_a_huge_query_is_too_large(alices: Client, path: str, size: int) -> None:
    assert ask(alices, path, {"query": "x" * size}).status_code == 413


@pytest.mark.parametrize(
    "query",
    ['"', "*", "NEAR(a b)", "a AND OR", "'; DROP TABLE x; --", "{}:^", "🦞", "。", "-", "a" * 9000],
)
def test_a_query_of_signs_is_answered(alice: User, alices: Client, note: MakeNote, query: str) -> None:
    note(alice, "Router at home.")
    assert ask(alices, SEARCH, {"query": query}).status_code == 200
    assert ask(alices, CONTEXT, {"query": query}).status_code == 200


@pytest.mark.parametrize("path", [SEARCH, CONTEXT])
def test_searching_needs_credentials_and_a_post(db: None, alices: Client, path: str) -> None:
    assert ask(Client(), path, {"query": "x"}).status_code == 401
    assert alices.get(path).status_code == 405


def test_figures_are_those_of_the_caller(alice: User, bob: User, api: Api, note: MakeNote) -> None:
    note(alice, "Router at home.", kind="fact")
    assert api(alice, "read").get(STATS).json()["memory"]["by_kind"] == {"fact": 1}
    assert api(bob, "read").get(STATS).json()["memory"]["total"] == 0
    assert Client().get(STATS).status_code == 401


def test_null_is_the_same_as_absent(alices: Client, note: MakeNote, alice: User) -> None:
    note(alice, content="Likes green tea.")
    nothing = {"sources": None, "conversation": None}
    found = ask(alices, SEARCH, {"query": "tea", "top_k": None, "as_of": None, "tags": None, **nothing})
    assert [hit["text"] for hit in found.json()["results"]] == ["Likes green tea."]
    for body in (
        {"query": "tea", "messages": None, "budget_tokens": None},
        {"query": "tea", "messages": []},
        {"query": None, "messages": [{"role": "user", "content": "tea"}]},
    ):
        packed = ask(alices, CONTEXT, {**body, **nothing})
        assert packed.status_code == 200
        assert "Likes green tea." in packed.json()["text"]
    refused = ask(alices, CONTEXT, {"query": None, "messages": None})
    assert refused.status_code == 400


# --- Other times, and others' words -----------------------------------------------------------------------------


def untrusted(user: User, note: MakeNote, text: str) -> Memory:
    """A note that the user accepted though it repeats what a page said."""
    return note(user, text, change=Change(actor=Origin.EXTRACTION, trust=Trust.UNTRUSTED))


def test_context_of_another_time_reads_what_was_so_then(
    alice: User, alices: Client, note: MakeNote
) -> None:
    made = note(alice, "The router stands in the hall closet.")
    before = timezone.now()
    memory_update(user_id=alice.pk, memory_id=made.pk, content="The router stands in the kitchen.")
    then = ask(alices, CONTEXT, {"query": "router", "as_of": before.isoformat()}).json()
    assert "hall closet" in then["text"]
    assert "kitchen" not in then["text"]
    assert "kitchen" in ask(alices, CONTEXT, {"query": "router"}).json()["text"]
    assert ask(alices, CONTEXT, {"query": "router", "as_of": "2020-01-01"}).json()["items"] == []


@pytest.mark.parametrize("as_of", ["yesterday", 5, [], "2026-13-01", {}])
def test_context_of_no_time_is_refused(alices: Client, as_of: Any) -> None:
    answer = ask(alices, CONTEXT, {"query": "router", "as_of": as_of})
    assert answer.status_code == 400
    assert answer.json()["extra"]["field"] == "as_of"


def test_context_keeps_to_notes_with_a_tag(alice: User, alices: Client, note: MakeNote) -> None:
    note(alice, "Router at home.", tags=["home"])
    note(alice, "Router at work.", tags=["work"])
    packed = ask(alices, CONTEXT, {"query": "router", "tags": ["work"]}).json()
    assert "at work" in packed["text"]
    assert "at home" not in packed["text"]


def test_others_words_are_marked_in_results_and_in_context(
    alice: User, alices: Client, note: MakeNote
) -> None:
    own = note(alice, "The router stands in the hall closet.")
    other = untrusted(alice, note, "The router has the address\n- 10.0.0.1.")
    marks = {hit["id"]: hit.get("untrusted") for hit in results(alices, "router")}
    assert marks == {str(own.pk): None, str(other.pk): True}
    packed = ask(alices, CONTEXT, {"query": "router"}).json()
    assert {item["id"]: item.get("untrusted") for item in packed["items"]} == marks
    assert "- [from an untrusted source] The router has the address - 10.0.0.1." in packed["text"]
    assert "- The router stands" in packed["text"]
    assert packed["tokens"] == estimate_tokens(packed["text"])


def test_what_were_others_words_then_stays_marked_when_asked_for_that_time(
    alice: User, alices: Client, note: MakeNote
) -> None:
    other = untrusted(alice, note, "The router stands in the hall closet.")
    before = timezone.now()
    memory_update(user_id=alice.pk, memory_id=other.pk, content="The router stands in the kitchen.")
    (now,) = results(alices, "router")
    (then,) = results(alices, "router", as_of=before.isoformat())
    assert (now.get("untrusted"), then.get("untrusted")) == (None, True)
    packed = ask(alices, CONTEXT, {"query": "router", "as_of": before.isoformat()}).json()
    assert "[from an untrusted source] The router stands in the hall closet." in packed["text"]


def test_a_file_of_others_words_is_marked(alice: User, alices: Client) -> None:
    change = Change(actor=Origin.ASSISTANT, trust=Trust.UNTRUSTED)
    file_write(user_id=alice.pk, path="/memories/router.md", text="The router manual.", change=change)
    (hit,) = results(alices, "router manual")
    assert (hit["source"], hit["untrusted"]) == ("file", True)


def test_marks_fit_into_the_budget(alice: User, alices: Client, note: MakeNote) -> None:
    for number in range(30):
        untrusted(alice, note, f"Router number {number} stands in room {number}.")
    for budget in (1, 12, 40, 100, 500):
        packed = ask(alices, CONTEXT, {"query": "router", "budget_tokens": budget}).json()
        assert packed["tokens"] <= budget
        assert packed["text"].count("untrusted source") == len(packed["items"])


@pytest.mark.parametrize("path", [SEARCH, CONTEXT])
def test_a_threshold_keeps_what_is_worth_showing_of_ones_own(
    alices: Client, alice: User, bob: User, note: MakeNote, path: str
) -> None:
    wanted = note(alice, "The dentist is Dr Weber in Lindenstrasse.")
    note(alice, "The garden needs water every second evening.")
    note(bob, "The dentist is Dr Hofmann.")
    found = ask(alices, path, {"query": "Who is my dentist?", "threshold": 0.45}).json()
    listed = found["results" if path == SEARCH else "items"]
    assert [item["id"] for item in listed] == [str(wanted.pk)]
    assert 0.45 <= listed[0]["score"] <= 1
    everything = ask(alices, path, {"query": "Who is my dentist?", "threshold": None}).json()
    assert len(everything["results" if path == SEARCH else "items"]) == 2


@pytest.mark.parametrize("path", [SEARCH, CONTEXT])
@pytest.mark.parametrize("value", [-0.1, 1.01, "0.5", True, [], {}])
def test_a_threshold_is_a_number_from_0_to_1(alices: Client, path: str, value: object) -> None:
    answer = ask(alices, path, {"query": "x", "threshold": value})
    assert answer.status_code == 400
    assert "threshold" in answer.json()["message"]
