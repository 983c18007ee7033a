"""An encoder's vectors stand beside the bundled ones: what has none yet is ranked by what the bundled ones predict."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import numpy as np
import pytest
from numpy.typing import NDArray

from apps.accounts.models import User
from apps.search.backends import Space
from apps.search.documents import Source
from apps.search.filling import side_fill
from apps.search.index import cache, side
from apps.search.index.rows import UserRows
from apps.search.index.side import SideVectors, predicted
from apps.search.index.signs import distances, line_through, pack_signs
from apps.search.models import IndexOwner, Passage
from apps.search.selectors import alike_pairs, likenesses, search, similar
from apps.search.services import documents_remove
from tests.peers.ollama_server import OllamaPeer

from .conftest import DAY, found, save, say

NOMIC = "ollama:nomic-embed-text"
THINGS = ("car", "boat", "garden", "router", "piano", "kettle", "tent", "lamp", "chair", "drum")
NOTES = [
    f"The {one} near the {two} is {how}" for one in THINGS for two in THINGS for how in ("old", "new")
]
QUESTIONS = ("the old car", "what is near the piano?", "new tent near a lamp", "Where is the drum?")
BASE, SIDE = Space(1, "static", 256, 0.05, 0.85), Space(2, "a", 384, 0.1, 0.9)


def results(user: User) -> list[list[tuple[str, float, dict[str, float]]]]:
    return [
        [(hit.text, hit.score, hit.parts) for hit in search(user.pk, question, top_k=50)]
        for question in QUESTIONS
    ]


@contextmanager
def rows_of(user: User) -> Iterator[UserRows]:
    with cache.index_open(user.pk) as opened:
        assert opened is not None
        yield opened[1]


def fill(user: User, share: float) -> None:
    """Leave side vectors to a share of the passages."""
    side_fill(NOMIC)
    ids = list(Passage.objects.filter(user=user).order_by("id").values_list("id", flat=True))
    kept = set(random.Random(3).sample(ids, round(len(ids) * share)))
    Passage.objects.filter(user=user).exclude(id__in=kept).update(side_vector=None)
    cache.forget()


def test_with_none_filled_search_is_what_it_is_without_the_encoder(
    alice: User, ollama: OllamaPeer, settings: pytest.FixtureRequest
) -> None:
    save(alice, *NOTES)
    say(alice, ("user", "Is the car old?"), ("assistant", "It is."), ("user", "And the boat?"))
    fill(alice, 0)
    with_encoder = results(alice)
    settings.IZZY_EMBEDDER = "static"  # type: ignore[attr-defined]
    cache.forget()
    assert results(alice) == with_encoder


def test_with_half_filled_those_that_wait_keep_their_place(alice: User, ollama: OllamaPeer) -> None:
    save(alice, *NOTES)
    fill(alice, 1)
    whole = results(alice)
    fill(alice, 0.5)
    assert Passage.objects.filter(side_vector=None).count() == len(NOTES) // 2
    half = results(alice)
    for all_filled, half_filled in zip(whole, half, strict=True):
        assert all("encoder" in parts for _, _, parts in half_filled)
        before, after = (
            {text: place for place, (text, _, _) in enumerate(each)}
            for each in (all_filled, half_filled)
        )
        both = before.keys() & after.keys()
        assert len(both) > 25
        moves = [abs(before[text] - after[text]) for text in both]
        assert np.mean(moves) < 10
    waits = set(Passage.objects.filter(side_vector=None).values_list("text", flat=True))
    for half_filled in half:
        shown = [text in waits for text, _, _ in half_filled[:20]]
        assert 3 <= sum(shown) <= 17
        assert all(parts["encoder"] > 0 for text, _, parts in half_filled[:20])


def test_with_all_filled_each_is_measured(alice: User, ollama: OllamaPeer) -> None:
    save(alice, *NOTES)
    fill(alice, 1)
    assert found(alice, "The kettle near the tent is old")[0] == "The kettle near the tent is old"
    with rows_of(alice) as rows:
        assert rows.side is not None
        assert rows.side.embedded[: rows.size].all()
        query = rows.side.vectors[7].astype(np.float32)
        allowed = rows.alive[: rows.size]
        near = rows.side_cosines(query, None, allowed)
        assert near is not None
        exact = rows.side.vectors[: rows.size].astype(np.float32) @ query
        assert near == pytest.approx(exact, abs=1e-6)


def test_a_row_that_waits_has_what_its_bundled_cosine_predicts(alice: User, ollama: OllamaPeer) -> None:
    save(alice, *NOTES)
    fill(alice, 0.5)
    with rows_of(alice) as rows:
        assert rows.side is not None
        base = rows.cosines(rows.vectors[3].copy())
        query = rows.side.vectors[np.flatnonzero(rows.side.embedded)[0]].astype(np.float32)
        near = rows.side_cosines(query, base, rows.alive[: rows.size])
        assert near is not None
        waits = ~rows.side.embedded[: rows.size]
        slope, offset = line_through(base[~waits], near[~waits])
        assert near[waits] == pytest.approx(slope * base[waits] + offset, abs=1e-4)
        assert (near[waits] != 0).all()


def test_of_few_the_calibrations_predict() -> None:
    one = np.array([0.05, 0.45, 0.85], dtype=np.float32)
    assert predicted(one, one[:1], one[:1], (BASE, SIDE)) == pytest.approx([0.1, 0.5, 0.9])


@pytest.mark.django_db(transaction=True)
def test_an_index_in_memory_takes_each_vector_as_it_comes(alice: User, ollama: OllamaPeer) -> None:
    save(alice, *NOTES)
    found(alice, "car")
    with rows_of(alice) as rows:
        assert rows.side is None
        bare = rows.bytes
    side_fill(NOMIC, limit=64)
    with rows_of(alice) as rows:
        assert rows.side is not None
        assert rows.side.embedded.sum() == 64
        assert rows.bytes > bare
        quick = rows.coarse
    side_fill(NOMIC)
    save(alice, "One more")
    with rows_of(alice) as again:
        assert again is rows
        assert again.side is not None
        assert again.side.embedded.sum() == len(NOTES)
        assert again.coarse is quick


@pytest.mark.django_db(transaction=True)
def test_what_is_removed_leaves_no_side_vector_in_memory(alice: User, ollama: OllamaPeer) -> None:
    (gone, *_) = save(alice, *NOTES[:20])
    side_fill(NOMIC)
    found(alice, "car")
    documents_remove(user_id=alice.pk, source=Source.MEMORY, source_ids=[gone])
    with rows_of(alice) as rows:
        assert rows.side is not None
        dead = ~rows.alive[: rows.size]
        assert dead.sum() == 1
        assert not rows.side.vectors[: rows.size][dead].any()
        assert not rows.side.signs[:, : rows.size][:, dead].any()


def test_two_users_have_their_own(alice: User, bob: User, ollama: OllamaPeer) -> None:
    save(alice, *NOTES[:50])
    side_fill(NOMIC)
    before = results(alice)
    save(bob, *NOTES)
    side_fill(NOMIC)
    assert IndexOwner.objects.get(user=bob).change > 1
    cache.forget()
    assert results(alice) == before


def test_a_scope_and_time_hold_with_it_too(alice: User, ollama: OllamaPeer) -> None:
    save(alice, "The car was sold", valid_to=DAY - timedelta(days=1), valid_from=DAY - timedelta(days=9))
    save(alice, "The car is red")
    side_fill(NOMIC)
    assert found(alice, "car") == ["The car is red"]


def test_alike_is_the_mean_of_both_where_both_tell(
    alice: User, ollama: OllamaPeer, settings: pytest.FixtureRequest
) -> None:
    texts = ["The car near the boat is old", "The wedding of a cousin was beside the old boat"]
    one, two = save(alice, *texts)
    settings.IZZY_EMBEDDER = "static"  # type: ignore[attr-defined]
    bundled = dict(similar(alice.pk, texts[0]))[two]
    assert likenesses(texts)[0, 1] == pytest.approx(bundled, abs=0.002)
    settings.IZZY_EMBEDDER = NOMIC  # type: ignore[attr-defined]
    assert dict(similar(alice.pk, texts[0]))[two] == bundled
    side_fill(NOMIC)
    both = dict(similar(alice.pk, texts[0]))
    assert both[one] > 0.99
    assert both[two] != bundled
    assert likenesses(texts)[0, 1] == pytest.approx(both[two], abs=0.002)
    ((_, _, paired),) = alike_pairs(alice.pk, source=Source.MEMORY, among=[one, two], at_least=0.1)
    assert paired == pytest.approx(both[two], abs=0.002)


def unit(number: int, dimension: int = 384) -> NDArray[np.float32]:
    """Vectors around a few directions, as texts about a few matters have them."""
    rng = np.random.default_rng(5)
    centres = rng.standard_normal((40, dimension))
    made = centres[rng.integers(0, 40, number)] + 1.5 * rng.standard_normal((number, dimension))
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), dtype=np.float32)


def test_the_first_look_finds_the_nearest_and_measures_them(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = unit(12_000)
    held = SideVectors(SIDE, 13_000)
    held.put(np.arange(12_000), vectors.astype(np.float16))
    among = np.ones(12_000, dtype=bool)
    for place in range(0, 12_000, 4000):
        query = vectors[place]
        near = held.cosines(query, None, BASE, among)
        assert near is not None
        exact = vectors @ query
        best = np.argsort(-exact)[:50]
        assert len(set(np.argsort(-near)[:50].tolist()) & set(best.tolist())) >= 49
        assert near[best[:40]] == pytest.approx(exact[best[:40]], abs=2e-3)
        assert np.corrcoef(near, exact)[0, 1] > 0.8
        assert abs(float(near.mean() - exact.mean())) < 0.02


def test_the_first_look_is_at_what_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side, "EXACT", 20)
    monkeypatch.setattr(side, "SAMPLE", 10)
    vectors = unit(2000)
    held = SideVectors(SIDE, 2000)
    held.put(np.arange(2000), vectors.astype(np.float16))
    query = vectors[0]
    exact = vectors @ query
    among = np.zeros(2000, dtype=bool)
    among[np.argsort(exact)[:15]] = True  # the farthest alone
    near = held.cosines(query, None, BASE, among)
    assert near is not None
    best = np.flatnonzero(among)[np.argsort(-exact[among])[:5]]
    assert near[best] == pytest.approx(exact[best], abs=2e-3)
    assert held.cosines(query, None, BASE, np.zeros(2000, dtype=bool)) is None


def test_signs_of_any_dimension_are_counted() -> None:
    for dimension in (3, 64, 100, 384):
        vectors = unit(5, dimension)
        far = distances(pack_signs(vectors), vectors[0])
        expected = ((vectors > 0) != (vectors[0] > 0)).sum(axis=1)
        assert far.tolist() == expected.tolist()
