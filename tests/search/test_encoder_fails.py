"""An encoder that is killed, slow or talks nonsense, while its users save, search, ingest and talk: nobody waits for it
twice, nothing is lost, and what waits is made up for."""

import json
import threading
from collections.abc import Callable
from io import StringIO
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from apps.accounts.models import User
from apps.memory.models import Origin, Trust
from apps.memory.notes.creation import memory_create, memory_submit
from apps.memory.notes.revisions import Change
from apps.memory.recall.injection import surface
from apps.search import filling, health, spaces
from apps.search.embedders import engines, own
from apps.search.embedders.base import EmbedderDown, Matrix
from apps.search.embedders.deadline import ANSWER_SECONDS, answered_within, is_late
from apps.search.embedders.engines import OllamaEmbedder
from apps.search.embedders.own import MINILM, OwnEmbedder
from apps.search.filling import vectors_fill
from apps.search.health import check_embedder
from apps.search.index import cache
from apps.search.index.rows import UserRows
from apps.search.models import Passage
from apps.search.selectors import search, similar
from tests.peers.ollama_server import BAD_MODES, OllamaPeer
from tests.waiting import PATIENCE, eventually

from .conftest import found, save, say

NOMIC = "ollama:nomic-embed-text"
SOON = 0.05
UNANSWERED = {"slow", "trickles"}
NOWHERE = "http://127.0.0.1:9"

Api = Callable[..., Client]
SignIn = Callable[[User], Client]


class Encoder:
    """The embedding server, which can be made to fail in one way, and to work again."""

    def __init__(self, peer: OllamaPeer, way: str, settings: Any, patch: pytest.MonkeyPatch) -> None:
        self.peer, self.way, self.settings, self.patch = peer, way, settings, patch

    def fail(self) -> None:
        if self.way == "killed":
            self.settings.OLLAMA_URL = NOWHERE
            return
        self.peer.mode = self.way
        if self.way in UNANSWERED:
            for module, name in ((spaces, "ANSWER_SECONDS"), (filling, "BATCH_SECONDS")):
                self.patch.setattr(module, name, SOON)

    def work(self) -> None:
        self.settings.OLLAMA_URL = self.peer.url
        self.peer.mode = "well"
        self.peer.go_on.set()
        self.patch.undo()
        eventually(lambda: not is_late(NOMIC))
        spaces.note_up()


