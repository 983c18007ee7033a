"""Properties of ranking with any texts: order, bounds, and independence of how the notes came in."""

from collections.abc import Sequence
from uuid import UUID

import numpy as np
import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.accounts.models import User
from apps.core.text import chunk_text, estimate_tokens
from apps.search.features import best_places
from apps.search.index import cache
from apps.search.models import Passage
from apps.search.ranking.signals import _one_of, _scaled
from apps.search.selectors import search
from apps.search.services import documents_index, user_forget

from .conftest import note, save

WORDS = ("car", "bicycle", "red", "blue", "garden", "roof", "sleep", "bread", "river", "music")
TEXTS = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join), min_size=1, max_size=12
)
QUERIES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
relaxed = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def scores(user: User, query: str) -> dict[str, float]:
    return {hit.text: hit.score for hit in search(user.pk, query, top_k=50)}


@relaxed
@given(texts=TEXTS, query=QUERIES)
def test_hits_are_distinct_documents_in_falling_order(alice: User, texts: list[str], query: str) -> None:
    user_forget(user_id=alice.pk)
    save(alice, *texts)
    hits = search(alice.pk, query, top_k=50)
    assert len({hit.source_id for hit in hits}) == len(hits) == len(texts)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(0 <= hit.score <= 1 for hit in hits)


@relaxed
@given(
    texts=st.sets(st.sampled_from([f"{a} {b}" for a in WORDS for b in WORDS]), min_size=2, max_size=12),
    query=QUERIES,
)
def test_it_makes_no_difference_whether_notes_came_at_once_or_one_by_one(
    alice: User, bob: User, texts: set[str], query: str
) -> None:
    for user in (alice, bob):
        user_forget(user_id=user.pk)
    save(alice, *sorted(texts))
    for text in sorted(texts):
        save(bob, text)
    one, other = scores(alice, query), scores(bob, query)
    assert one.keys() == other.keys()
    for text, values in one.items():
        assert values == pytest.approx(other[text], abs=1e-3)


@relaxed
@given(texts=TEXTS, query=QUERIES)
def test_more_results_begin_with_the_fewer(alice: User, texts: list[str], query: str) -> None:
    user_forget(user_id=alice.pk)
    save(alice, *texts)
    names: list[UUID] = [hit.source_id for hit in search(alice.pk, query, top_k=50)]
    assert [hit.source_id for hit in search(alice.pk, query, top_k=3)] == names[:3]


@settings(deadline=None)
@given(values=st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=30), least=st.floats(0, 0.5))
def test_scaled_signals_keep_their_order_and_lie_between_nothing_and_one(
    values: Sequence[float], least: float
) -> None:
    array = np.array(values, dtype=np.float32)
    scaled = _scaled(array, None, least)
    assert scaled.min() >= 0
    assert scaled.max() <= 1 + 1e-5
    assert all(
        scaled[a] <= scaled[b] + 1e-6
        for a in range(len(array))
        for b in range(len(array))
        if array[a] <= array[b]
    )


@settings(deadline=None)
@given(values=st.lists(st.floats(0, 100, width=32), min_size=1, max_size=30))
def test_shares_are_of_the_largest(values: Sequence[float]) -> None:
    array = np.array(values, dtype=np.float32)
    shares = array * _one_of(array, np.ones(len(array), dtype=bool))
    assert shares.max() == pytest.approx(1.0 if array.max() > 0 else 0.0, abs=1e-4)


@settings(max_examples=80, deadline=None)
@given(
    text=st.text(alphabet="ab c.\n!?", max_size=1500), size=st.integers(5, 60), overlap=st.integers(0, 4)
)
def test_chunks_keep_every_word_and_their_size(text: str, size: int, overlap: int) -> None:
    chunks = chunk_text(text, size, overlap)
    assert all(estimate_tokens(chunk) <= size for chunk in chunks)
    joined = "".join(chunks)
    assert set("".join(text.split())) == set("".join(joined.split()))


def test_every_part_of_a_long_text_is_a_passage(alice: User) -> None:
    sentences = [f"Sentence {number} is about subject{number}." for number in range(400)]
    save(alice, " ".join(sentences))
    stored = " ".join(Passage.objects.order_by("part").values_list("text", flat=True))
    assert all(sentence in stored for sentence in sentences)


def test_best_places_are_one_per_document_however_many_parts_it_has(alice: User) -> None:
    long = "The river is blue. " * 1500
    save(alice, long, "blue bicycle", "red car")
    with cache.index_open(alice.pk) as opened:
        assert opened is not None
        rows = opened[1]
        total = np.linspace(1, 0, rows.size, dtype=np.float32)
        places = best_places(total, rows.features["document"], 3)
        assert len(set(rows.features["document"][places].tolist())) == 3


def test_a_batch_with_the_same_document_twice_keeps_the_last(alice: User) -> None:
    first = note("The car is red")
    second = note("The car is blue", source_id=first.source_id)
    with transaction.atomic():
        documents_index(user_id=alice.pk, documents=[first, second])
    assert list(Passage.objects.values_list("text", flat=True)) == ["The car is blue"]
