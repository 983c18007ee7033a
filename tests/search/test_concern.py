"""Questions whose answers depend on the user are told from those that are the same for everybody."""

import json
from pathlib import Path

import numpy as np
import pytest

from apps.search.proactive import concern
from apps.search.proactive.concern import (
    ENCODER_EXAMPLES,
    FOLDER,
    IDLE,
    PERSONAL,
    encoder_concern,
    encoder_examples,
    encoder_lesson,
    example_messages,
    lesson_of,
    whole_lesson,
)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_each_language_teaches_with_messages_of_both_kinds_none_of_them_twice(path) -> None:  # type: ignore[no-untyped-def]
    kinds = json.loads(path.read_text(encoding="utf-8"))
    assert set(kinds) == {PERSONAL, IDLE}
    plain = [text.casefold() for kind in kinds.values() for text in kind]
    assert len(plain) == len(set(plain)) >= 250
    # Those to which a note matters are personal, too, and stand elsewhere.
    assert 0 < len(kinds[IDLE]) - len(kinds[PERSONAL]) < len(plain) / 6


@pytest.mark.parametrize(
    ("personal", "idle"),
    [
        ("what should I cook tonight?", "who invented the microwave?"),
        ("book us a table somewhere nice", "translate 'good evening' into Italian"),
        ("when does my sister's train get in?", "write a poem about trains"),
        ("Was soll ich heute Abend kochen?", "Wer hat die Mikrowelle erfunden?"),
        ("Qu'est-ce que je cuisine ce soir ?", "Qui a inventé le micro-ondes ?"),
        ("¿Qué cocino esta noche?", "¿Quién inventó el microondas?"),
    ],
)
def test_a_question_of_ones_own_sounds_more_personal_than_one_of_anybodys(
    personal: str, idle: str
) -> None:
    assert all(
        lesson.concern(personal) > lesson.concern(idle)
        for lesson in (whole_lesson(near=False), whole_lesson(near=True))
    )


def test_what_was_learnt_is_kept_and_learnt_anew_where_it_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def learn() -> tuple[bytes, bytes, float]:
        lesson = whole_lesson.__wrapped__(near=False)
        return lesson.grams.tobytes(), lesson.weights.tobytes(), lesson.offset

    monkeypatch.setattr("sys.prefix", str(tmp_path))
    learnt = learn()
    (kept,) = tmp_path.iterdir()
    monkeypatch.setattr(concern, "lesson_of", None)  # it is read, not learnt again
    assert learn() == learnt
    for damaged in (b"", b"no zip", kept.read_bytes()[:-2000]):
        kept.write_bytes(damaged)
        with pytest.raises(TypeError):
            learn()
    assert len(caplog.records) == 3
    monkeypatch.undo()
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert learn() == learnt
    monkeypatch.setattr("sys.prefix", str(tmp_path / "gone"))  # where nothing can be kept
    assert learn() == learnt


@pytest.mark.parametrize("text", ["", "   ", "?!", "🦞", "x" * 100_000, "\x00", "你好"])
def test_any_text_has_a_finite_concern(text: str) -> None:
    assert abs(whole_lesson(near=True).concern(text)) < 10


def test_messages_it_has_not_learnt_from_are_told_apart() -> None:
    """Nine of ten pairs, one personal and one idle, of a fifth that the lesson has not seen."""
    texts, personal = example_messages()
    kept = [place for place in range(len(texts)) if place % 5]
    lesson = lesson_of([texts[place] for place in kept], [personal[place] for place in kept])
    rest = range(0, len(texts), 5)
    own = np.array([lesson.concern(texts[place]) for place in rest if personal[place]])
    idle = np.array([lesson.concern(texts[place]) for place in rest if not personal[place]])
    assert (own[:, None] > idle).mean() > 0.9


def test_an_encoder_learns_from_some_of_each_kind() -> None:
    for name in ("ollama:nomic-embed-text", "minilm", "ollama:all-minilm:l6-v2"):
        texts, personal = encoder_examples(name)
        assert 2000 <= len(texts) <= ENCODER_EXAMPLES
        assert 0.4 < sum(personal) / len(texts) < 0.7
        assert (set(texts) <= set(example_messages("en")[0])) == ("minilm" in name)


def test_an_encoder_learns_what_its_vectors_tell() -> None:
    random = np.random.default_rng(1)
    personal = [bool(number % 2) for number in range(200)]
    vectors = random.normal(size=(200, 16)).astype(np.float32)
    vectors[:, 0] += np.where(personal, 1.5, -1.5)
    lesson = encoder_lesson(vectors, personal)
    told = [encoder_concern(lesson, row) for row in vectors]
    assert sum((value > 0) == own for value, own in zip(told, personal, strict=True)) > 180
