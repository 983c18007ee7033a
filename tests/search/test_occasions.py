"""The occasions of a document: phrases that proactive recall reads, and plain search neither ranks by nor loads."""

import statistics
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import User
from apps.core.ids import uuid7
from apps.search import spaces
from apps.search.backends import backend
from apps.search.documents import Document, Facet, Scope, Source
from apps.search.embedders.engines import embedder_for
from apps.search.features import uuid_hash
from apps.search.filling import side_fill
from apps.search.index import cache, occasions
from apps.search.index.occasions import Nearest, nearest
from apps.search.index.phrases import Phrases
from apps.search.models import Passage
from apps.search.selectors import alike_pairs, context, search, similar
from apps.search.services import documents_index, documents_remove, user_forget
from tests.peers.ollama_server import OllamaPeer

from .conftest import found, note, save, whose_indexes

ALLERGY = "The user is allergic to shellfish."
DINING = ("choosing a restaurant", "cooking for the family", "ordering paella in Spain")
NOMIC = "ollama:nomic-embed-text"


def with_occasions(
    user: User, text: str = ALLERGY, phrases: tuple[str, ...] = DINING, **fields: Any
) -> UUID:
    """Save a note with its occasions, as notes are saved; returns its id."""
    key = fields.pop("source_id", None) or uuid7()
    documents = [
        note(text, source_id=key, **fields),
        note("\n".join(phrases), source_id=key, facet=Facet.OCCASIONS, **fields),
    ]
    documents_index(user_id=user.pk, documents=documents)
    return key


def near(user: User, *clauses: str, **options: Any) -> Nearest:
    vectors = np.stack([embedder_for("static").embed_documents([clause])[0] for clause in clauses])
    side = spaces.side_vectors(spaces.side_space(), list(clauses), spaces.Use.QUERY)
    return nearest(user.pk, base=vectors, side=side, **options)


def best(result: Nearest, clause: int = 0) -> str:
    assert result.base is not None
    return result.phrases[int(result.base.cosines[clause].argmax())].text


def test_each_line_is_a_phrase_of_its_own(alice: User) -> None:
    key = with_occasions(alice)
    result = near(alice, "a restaurant for tonight", "paella for two")
    assert {phrase.text for phrase in result.phrases} == set(DINING)
    assert {phrase.source_id for phrase in result.phrases} == {key}
    assert {phrase.document for phrase in result.phrases} == {uuid_hash(key.bytes)}
    assert (best(result, 0), best(result, 1)) == (DINING[0], DINING[2])
    assert result.base is not None
    assert result.base.cosines.shape == (2, 3)
    assert result.number == 3
    exact = embedder_for("static").embed_documents([phrase.text for phrase in result.phrases])
    asked = embedder_for("static").embed_documents(["a restaurant for tonight", "paella for two"])
    assert result.base.cosines == pytest.approx(asked @ exact.T, abs=2e-3)
    assert result.side is None


def test_plain_search_knows_nothing_of_them(alice: User) -> None:
    save(alice, "The router is in the hall.", "The user likes to travel.")
    before = [
        (hit.text, hit.score, hit.parts) for hit in search(alice.pk, "paella in Spain, restaurant")
    ]
    documents_index(user_id=alice.pk, documents=[note("Spain\nordering paella", facet=Facet.OCCASIONS)])
    cache.forget()
    after = [(hit.text, hit.score, hit.parts) for hit in search(alice.pk, "paella in Spain, restaurant")]
    assert after == before
    assert "Spain" not in context(alice.pk, "Spain").text
    with cache.index_open(alice.pk) as opened:
        assert opened is not None
        assert opened[1].size == 2


def test_two_documents_are_compared_by_what_they_say_alone(alice: User) -> None:
    one = with_occasions(alice)
    two = with_occasions(alice, "The router is in the hall.")
    assert alike_pairs(alice.pk, source=Source.MEMORY, among=[one, two], at_least=0.85) == []
    assert max(value for _, value in similar(alice.pk, DINING[0])) < 0.85