@pytest.fixture(params=["killed", *BAD_MODES])
def encoder(request: pytest.FixtureRequest, ollama: OllamaPeer, settings: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        yield Encoder(ollama, request.param, settings, patch)


def waiting() -> int:
    return Passage.objects.filter(side_vector=None).count()


def post(client: Client, path: str, body: object, status: int) -> Any:
    answer = client.post(f"/api/v1/{path}/", json.dumps(body), content_type="application/json")
    assert answer.status_code == status, answer.content
    return answer.json()


TALK = [{"speaker": "Caroline", "content": "I adopted a kitten.", "created_at": "2025-05-08T13:56:00"}]


def use_everything(user: User, program: Client, browser: Client) -> None:
    """Saves, takes in, searches and brings up, by page and by REST; each must go as if nothing was wrong."""
    note = post(program, "memories", {"content": "The rowing boat is green"}, 201)
    form = {"new-content": "The train to Vienna is late"}
    assert browser.post("/memory/new/", form).status_code == 302
    assert post(program, "ingest", {"session": "s", "messages": TALK}, 202)["added"] == 1
    for words in ("rowing boat", "train to Vienna", "kitten"):
        hits = post(program, "search", {"query": words}, 200)["results"]
        assert words.split()[-1] in hits[0]["text"], words
    assert "kitten" in post(program, "context", {"query": "adopted kitten"}, 200)["text"]
    page = browser.get("/memory/browse/", {"q": "train to Vienna"})
    assert page.status_code == 200
    assert "The train to Vienna is late" in page.content.decode()
    for path in ("/memory/review/", f"/memory/graph/?note={note['id']}"):
        assert browser.get(path).status_code == 200
    brought = surface(user.pk, ["What colour is my rowing boat?"])
    assert UUID(note["id"]) in {item.id for item in brought.items}
    assert similar(user.pk, "The rowing boat is green")[0][1] > 0.9


def test_everything_goes_on_and_is_made_up_for(
    alice: User, bob: User, api: Api, sign_in: SignIn, encoder: Encoder
) -> None:
    save(bob, "Bob's rowing boat is red")
    save(alice, "The bicycle is blue")
    vectors_fill()
    assert waiting() == 0
    encoder.fail()
    asked = len(encoder.peer.requests)
    use_everything(alice, api(alice), sign_in(alice))
    assert len(encoder.peer.requests) - asked <= 1  # whoever comes after the first does not wait
    waits = waiting()
    assert waits >= 3
    assert f"{waits} passages wait for their vectors of {NOMIC}" in check_embedder().message

    spaces.note_up()
    vectors_fill()
    assert waiting() == waits
    assert found(bob, "rowing boat") == ["Bob's rowing boat is red"]
    encoder.work()
    vectors_fill()
    assert waiting() == 0
    assert check_embedder().ok
    assert search(alice.pk, "which boat is green")[0].parts["encoder"] > 0
    assert all("Bob" not in text for text in found(alice, "rowing boat"))
    assert found(bob, "green boat") == ["Bob's rowing boat is red"]


def test_reindexing_says_so_keeps_what_is_done_and_goes_on(alice: User, encoder: Encoder) -> None:
    save(alice, *(f"note number {number} about topic{number}" for number in range(70)))
    before = found(alice, "topic7")
    calls = 0

    def fail_later(done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            encoder.fail()

    with pytest.raises(EmbedderDown):
        filling.side_fill(NOMIC, progress=fail_later)
    assert 0 < waiting() < 70
    if encoder.way != "other":  # which is what the command is for
        with pytest.raises(CommandError, match="run the command again to go on"):
            call_command("reindex", stdout=StringIO())
        assert 0 < waiting() < 70
    assert found(alice, "topic7")[0] == before[0]
    encoder.work()
    call_command("reindex", stdout=StringIO())
    assert waiting() == 0
    assert search(alice.pk, "topic7")[0].parts["encoder"] > 0


def test_the_doctor_says_how_many_wait(
    alice: User,
    ollama: OllamaPeer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    save(alice, "The car is red", "The bicycle is blue")
    ollama.mode = "broken"
    call_command("doctor")
    assert "2 passages wait for their vectors of" in capsys.readouterr().out


def test_a_request_waits_for_less_than_a_second() -> None:
    assert ANSWER_SECONDS <= 1


@pytest.fixture
def slow(alice: User, ollama: OllamaPeer, monkeypatch: pytest.MonkeyPatch) -> OllamaPeer:
    """The server of an encoder that answers when it is told to; alice has a note with a vector."""
    save(alice, "The car is red", "The bicycle is blue")
    vectors_fill()
    ollama.mode = "slow"
    monkeypatch.setattr(spaces, "ANSWER_SECONDS", SOON)
    return ollama


def test_an_answer_that_comes_late_serves_the_next_who_asks(alice: User, slow: OllamaPeer) -> None:
    assert "encoder" not in search(alice.pk, "a red car")[0].parts
    asked = len(slow.requests)
    spaces.note_up()
    assert "encoder" not in search(alice.pk, "another car")[0].parts
    assert len(slow.requests) == asked  # it owes an answer
    slow.go_on.set()
    eventually(lambda: not is_late(NOMIC))
    assert search(alice.pk, "a red car")[0].parts["encoder"] > 0
    assert len(slow.requests) == asked


def test_a_start_does_not_wait_for_a_model_to_be_loaded(
    alice: User, slow: OllamaPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "ANSWER_SECONDS", SOON)
    asked = len(slow.requests)
    health.warm_up()
    eventually(lambda: len(slow.requests) == asked + 1)
    assert found(alice, "car")[0] == "The car is red"
    assert len(slow.requests) == asked + 1
    slow.go_on.set()
    eventually(lambda: not is_late(NOMIC))
    monkeypatch.setattr(spaces, "ANSWER_SECONDS", PATIENCE)
    assert search(alice.pk, "car")[0].parts["encoder"] > 0


def test_what_waits_for_review_is_compared_by_one_request(
    alice: User, ollama: OllamaPeer, sign_in: SignIn
) -> None:
    memory_create(user_id=alice.pk, content="The car is red")
    vectors_fill()
    for number in range(5):
        change = Change(actor=Origin.EXTRACTION, trust=Trust.UNTRUSTED)
        memory_submit(user_id=alice.pk, content=f"The car has {number} doors", change=change)
    asked = len(ollama.requests)
    browser = sign_in(alice)
    assert "The car has 4 doors" in browser.get("/memory/review/").content.decode()
    assert [len(request["input"]) for request in ollama.requests[asked:]] == [5]


@pytest.mark.django_db(transaction=True)
def test_nobody_waits_for_it_with_the_database_locked(
    alice: User, api: Api, sign_in: SignIn, ollama: OllamaPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside: list[bool] = []

    def watched(seconds: float, name: str, ask: Callable[[], Matrix]) -> Matrix:
        inside.append(connection.in_atomic_block)
        return answered_within(seconds, name, ask)

    monkeypatch.setattr(spaces, "answered_within", watched)
    monkeypatch.setattr(filling, "answered_within", watched)
    save(alice, "The bicycle is blue")
    vectors_fill()
    use_everything(alice, api(alice), sign_in(alice))
    vectors_fill()
    assert len(inside) > 5
    assert not any(inside)


def test_an_endless_answer_is_cut_off(ollama: OllamaPeer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "MAX_BYTES", 100)
    with pytest.raises(EmbedderDown, match="does not come to an end"):
        OllamaEmbedder("plain").embed_documents(["The car is red"])


def test_long_passages_go_in_smaller_batches(
    alice: User, ollama: OllamaPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "BATCH_CHARS", 40)
    save(alice, "The car is red", "The bicycle is blue", "word " * 20, "A boat")
    vectors_fill()
    assert waiting() == 0
    batches = [len(request["input"]) for request in ollama.requests]
    assert batches[:4] == [
        1,
        2,
        1,
        1,
    ]  # the first asks for the dimension; afterwards the example messages


def test_nobody_waits_for_it_with_the_index_locked(
    alice: User, ollama: OllamaPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked: list[bool] = []

    def watched(seconds: float, name: str, ask: Callable[[], Matrix]) -> Matrix:
        locked.append(cache._entries[alice.pk, UserRows].lock.locked())
        return answered_within(seconds, name, ask)

    say(alice, ("Caroline", "I adopted a kitten."), ("Melanie", "How lovely!"))
    vectors_fill()
    monkeypatch.setattr(spaces, "answered_within", watched)
    for question in ("a kitten", "What did Caroline adopt?", "Where did Carolin adopt?", "Caroline"):
        assert len(found(alice, question)) == 2
    similar(alice.pk, "I have a kitten")
    assert len(locked) == 5
    assert not any(locked)


def test_an_encoder_without_room_or_a_thread_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> Matrix:
        raise MemoryError

    monkeypatch.setattr(own, "model", lambda _: SimpleNamespace(embed=full))
    encoder = OwnEmbedder(MINILM)
    for embed in (encoder.embed_documents, encoder.embed_queries, encoder.embed_messages):
        with pytest.raises(EmbedderDown, match="no room"):
            embed(["a word"])

    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    with pytest.raises(EmbedderDown, match="cannot be asked"):
        answered_within(1, "one", lambda: pytest.fail("asked"))
