"""`manage.py reindex` and the worker fill the side space beside the bundled vectors; search goes on meanwhile."""

from io import StringIO
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from apps.accounts.models import User
from apps.core.errors import Conflict
from apps.search import filling, spaces
from apps.search.embedders.base import Embedder, Matrix
from apps.search.filling import encoder_learn, side_empty, side_fill, vectors_fill
from apps.search.models import EmbeddingSpace, Passage
from apps.search.proactive.encoder_lesson import has_learnt
from apps.search.selectors import search
from apps.search.services import user_forget
from tests.peers.ollama_server import OllamaPeer

from .conftest import found, save

NOTES = [f"note number {number} about topic{number}" for number in range(150)]
NOMIC = "ollama:nomic-embed-text"


def reindex(*args: str) -> str:
    out = StringIO()
    call_command("reindex", *args, stdout=out)
    return out.getvalue()


def side() -> EmbeddingSpace | None:
    return EmbeddingSpace.objects.filter(role="side").first()


def waiting() -> int:
    return Passage.objects.filter(side_vector=None).count()


@pytest.fixture
def notes(alice: User) -> User:
    """alice with 150 notes that have their bundled vectors alone."""
    save(alice, *NOTES)
    return alice


def test_it_gives_every_passage_a_vector_beside_the_bundled_one(notes: User, ollama: OllamaPeer) -> None:
    bundled = dict(Passage.objects.values_list("id", "vector"))
    said = reindex()
    assert "150/150" in said
    assert f"Every passage has its vector of {NOMIC} (64 dimensions)" in said
    space = side()
    assert space is not None
    assert (space.name, space.dimension, space.noise) == (NOMIC, 64, 0.45)
    assert all(len(each or b"") == 128 for each in Passage.objects.values_list("side_vector", flat=True))
    assert dict(Passage.objects.values_list("id", "vector")) == bundled
    hit = search(notes.pk, "topic77")[0]
    assert hit.text == NOTES[77]
    assert {"meaning", "encoder", "encoder_surroundings"} <= set(hit.parts)
    assert ollama.texts[-1] == "search_query: topic77"


def test_an_index_in_memory_takes_the_vectors_in(notes: User, ollama: OllamaPeer) -> None:
    assert "encoder" not in search(notes.pk, "topic77")[0].parts
    side_fill(NOMIC, limit=64)
    assert "encoder" in search(notes.pk, "topic7")[0].parts
    side_fill(NOMIC)
    assert search(notes.pk, "topic140")[0].parts["encoder"] > 0


