"""The 8-bit first look gives what the full vectors give. Its engine is an optional extra: numpy stands in for it."""

from types import SimpleNamespace

import numpy as np
import pytest

from apps.accounts.models import User
from apps.search.index import cache, rows
from apps.search.index.rows import CoarseVectors
from apps.search.selectors import search, similar

from .conftest import found, save


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine with numkong's signature, and use from the first passage on."""

    def cdist(one: np.ndarray, many: np.ndarray, metric: str) -> np.ndarray:
        assert metric == "dot"
        return one.astype(np.float64) @ many.T.astype(np.float64)

    stand_in = SimpleNamespace(cdist=cdist)
    monkeypatch.setattr(rows, "engine", lambda: stand_in)
    monkeypatch.setattr(rows, "engine", lambda: stand_in)
    monkeypatch.setattr(rows, "COARSE_FROM", 300)


def unit(rng: np.random.Generator, number: int) -> np.ndarray:
    made = rng.standard_normal((number, 256)).astype(np.float32)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True))


@pytest.mark.usefixtures("engine")
def test_the_best_are_the_same_and_exact() -> None:
    vectors = unit(np.random.default_rng(1), 3000)
    quick = CoarseVectors(256)
    quick.follow(vectors, 3000)
    for place in range(0, 3000, 100):
        query = vectors[place]
        exact = vectors @ query
        near = quick.cosines(vectors, query)
        assert np.abs(near - exact).max() < 0.01
        best = np.argsort(-exact)[:10]
        assert np.argsort(-near)[:10].tolist() == best.tolist()
        assert near[best] == pytest.approx(exact[best], abs=1e-6)


@pytest.mark.usefixtures("engine")
def test_rows_are_taken_over_as_they_come() -> None:
    vectors = unit(np.random.default_rng(2), 900)
    quick = CoarseVectors(256)
    for size in (400, 500, 900):
        quick.follow(vectors[:size], size)
    assert quick.cosines(vectors, vectors[450])[450] == pytest.approx(1, abs=1e-5)
    assert quick.bytes >= 900 * 256


@pytest.mark.usefixtures("engine")
def test_search_finds_the_same_with_it(alice: User) -> None:
    notes = [f"note number {number} about topic{number} and the garden" for number in range(320)]
    save(alice, *notes)
    hits = search(alice.pk, "topic77 in the garden")
    with cache.index_open(alice.pk) as opened:
        assert opened is not None
    assert hits[0].text == notes[77]
    assert hits[0].parts["meaning"] > 0
    assert similar(alice.pk, notes[5])[0][1] > 0.99
    save(alice, "The boat is called Aurora")
    assert found(alice, "Aurora")[0] == "The boat is called Aurora"


def test_without_the_extra_the_full_vectors_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.search.index.rows.find_spec", lambda name: None)
    rows.engine.cache_clear()
    assert rows.engine() is None
    rows.engine.cache_clear()
