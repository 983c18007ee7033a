"""An encoder's vectors are taught which notes matter to which messages."""

from pathlib import Path

import numpy as np
import pytest
from pytest_django import Settings

from apps.accounts.models import User
from apps.search.backends import Space
from apps.search.documents import Scope
from apps.search.embedders import engines, taught
from apps.search.embedders.base import unit_rows
from apps.search.embedders.engines import embedder_for
from apps.search.embedders.own import MINILM, model
from apps.search.filling import encoder_learn, sweep_vectors, vectors_fill
from apps.search.health import check_embedder
from apps.search.models import EmbeddingSpace, Passage
from apps.search.proactive import encoder_lesson
from apps.search.proactive.adapter import Examples, adapter_of, example_notes, example_people
from apps.search.proactive.contextual_query import contextual_query
from apps.search.proactive.encoder_lesson import MOST_NOTES, EncoderLesson, side_lesson
from apps.search.proactive.recall import recall
from apps.search.selectors import search
from apps.search.spaces import Role, note_up
from benchmarks._people import ASKED, TUNED, people
from tests.search.conftest import save
from tests.search.test_encoder import needs_mpnet, needs_weights
from tests.search.test_occasions import with_occasions

A_LIFE = (
    "Prawns and crab make her throat swell.",
    "The car is in the garage.",
    "Ada plays the cello.",
    "Her landlord is Mr Okafor; rent is due on the third.",
    "The tax papers lie in the blue folder.",
    "Ben starts school in September.",
    "The user swims on Tuesdays before work.",
    "The printer needs cartridges of the large kind.",
)


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
    assert read.adapter.matrix is not None
    assert np.array_equal(read.adapter.matrix, lesson.adapter.matrix)  # type: ignore[arg-type]
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
    assert 1000 < len(examples.notes) <= MOST_NOTES  # every encoder learns from all
    assert len(set(examples.notes)) == len(examples.notes)
    each = np.bincount(examples.noted, minlength=len(examples.notes))
    assert each.min() >= 3
    idle = [text for person in example_people() for text in person["idle"]]
    assert set(idle).isdisjoint(examples.messages)
    talks = [said for person in example_people() for said in person["talks"]]
    for said in talks:
        assert len(said["talk"]) == 3
        assert all(said["talk"])
        assert said["note"] in {None, *range(10)}
        assert said["note"] not in said["also"]
        assert set(said["also"]) <= (set() if said["note"] is None else set(range(10)))
    newest = [said["talk"][-1] for said in talks]
    taught = {text.casefold() for text in (*examples.notes, *examples.messages, *idle, *newest)}
    for person in (person for name in (*TUNED, *ASKED) for person in people(name)):
        assert taught.isdisjoint(note.text.casefold() for note in person.notes)
        assert taught.isdisjoint(
            said.talk[-1].casefold() for said in person.messages if len(said.talk[-1]) > 12
        )


@pytest.fixture(scope="module")
def minilm_examples() -> Examples:
    return example_notes("en", 300)


@needs_weights
def test_minilm_comes_taught_which_note_matters_to_which_message(minilm_examples: Examples) -> None:
    """Asked are examples it was taught with: this shows that it has learnt, not how well it knows others."""
    encoder = embedder_for("minilm")
    messages, notes = minilm_examples.messages, minilm_examples.notes
    own = np.array(minilm_examples.noted)
    towers, untaught = (
        embed(messages) @ encoder.embed_documents(notes).T
        for embed in (encoder.embed_messages, encoder.embed_queries)
    )
    first, before = ((each.argmax(axis=1) == own).mean() for each in (towers, untaught))
    assert first > 1.3 * before
    adapter = taught.taught(MINILM)
    assert adapter.noise == pytest.approx(towers.mean(), abs=0.05)
    assert (
        np.quantile(towers[np.arange(len(own)), own], 0.5)
        > adapter.noise + 2 * (adapter.match - adapter.noise) / 10
    )


@needs_weights
def test_documents_stay_near_to_what_the_encoder_made_of_them(minilm_examples: Examples) -> None:
    encoder = embedder_for("minilm")
    texts = minilm_examples.notes
    own = model(MINILM).embed(texts)
    assert np.median((encoder.embed_documents(texts) * own).sum(axis=1)) > 0.9


def test_what_is_taught_is_written_in_whole_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(3)
    added = {
        name: {"one": (random.normal(size=(8, 2)).astype("f4"), random.normal(size=(2, 6)).astype("f4"))}
        for name in taught.TOWERS
    }
    towers = {name: taught.tower_of(each) for name, each in added.items()}
    file = tmp_path / "taught.npz"
    with file.open("wb") as opened:
        taught.write(opened, towers, np.arange(9, dtype="f4"), 0.1, 0.7)
    monkeypatch.setattr(taught, "file_of", lambda _: file)
    read = taught.taught.__wrapped__(MINILM)
    assert (read.noise, read.match, read.concern.tolist()) == (0.1, 0.7, list(range(9)))
    for tower, name in ((read.messages, "message"), (read.notes, "note")):
        down, scale, up = tower["one"]
        product = added[name]["one"][0] @ added[name]["one"][1]
        assert np.abs((down * scale) @ up.astype("f4") - product).max() < 0.03 * np.abs(product).max()
    assert len(read.mark) == 4


