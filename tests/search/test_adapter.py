"""An encoder's vectors are taught which notes matter to which messages."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.accounts.models import User
from apps.search import filling, spaces
from apps.search.documents import Scope
from apps.search.embedders.base import Matrix, unit_rows
from apps.search.embedders.minilm import MiniLMEmbedder
from apps.search.filling import encoder_learn, side_fill
from apps.search.models import EmbeddingSpace
from apps.search.proactive import concern, encoder_lesson
from apps.search.proactive.adapter import adapter_of, example_notes
from apps.search.proactive.encoder_lesson import EncoderLesson, learn
from apps.search.proactive.recall import recall
from apps.search.spaces import Role
from benchmarks._people import ASKED, TUNED, people
from tests.search.conftest import save
from tests.search.test_encoder import needs_weights
from tests.waiting import PATIENCE


def test_an_adapter_learns_the_way_from_messages_to_their_notes() -> None:
    random = np.random.default_rng(1)
    turn = np.eye(16) + random.normal(size=(16, 16), scale=0.2)
    notes = unit_rows(random.normal(size=(400, 16)).astype(np.float32))
    noted = np.repeat(np.arange(400), 3)
    messages = unit_rows((notes @ turn)[noted] + random.normal(size=(1200, 16), scale=0.05))
    learnt = adapter_of(notes[:300], messages[:900], noted[:900].tolist())
    found = learnt.adapted(messages[900:]) @ notes.T
    untaught = messages[900:] @ notes.T
    missed, before = ((each.argmax(axis=1) != noted[900:]).sum() for each in (found, untaught))
    assert missed < before / 3
    assert abs(learnt.noise) < 0.05 < learnt.match


def test_what_is_taught_is_kept_and_of_no_other_dimension() -> None:
    random = np.random.default_rng(2)
    vectors = unit_rows(random.normal(size=(20, 8)).astype(np.float32))
    lesson = EncoderLesson(vectors[0][:8].repeat(2)[:9], adapter_of(vectors, vectors, list(range(20))))
    packed = lesson.packed()
    read = EncoderLesson.unpacked(packed, 8)
    assert read is not None
    assert np.array_equal(read.concern, lesson.concern)
    assert np.array_equal(read.adapter.matrix, lesson.adapter.matrix)
    assert read.adapter.match == pytest.approx(lesson.adapter.match)
    assert EncoderLesson.unpacked(packed, 9) is None
    for older in (
        lesson.concern.tobytes(),
        packed[4:],
        b"\0\0\0\0" + packed[4:],
        b"",
    ):  # as versions before kept it
        assert EncoderLesson.unpacked(older, 8) is None


def test_the_examples_are_of_nobody_who_is_asked() -> None:
    examples = example_notes()
    assert len(examples.notes) > 1000
    assert len(set(examples.notes)) == len(examples.notes)
    each = np.bincount(examples.noted, minlength=len(examples.notes))
    assert each.min() >= 3
    taught = {text.casefold() for text in (*examples.notes, *examples.messages)}
    for person in (person for name in (*TUNED, *ASKED) for person in people(name)):
        assert taught.isdisjoint(note.text.casefold() for note in person.notes)
        assert taught.isdisjoint(
            said.talk[-1].casefold() for said in person.messages if len(said.talk[-1]) > 12
        )


def test_what_minilm_has_learnt_is_kept_and_learnt_anew_where_it_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder_lesson, "kept_file", lambda name: tmp_path / name)
    monkeypatch.setattr(encoder_lesson, "MOST_NOTES", 20)
    monkeypatch.setattr(concern, "ENCODER_EXAMPLES", 20)
    asked: list[str] = []

    def embed(texts: Sequence[str]) -> Matrix:
        asked.extend(texts)
        random = np.random.default_rng(len(texts))
        return unit_rows(random.normal(size=(len(texts), MiniLMEmbedder.dimension)).astype(np.float32))

    def learnt(name: str = "minilm") -> bytes:
        return learn(name, queries=embed, documents=embed).packed()

    first = learnt()
    assert len(asked) == len(set(asked)) > 100
    asked.clear()
    assert learnt() == first
    assert not asked
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"half of it")
    assert learnt() == first == file.read_bytes()
    asked.clear()
    learnt("ollama:all-minilm")
    assert asked, "of another's vectors nobody knows whether they are still the same"
    monkeypatch.setattr(encoder_lesson, "kept_file", lambda name: tmp_path / "nowhere" / name)
    assert learnt() == first


@needs_weights
def test_a_note_comes_up_where_it_matters_to_a_message_that_says_nothing_like_it(
    alice: User, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also where a version before has taught the encoder less: the worker makes up for it."""
    monkeypatch.setattr(spaces, "ANSWER_SECONDS", PATIENCE)
    monkeypatch.setattr(encoder_lesson, "kept_file", lambda name: tmp_path / name)
    monkeypatch.setattr(concern, "ENCODER_EXAMPLES", 200)
    monkeypatch.setattr(encoder_lesson, "MOST_NOTES", 1000)
    settings.IZZY_EMBEDDER = "minilm"
    save(
        alice,
        "Prawns and crab make her throat swell.",
        "The car is in the garage.",
        "Ada plays the cello.",
        "Her landlord is Mr Okafor; rent is due on the third.",
        "The tax papers lie in the blue folder.",
        "Ben starts school in September.",
        "The user swims on Tuesdays before work.",
        "The printer needs cartridges of the large kind.",
    )
    side_fill("minilm")
    older = np.zeros(385, dtype="<f4").tobytes()
    EmbeddingSpace.objects.filter(role=Role.SIDE).update(concern=older)
    encoder_lesson._lessons.clear()
    talk = ["order paella for two"]
    before = recall(alice.pk, talk, top_k=5, scope=Scope())
    encoder_learn()
    assert filling.has_learnt(EmbeddingSpace.objects.get(role=Role.SIDE))
    best, *others = recall(alice.pk, talk, top_k=5, scope=Scope())
    assert best.text.startswith("Prawns")
    assert best.score > 0.2
    assert best.score > 2 * max(hit.score for hit in (*before, *others))
