"""A search sees what was committed before it, whoever wrote it, and nothing that was rolled back."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction

from apps.accounts.models import User
from apps.search.backends import backend
from apps.search.documents import Scope, Source
from apps.search.embedders.engines import OllamaEmbedder
from apps.search.features import text_hash
from apps.search.filling import sweep_tombstones, vectors_fill
from apps.search.index import cache
from apps.search.index.cache import index_open
from apps.search.index.rows import UserRows
from apps.search.models import IndexOwner, Passage, Tombstone
from apps.search.proactive.recall import recall
from apps.search.selectors import search, similar
from apps.search.services import documents_remove
from tests.peers.ollama_server import OllamaPeer

from .conftest import found, save, say, whose_indexes

pytestmark = pytest.mark.django_db(transaction=True)

WRITER = """
import os, sys, uuid, django
django.setup()
from django.conf import settings
settings.DATABASES["default"]["NAME"] = sys.argv[1]
from datetime import datetime, UTC
from apps.search.documents import Document, Source
from apps.search.services import documents_index, documents_remove
user, action, name, text = sys.argv[2:6]
if action == "save":
    documents_index(user_id=uuid.UUID(user), documents=[Document(
        source=Source.MEMORY, source_id=uuid.UUID(name), text=text, happened_at=datetime.now(UTC))])
else:
    documents_remove(user_id=uuid.UUID(user), source=Source.MEMORY, source_ids=[uuid.UUID(name)])