@needs_weights
@pytest.mark.usefixtures("minilm")
@pytest.mark.parametrize("name", [MINILM, pytest.param("mpnet", marks=needs_mpnet)])
def test_a_note_comes_up_where_it_matters_to_a_message_that_says_nothing_like_it(
    alice: User, settings: Settings, name: str
) -> None:
    settings.IZZY_EMBEDDER = name
    save(alice, *A_LIFE)
    talk = ["order paella for two"]
    before = recall(alice.pk, talk, top_k=5, scope=Scope())
    vectors_fill()
    best, *others = recall(alice.pk, talk, top_k=5, scope=Scope())
    assert best.text.startswith("Prawns")
    assert best.score > 0.2
    assert best.score > 2 * max(hit.score for hit in (*before, *others))


@needs_weights
@pytest.mark.usefixtures("minilm")
@pytest.mark.parametrize("name", [MINILM, pytest.param("mpnet", marks=needs_mpnet)])
def test_what_the_encoder_brings_up_is_not_said_to_come_of_an_occasion(
    alice: User, settings: Settings, name: str
) -> None:
    settings.IZZY_EMBEDDER = name
    with_occasions(alice, "Her dog Biscuit is terrified of loud bangs.", ("giving a talk, nervous",))
    save(alice, "Ada plays the cello.", "Rent is due on the third.", "The car is in the garage.")
    vectors_fill()
    best, *_ = recall(
        alice.pk, ["What should I do about New Year's Eve fireworks?"], top_k=3, scope=Scope()
    )
    assert best.text.startswith("Her dog")
    assert best.parts["adapted"] > 1 > best.parts["encoder_occasion"]
    assert best.reason == "Matters to messages like this one."


@needs_weights
@pytest.mark.usefixtures("minilm")
@pytest.mark.parametrize("name", [MINILM, pytest.param("mpnet", marks=needs_mpnet)])
def test_what_rules_take_for_a_new_subject_is_read_in_its_context_too(
    alice: User, settings: Settings, name: str
) -> None:
    settings.IZZY_EMBEDDER = name
    save(alice, *A_LIFE)
    vectors_fill()
    asked, reply, newest = (
        "What do people cook for a big birthday?",
        "Seafood paella feeds a crowd, or a lasagne.",
        "great, the first, make me a shopping list",
    )
    assert contextual_query([asked, reply, newest], ["en"]).lean == 0.0
    best, *_ = recall(alice.pk, [asked, reply, newest], top_k=3, scope=Scope())
    assert best.text.startswith("Prawns")
    alone = recall(alice.pk, [newest], top_k=3, scope=Scope())
    assert best.score > 2 * max((hit.score for hit in alone), default=0.0)
    # What is asked next has nothing to do with it.
    next_subject = recall(
        alice.pk, [asked, reply, "what is the capital of Peru"], top_k=3, scope=Scope()
    )
    assert best.score > 2 * max((hit.score for hit in next_subject), default=0.0)


@needs_weights
@pytest.mark.usefixtures("minilm")
def test_vectors_of_an_encoder_that_has_been_taught_otherwise_since_are_made_anew(
    alice: User,
) -> None:
    save(alice, "Prawns and crab make her throat swell.", "The car is in the garage.")
    vectors_fill()
    space = EmbeddingSpace.objects.get(role=Role.SIDE)
    made = list(Passage.objects.order_by("id").values_list("side_vector", flat=True))
    assert bytes(space.concern or b"") == taught.taught(MINILM).mark
    encoder_learn()  # has nothing to do
    for older in (b"then", np.zeros(385, dtype="<f4").tobytes(), None):  # as versions before kept it
        EmbeddingSpace.objects.update(concern=older)
        Passage.objects.update(side_vector=np.ones(384, dtype="<f2").tobytes())
        row = EmbeddingSpace.objects.get(role=Role.SIDE)
        encoder_lesson._lessons.clear()
        assert side_lesson(Space(row.pk, row.name, row.dimension, row.noise, row.match)) is None
        encoder_learn()
        assert bytes(EmbeddingSpace.objects.get(role=Role.SIDE).concern or b"") == (older or b"")
        vectors_fill()
        assert EmbeddingSpace.objects.get(role=Role.SIDE).pk != space.pk
        assert list(Passage.objects.order_by("id").values_list("side_vector", flat=True)) == made
        space = EmbeddingSpace.objects.get(role=Role.SIDE)
    vectors_fill()
    assert EmbeddingSpace.objects.get(role=Role.SIDE).pk == space.pk


@needs_weights
@pytest.mark.usefixtures("minilm")
def test_a_damaged_file_of_what_was_taught_leaves_search_as_without_the_encoder(
    alice: User, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    save(alice, "Prawns and crab make her throat swell.", "The car is in the garage.")
    vectors_fill()
    whole = taught.file_of(MINILM).read_bytes()
    (tmp_path / "taught.npz").write_bytes(whole[:-2000])
    monkeypatch.setattr(taught, "file_of", lambda _: tmp_path / "taught.npz")
    taught.taught.cache_clear()
    engines._make.cache_clear()
    encoder_lesson._lessons.clear()
    try:
        assert not check_embedder().ok
        (best, *_) = recall(alice.pk, ["may she have prawns?"], top_k=5, scope=Scope())
        assert best.text.startswith("Prawns")
        assert search(alice.pk, "prawns")
        note_up()
        sweep_vectors()  # which says so in the log, and goes on with other work
        vectors_fill()
    finally:
        engines._make.cache_clear()