def test_they_are_replaced_with_the_document(alice: User) -> None:
    key = with_occasions(alice)
    with_occasions(alice, ALLERGY, ("packing for a trip", " ", ""), source_id=key)
    assert [phrase.text for phrase in near(alice, "a trip").phrases] == ["packing for a trip"]
    documents_index(user_id=alice.pk, documents=[note("Nothing of it.", source_id=key)])
    assert Passage.objects.filter(source_id=key).count() == 1
    assert near(alice, "a trip").phrases == []


@pytest.mark.django_db(transaction=True)
def test_an_index_in_memory_follows(alice: User) -> None:
    key = with_occasions(alice)
    near(alice, "paella")
    with cache.phrases_open(alice.pk) as opened:
        assert opened is not None
        held = opened[1]
    save(alice, "The router is in the hall.")
    other = with_occasions(alice, "The user drives a van.", ("moving house", "a trip to the sea"))
    documents_remove(user_id=alice.pk, source=Source.MEMORY, source_ids=[key])
    assert {phrase.source_id for phrase in near(alice, "paella").phrases} == {other}
    with cache.phrases_open(alice.pk) as opened:
        assert opened is not None
        assert opened[1] is held
        assert (held.size, held.living) == (5, 2)
        assert not held.signs[:, :3].any()


def test_only_what_is_valid_now_and_within_the_scope_is_found(alice: User) -> None:
    now = datetime.now(UTC)
    with_occasions(alice, "over", ("once upon a time",), valid_to=now - timedelta(days=1))
    with_occasions(alice, "to come", ("some day",), valid_from=now + timedelta(days=1))
    with_occasions(alice, "before", ("long ago",), valid_to=now, past=True)
    holds = with_occasions(
        alice, "now", ("today",), valid_from=now - timedelta(1), valid_to=now + timedelta(1)
    )
    capability = with_occasions(alice, "a tool", ("counting words",), source=Source.CAPABILITY)
    assert {phrase.text for phrase in near(alice, "time").phrases} == {"today", "counting words"}
    notes = near(alice, "time", scope=Scope(sources=frozenset({Source.MEMORY})))
    assert [phrase.source_id for phrase in notes.phrases] == [holds]
    assert near(alice, "time", scope=Scope(exclude_ids=[holds, capability])).phrases == []
    only = near(alice, "time", scope=Scope(only_ids=[capability]))
    assert [phrase.source_id for phrase in only.phrases] == [capability]


def test_nobody_finds_anothers(alice: User, bob: User, charlie: User) -> None:
    with_occasions(alice)
    mine = with_occasions(bob, "The user drives a van.", ("moving house",))
    assert {phrase.source_id for phrase in near(bob, "paella").phrases} == {mine}
    assert near(charlie, "paella").phrases == []
    anothers = list(Passage.objects.filter(user=alice).values_list("id", flat=True))
    assert backend.occasions_fetch(bob.pk, anothers) == []


def test_nothing_is_left_of_a_user_who_goes(alice: User) -> None:
    with_occasions(alice)
    near(alice, "paella")
    user_forget(user_id=alice.pk)
    assert not Passage.objects.exists()
    assert near(alice, "paella").phrases == []