def test_killed_in_the_middle_it_goes_on_where_it_stopped(notes: User, ollama: OllamaPeer) -> None:
    def die_later(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        side_fill(NOMIC, progress=die_later)
    assert waiting() == 150 - 64
    assert found(notes, "topic77")[0] == NOTES[77]
    steps: list[tuple[int, int]] = []
    side_fill(NOMIC, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(64, 150), (128, 150), (150, 150)]
    documents = [text for text in ollama.texts if text.removeprefix("search_document: ") in NOTES]
    assert len(documents) == len(set(documents)) == 150


def test_the_worker_fills_it_too(notes: User, ollama: OllamaPeer) -> None:
    vectors_fill()
    assert waiting() == 0


def test_an_embedder_that_goes_down_loses_nothing(notes: User, ollama: OllamaPeer) -> None:
    side_fill(NOMIC, limit=64)
    ollama.mode = "broken"
    with pytest.raises(CommandError, match="run the command again to go on"):
        reindex()
    assert waiting() == 150 - 64
    assert "meaning" in search(notes.pk, "topic77")[0].parts
    ollama.mode = "well"
    spaces.note_up()
    reindex()
    assert waiting() == 0


def test_notes_saved_meanwhile_get_theirs(notes: User, ollama: OllamaPeer) -> None:
    def save_one(done: int, total: int) -> None:
        if done == 128:
            save(notes, "a late note about geese")
            assert found(notes, "geese")[0] == "a late note about geese"

    side_fill(NOMIC, progress=save_one)
    assert waiting() == 0
    assert found(notes, "geese")[0] == "a late note about geese"


def test_an_account_that_goes_meanwhile_holds_up_nobody(
    notes: User, bob: User, ollama: OllamaPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(bob, "The boat is called Aurora")
    embed = filling._embed

    def forgetting(embedder: Embedder, texts: list[str], dimension: int) -> Matrix:
        user_forget(user_id=notes.pk)
        return embed(embedder, texts, dimension)

    monkeypatch.setattr(filling, "_embed", forgetting)
    vectors_fill()
    assert list(Passage.objects.values_list("user", flat=True)) == [bob.pk]
    assert waiting() == 0


def test_another_encoder_starts_from_the_beginning(
    notes: User, ollama: OllamaPeer, settings: Any
) -> None:
    side_fill(NOMIC, limit=64)
    settings.IZZY_EMBEDDER = "ollama:plain"
    assert "encoder" not in search(notes.pk, "topic7")[0].parts
    asked = len(ollama.texts)
    vectors_fill()
    space = side()
    assert space is not None
    assert space.name == "ollama:plain"
    assert sum(text in NOTES for text in ollama.texts[asked:]) == 150
    assert search(notes.pk, "topic77")[0].parts["encoder"] > 0


def test_one_that_does_not_answer_removes_nothing_of_the_other(
    notes: User, ollama: OllamaPeer, settings: Any
) -> None:
    reindex()
    settings.IZZY_EMBEDDER = "ollama:plain"
    ollama.mode = "broken"
    vectors_fill()
    assert waiting() == 0
    settings.IZZY_EMBEDDER, ollama.mode = NOMIC, "well"
    spaces.note_up()
    assert search(notes.pk, "topic77")[0].parts["encoder"] > 0


def test_of_two_at_once_the_later_one_wins(notes: User, ollama: OllamaPeer) -> None:
    def interfere(done: int, total: int) -> None:
        if done == 128:
            side_fill("ollama:plain")

    with pytest.raises(Conflict):
        side_fill(NOMIC, progress=interfere)
    space = side()
    assert space is not None
    assert (space.name, waiting()) == ("ollama:plain", 0)


def test_vectors_in_use_are_not_emptied(notes: User, ollama: OllamaPeer) -> None:
    side_fill(NOMIC)
    emptied = Passage.objects.exclude(side_vector=None)
    assert emptied.count() == 150
    side_empty()
    assert (side(), waiting()) == (None, 150)


def test_bundled_vectors_are_repaired(notes: User) -> None:
    before = dict(Passage.objects.values_list("id", "vector"))
    Passage.objects.filter(text__in=NOTES[:70]).update(vector=np.zeros(256, dtype="<f2").tobytes())
    Passage.objects.filter(text=NOTES[77]).update(vector=None)
    assert "71 passages have their bundled vectors anew" in reindex("--embedder", "static")
    assert dict(Passage.objects.values_list("id", "vector")) == before
    assert "anew" not in reindex()


def test_the_worker_makes_bundled_vectors_that_are_missing(notes: User) -> None:
    before = dict(Passage.objects.values_list("id", "vector"))
    found(notes, "topic3")
    Passage.objects.update(vector=None)
    vectors_fill()
    assert dict(Passage.objects.values_list("id", "vector")) == before
    assert search(notes.pk, "topic77")[0].parts["meaning"] > 0


def test_there_and_back_again(notes: User, ollama: OllamaPeer, settings: Any) -> None:
    settings.IZZY_EMBEDDER = "static"
    before = [(hit.text, hit.score, hit.parts) for hit in search(notes.pk, "topic77 and topic78")]
    assert f"Set IZZY_EMBEDDER={NOMIC}" in reindex("--embedder", NOMIC)
    again = [(hit.text, hit.score, hit.parts) for hit in search(notes.pk, "topic77 and topic78")]
    reindex("--embedder", "static")
    assert waiting() == 150
    last = [(hit.text, hit.score, hit.parts) for hit in search(notes.pk, "topic77 and topic78")]
    assert before == again == last


def test_one_that_the_worker_would_undo_is_refused(notes: User, ollama: OllamaPeer) -> None:
    for other in ("static", "ollama:plain"):
        with pytest.raises(CommandError, match=f"set IZZY_EMBEDDER={other} first"):
            reindex("--embedder", other)


def test_examples_that_come_in_another_dimension_teach_nothing(
    notes: User, ollama: OllamaPeer, caplog: pytest.LogCaptureFixture
) -> None:
    side_fill(NOMIC)
    EmbeddingSpace.objects.update(concern=None)
    ollama.dimension = 32
    encoder_learn()
    assert "gives 32 numbers, not 64" in caplog.text
    ollama.dimension = 64
    encoder_learn()
    space = EmbeddingSpace.objects.get(name=NOMIC)
    assert has_learnt(space)


def test_a_model_of_another_dimension_starts_anew(notes: User, ollama: OllamaPeer) -> None:
    reindex()
    ollama.dimension = 32
    save(notes, "a late note about geese")
    vectors_fill()
    assert waiting() == 1
    spaces.note_up()
    assert "(32 dimensions)" in reindex()
    assert waiting() == 0
    assert search(notes.pk, "about geese")[0].parts["encoder"] > 0


def test_an_unknown_embedder_is_refused_before_anything_is_done(notes: User, settings: Any) -> None:
    with pytest.raises(CommandError, match="must be static or one of"):
        reindex("--embedder", "nonsense")
    settings.IZZY_EMBEDDER = "nonsense"
    vectors_fill()
    assert side() is None


def test_an_empty_index_can_be_reindexed(db: None) -> None:
    assert "bundled vectors alone" in reindex("--embedder", "static")


def test_an_embedder_that_does_not_answer_is_told_also_where_nothing_is_stored(
    db: None, ollama: OllamaPeer
) -> None:
    ollama.mode = "broken"
    with pytest.raises(CommandError):
        reindex()
    assert side() is None
