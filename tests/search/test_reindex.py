"""`manage.py reindex`: a new space grows beside the old one, which serves until the switch."""

from io import StringIO
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from apps.accounts.models import User
from apps.core.errors import Conflict
from apps.search import spaces
from apps.search.models import EmbeddingSpace, Passage
from apps.search.selectors import search
from apps.search.spaces import space_build, vectors_clear
from tests.peers.ollama_server import OllamaPeer

from .conftest import found, save

NOTES = [f"note number {number} about topic{number}" for number in range(150)]


def reindex(*args: str) -> str:
    out = StringIO()
    call_command("reindex", *args, stdout=out)
    return out.getvalue()


@pytest.fixture
def notes(alice: User) -> User:
    """alice with 150 notes in the bundled space."""
    save(alice, *NOTES)
    return alice


def test_it_moves_everything_to_another_embedder(notes: User, ollama: OllamaPeer, settings: Any) -> None:
    settings.IZZY_EMBEDDER = "static"
    said = reindex("--embedder", "ollama:nomic-embed-text")
    assert "150/150" in said
    assert "Search now uses ollama:nomic-embed-text (64 dimensions)." in said
    space = EmbeddingSpace.objects.get()
    assert (space.name, space.slot, space.state) == ("ollama:nomic-embed-text", "b", "active")
    assert Passage.objects.filter(vector_a=None).count() == 150
    assert all(
        vector is not None and len(vector) == 128
        for vector in Passage.objects.values_list("vector_b", flat=True)
    )
    assert found(notes, "topic77")[0] == NOTES[77]
    assert "meaning" in search(notes.pk, "topic77")[0].parts


def test_an_index_in_memory_switches_with_it(notes: User, ollama: OllamaPeer) -> None:
    before = search(notes.pk, "topic77")[0]
    space_build(name="ollama:nomic-embed-text")
    after = search(notes.pk, "topic77")[0]
    assert before.text == after.text
    assert ollama.texts[-1] == "search_query: topic77"


def test_killed_in_the_middle_it_goes_on_where_it_stopped(
    notes: User, ollama: OllamaPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def die_later(done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        space_build(name="ollama:nomic-embed-text", progress=die_later)
    assert len(ollama.texts) == 64
    assert search(notes.pk, "topic77")[0].parts["meaning"] > 0
    space_build(name="ollama:nomic-embed-text")
    documents = [text for text in ollama.texts if text.startswith("search_document")]
    assert len(documents) == len(set(documents)) == 150


def test_an_embedder_that_goes_down_leaves_the_old_space_at_work(
    notes: User, ollama: OllamaPeer
) -> None:
    ollama.mode = "broken"
    with pytest.raises(CommandError, match="run the command again to go on"):
        reindex()
    assert EmbeddingSpace.objects.get(state="active").name == "static"
    assert "meaning" in search(notes.pk, "topic77")[0].parts
    ollama.mode = "well"
    reindex()
    assert EmbeddingSpace.objects.get().name == "ollama:nomic-embed-text"


def test_notes_saved_meanwhile_are_in_both_spaces(notes: User, ollama: OllamaPeer) -> None:
    saved = False

    def save_one(done: int, total: int) -> None:
        nonlocal saved
        if done >= 150 and not saved:
            saved = True
            save(notes, "a late note about geese")
            assert found(notes, "geese")[0] == "a late note about geese"

    space_build(name="ollama:nomic-embed-text", progress=save_one)
    assert not Passage.objects.filter(vector_b=None).exists()
    assert found(notes, "geese")[0] == "a late note about geese"


def test_another_embedder_starts_from_the_beginning(notes: User, ollama: OllamaPeer) -> None:
    def die(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        space_build(name="ollama:nomic-embed-text", progress=die)
    space_build(name="ollama:plain")
    assert EmbeddingSpace.objects.get().name == "ollama:plain"
    assert sum(not text.startswith("search_") for text in ollama.texts) == 150


def test_the_same_embedder_can_be_run_again_to_repair(notes: User) -> None:
    Passage.objects.update(vector_a=np.zeros(256, dtype="<f2").tobytes())
    reindex("--embedder", "static")
    assert EmbeddingSpace.objects.get().slot == "b"
    assert search(notes.pk, "topic77")[0].parts["meaning"] > 0


def test_there_and_back_again(notes: User, ollama: OllamaPeer) -> None:
    before = [(hit.text, hit.score) for hit in search(notes.pk, "topic77 and topic78")]
    reindex("--embedder", "ollama:nomic-embed-text")
    reindex("--embedder", "static")
    assert [(hit.text, hit.score) for hit in search(notes.pk, "topic77 and topic78")] == before


def test_an_unknown_embedder_is_refused_before_anything_is_done(notes: User) -> None:
    with pytest.raises(CommandError, match="must be static or one of"):
        reindex("--embedder", "nonsense")
    assert EmbeddingSpace.objects.count() == 1


def test_of_two_at_once_the_later_one_wins(notes: User, ollama: OllamaPeer) -> None:
    interfered = False

    def interfere(done: int, total: int) -> None:
        nonlocal interfered
        if done >= 150 and not interfered:
            interfered = True
            space_build(name="ollama:plain")

    with pytest.raises(Conflict):
        space_build(name="ollama:nomic-embed-text", progress=interfere)
    assert EmbeddingSpace.objects.get().name == "ollama:plain"


def test_vectors_in_use_are_not_cleared(notes: User) -> None:
    assert vectors_clear(slot="a") == 0
    assert not Passage.objects.filter(vector_a=None).exists()


def test_an_empty_index_can_be_reindexed(db: None, ollama: OllamaPeer) -> None:
    assert "Search now uses" in reindex("--embedder", "static")
    assert spaces.passages_embed_pending() == 0


def test_an_embedder_that_does_not_answer_is_told_also_where_nothing_is_stored(
    db: None, ollama: OllamaPeer
) -> None:
    ollama.mode = "broken"
    with pytest.raises(CommandError):
        reindex()
    assert not EmbeddingSpace.objects.filter(name="ollama:nomic-embed-text").exists()