def fill(user: User, number: int) -> None:
    """Many notes, each with an occasion."""
    things = ("car", "boat", "garden", "router", "piano", "kettle", "tent", "lamp", "chair", "drum")
    moment = datetime.now(UTC) - timedelta(days=3)
    documents = []
    for place in range(number):
        one, two = things[place % 10], things[place // 10 % 10]
        documents.append(
            Document(
                source=Source.MEMORY,
                source_id=uuid7(),
                happened_at=moment,
                text=f"buying a {one} number {place} and a {two} for the {things[place // 100 % 10]}",
                facet=Facet.OCCASIONS,
            )
        )
    documents_index(user_id=user.pk, documents=documents, are_new=True)


def test_of_many_the_nearest_are_measured_and_all_tell_what_chance_is(alice: User) -> None:
    fill(alice, 1000)
    clauses = ("my drum is broken", "a tent for the boat")
    some, every = near(alice, *clauses, top_k=60), near(alice, *clauses, top_k=2000)
    assert (some.number, every.number) == (1000, 1000)
    assert len(every.phrases) == 1000
    assert 60 <= len(some.phrases) <= 60 + 130
    assert some.base is not None
    assert every.base is not None
    names = {phrase.passage_id: place for place, phrase in enumerate(some.phrases)}
    for clause in range(2):
        order = np.argsort(-every.base.cosines[clause])[:10]
        got = [every.phrases[place].passage_id in names for place in order]
        assert sum(got) >= 9
        exact = every.base.cosines[clause].tolist()
        mean, deviation = statistics.mean(exact), statistics.pstdev(exact)
        assert every.base.mean[clause] == pytest.approx(mean, abs=1e-3)
        assert every.base.deviation[clause] == pytest.approx(deviation, abs=1e-3)
        assert some.base.mean[clause] == pytest.approx(mean, abs=0.3 * deviation)
        assert some.base.deviation[clause] == pytest.approx(deviation, rel=0.25)
    assert some.base.standing.shape == some.base.cosines.shape


def test_both_spaces_tell_and_one_that_waits_is_predicted(alice: User, ollama: OllamaPeer) -> None:
    fill(alice, 300)
    side_fill(NOMIC)
    whole = near(alice, "buying a drum", top_k=500)
    assert whole.side is not None
    assert whole.side.cosines.shape == (1, 300)
    waits = set(Passage.objects.order_by("id").values_list("id", flat=True)[::2])
    Passage.objects.filter(id__in=waits).update(side_vector=None)
    cache.forget()
    half = near(alice, "buying a drum", top_k=500)
    assert half.side is not None
    exact = dict(
        zip((phrase.passage_id for phrase in whole.phrases), whole.side.cosines[0], strict=True)
    )
    for phrase, cosine in zip(half.phrases, half.side.cosines[0], strict=True):
        if phrase.passage_id in waits:
            assert cosine != 0
        else:
            assert cosine == pytest.approx(exact[phrase.passage_id])
    predicted = [phrase.passage_id in waits for phrase in half.phrases]
    measured = [exact[phrase.passage_id] for phrase in half.phrases]
    pairs = np.array([measured, half.side.cosines[0]])[:, predicted]
    assert np.corrcoef(pairs)[0, 1] > 0.3
    Passage.objects.update(side_vector=None)
    cache.forget()
    assert near(alice, "buying a drum").side is None


def test_a_change_of_validity_costs_no_vector(alice: User, ollama: OllamaPeer) -> None:
    key = with_occasions(alice)
    side_fill(NOMIC)
    asked = len(ollama.texts)
    with_occasions(alice, source_id=key, valid_to=datetime(2999, 1, 1, tzinfo=UTC))
    assert not Passage.objects.filter(side_vector=None).exists()
    assert len(ollama.texts) == asked


def test_plain_search_never_reads_them(alice: User) -> None:
    with_occasions(alice)
    cache.forget()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        found(alice, "shellfish")
    assert not any("occasions" in query["sql"] for query in queries.captured_queries)
    assert (alice.pk, Phrases) not in cache._entries


@pytest.mark.django_db(transaction=True)
def test_the_memory_limit_counts_them(alice: User, bob: User, settings: Any) -> None:
    fill(alice, 300)
    near(alice, "a drum")
    with cache.phrases_open(alice.pk) as opened:
        assert opened is not None
        size = opened[1].bytes
    assert cache.held_bytes() == size
    assert size / 300 < 50 + 24
    settings.IZZY_INDEX_MEMORY_MB = 0
    with_occasions(bob)
    near(bob, "paella")
    assert whose_indexes() == {bob.pk}


def test_vectors_of_another_dimension_find_nothing(alice: User) -> None:
    with_occasions(alice)
    wrong = np.ones((1, 7), dtype=np.float32)
    assert nearest(alice.pk, base=wrong, side=wrong) == occasions.NOTHING
    assert nearest(alice.pk, base=None) == occasions.NOTHING


def test_the_database_knows_the_facets(alice: User) -> None:
    documents_index(user_id=alice.pk, documents=[note(ALLERGY)])
    assert Passage.objects.get().facet == "text"
    with pytest.raises(IntegrityError), transaction.atomic():
        Passage.objects.update(facet="mood")