"""


def index_of(user: User) -> UserRows:
    with index_open(user.pk) as opened:
        assert opened is not None
        return opened[1]


def in_another_process(user: User, action: str, name: object, text: str = "") -> None:
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings"}
    database = str(connection.settings_dict["NAME"])
    command = [sys.executable, "-c", WRITER, database, str(user.pk), action, str(name), text]
    subprocess.run(command, check=True, cwd=settings.BASE_DIR, env=environment)


def test_what_another_process_saved_changed_and_removed_is_seen_by_the_next_search(alice: User) -> None:
    (name,) = save(alice, "The car is red")
    assert found(alice, "car") == ["The car is red"]
    other = "01890000-0000-7000-8000-000000000001"
    in_another_process(alice, "save", other, "The car needs new tyres")
    assert set(found(alice, "car")) == {"The car is red", "The car needs new tyres"}
    in_another_process(alice, "save", name, "The car is blue")
    assert set(found(alice, "car")) == {"The car is blue", "The car needs new tyres"}
    in_another_process(alice, "remove", other)
    assert found(alice, "car") == ["The car is blue"]


def test_an_index_that_is_current_is_not_read_again(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(alice, "The car is red")
    found(alice, "car")
    held = index_of(alice)
    for name in ("read_all", "read_changed", "read_removed"):
        monkeypatch.setattr(backend, name, None)
    found(alice, "bicycle")
    assert index_of(alice) is held


def test_a_write_is_taken_into_the_index_that_is_held(alice: User) -> None:
    save(alice, "The car is red")
    found(alice, "car")
    with cache.index_open(alice.pk) as opened:
        assert opened is not None
        held = opened[1]
    save(alice, "The bicycle is blue")
    assert found(alice, "bicycle")[0] == "The bicycle is blue"
    with cache.index_open(alice.pk) as opened:
        assert opened is not None
        assert opened[1] is held


def test_a_name_that_nobody_bears_any_more_is_a_word_like_any_other(alice: User) -> None:
    save(alice, *(f"The {kind} is pruned in March" for kind in ("rose", "apple tree", "hedge", "vine")))
    say(alice, ("Rose", "Good morning"), ("Tom", "Good morning"))
    said = {hit.speaker: hit.source_id for hit in search(alice.pk, "good morning") if hit.speaker}
    assert index_of(alice).names == {text_hash("rose"), text_hash("tom")}
    documents_remove(user_id=alice.pk, source=Source.CONVERSATION, source_ids=[said["Rose"]])
    assert index_of(alice).names == {text_hash("tom")}
    now = search(alice.pk, "pruning a rose")
    assert now[0].causes.words == ("pruning", "rose")
    cache.forget(alice.pk)
    anew = search(alice.pk, "pruning a rose")
    assert [hit.score for hit in anew] == pytest.approx([hit.score for hit in now], abs=0.01)


def test_what_was_rolled_back_was_never_there(alice: User) -> None:
    save(alice, "The car is red")
    found(alice, "car")
    with transaction.atomic():
        save(alice, "The car is on fire")
        assert "The car is on fire" in found(alice, "car")
        transaction.set_rollback(True)
    assert found(alice, "car") == ["The car is red"]
    save(alice, "The car was washed")
    assert set(found(alice, "car")) == {"The car is red", "The car was washed"}


def test_a_removal_that_was_rolled_back_leaves_the_note(alice: User) -> None:
    (name,) = save(alice, "The car is red")
    found(alice, "car")
    with transaction.atomic():
        documents_remove(user_id=alice.pk, source=Source.MEMORY, source_ids=[name])
        assert found(alice, "car") == []
        transaction.set_rollback(True)
    assert found(alice, "car") == ["The car is red"]


def test_words_asked_before_are_found_in_notes_saved_since(alice: User) -> None:
    save(alice, "The car is red")
    assert found(alice, "tyres") == ["The car is red"]
    save(alice, "New tyres")
    assert found(alice, "tyres")[0] == "New tyres"
    save(alice, "Old tyres")
    assert set(found(alice, "tyres")[:2]) == {"New tyres", "Old tyres"}


def test_many_notes_one_after_the_other_are_all_found(alice: User) -> None:
    for number in range(120):
        save(alice, f"note about topic{number}")
        if number % 10 == 0:
            found(alice, "note")
    assert len(found(alice, "note", top_k=200)) == 120
    assert found(alice, "topic77")[0] == "note about topic77"


def test_searches_side_by_side_with_writes_see_whole_states(alice: User) -> None:
    save(alice, "note about topic0")

    def ask() -> list[int]:
        try:
            return [len(found(alice, "note", top_k=100)) for _ in range(15)]
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(ask) for _ in range(3)]
        for number in range(1, 20):
            save(alice, f"note about topic{number}")
        counts = [future.result() for future in asked]
    assert all(seen == sorted(seen) for seen in counts)
    assert len(found(alice, "note", top_k=100)) == 20


def test_the_least_recently_used_index_goes_first(
    alice: User, bob: User, settings: pytest.FixtureRequest
) -> None:
    save(alice, "The car is red")
    save(bob, "The car is blue")
    settings.IZZY_INDEX_MEMORY_MB = 0  # type: ignore[attr-defined]
    found(alice, "car")
    assert whose_indexes() == {alice.pk}
    found(bob, "car")
    assert whose_indexes() == {bob.pk}
    assert found(alice, "car") == ["The car is red"]


def test_an_index_that_missed_forgotten_removals_loads_anew(alice: User) -> None:
    (name, _) = save(alice, "The car is red", "The car is new")
    found(alice, "car")
    documents_remove(user_id=alice.pk, source=Source.MEMORY, source_ids=[name])
    Tombstone.objects.update(created_at="2020-01-01T00:00:00Z")
    sweep_tombstones()
    assert not Tombstone.objects.exists()
    assert IndexOwner.objects.get(user=alice).tombstones_from > 0
    assert found(alice, "car") == ["The car is new"]


def test_recent_removals_are_kept_for_other_processes(alice: User) -> None:
    (name,) = save(alice, "The car is red")
    documents_remove(user_id=alice.pk, source=Source.MEMORY, source_ids=[name])
    sweep_tombstones()
    assert Tombstone.objects.count() == 1


def test_words_that_were_asked_for_in_vain_are_not_remembered(alice: User) -> None:
    save(alice, "The car is red", "The house is blue")
    found(alice, "car submarine periscope")
    assert set(index_of(alice).postings) == {"car"}


def test_what_is_held_of_words_is_bounded(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.search.index.rows.MAX_POSTINGS", 3)
    names = [f"animal{letter}" for letter in "abcdefgh"]
    save(alice, *(f"The {name} sleeps" for name in names))
    for _ in range(2):
        for name in names:
            assert found(alice, name)[0] == f"The {name} sleeps"
            found(alice, "animala")
    assert len(index_of(alice).postings) == 3
    assert "animala" in index_of(alice).postings
    before = index_of(alice).bytes
    save(alice, "The animala wakes")
    assert set(found(alice, "animala")[:2]) == {"The animala sleeps", "The animala wakes"}
    assert index_of(alice).bytes == before + 8


def test_passages_embedded_out_of_order_are_found_by_words(alice: User, ollama: OllamaPeer) -> None:
    first = save(alice, "The car is red")
    vectors_fill()
    save(alice, "The bicycle is blue", "The car is old")
    vectors_fill()
    save(alice, "The car is new")
    Passage.objects.filter(source_id=first[0]).update(past=True)
    cache.forget()
    assert index_of(alice).ascending
    Passage.objects.filter(source_id=first[0]).update(past=False, change=100)
    IndexOwner.objects.filter(user=alice).update(change=100)
    assert not index_of(alice).ascending
    assert set(found(alice, "car")[:3]) == {"The car is red", "The car is old", "The car is new"}
    save(alice, "Another car")
    assert "Another car" in found(alice, "car")


def test_a_slow_embedder_holds_up_nobody_who_searches_by_words(alice: User, ollama: OllamaPeer) -> None:
    save(alice, "The car is red")
    vectors_fill()
    held: list[bool] = []
    answer = OllamaEmbedder._embed

    def slow(self: OllamaEmbedder, texts: list[str], seconds: float) -> Any:
        entry = cache._entries.get((alice.pk, UserRows))
        held.append(entry is not None and entry.lock.locked())
        return answer(self, texts, seconds)

    found(alice, "warm up")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OllamaEmbedder, "_embed", slow)
        search(alice.pk, "Which car?")
        similar(alice.pk, "The car is blue")
        recall(alice.pk, ["Where is my car?"], top_k=3, scope=Scope())
    assert held
    assert not any(held)
