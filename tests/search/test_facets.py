"""What a passage says of its document: its text, or another facet of it."""

import pytest
from django.db import IntegrityError, transaction

from apps.accounts.models import User
from apps.core.ids import uuid7
from apps.search.documents import Facet, Source
from apps.search.models import Passage
from apps.search.selectors import alike_pairs, search, similar
from apps.search.services import documents_index

from .conftest import note

ALLERGY, OCCASION = "The user is allergic to shellfish.", "when ordering paella in Spain"


def test_the_facets_of_a_note_are_one_result_and_are_replaced_together(alice: User) -> None:
    key = uuid7()
    both = [
        note(ALLERGY, source_id=key),
        note(OCCASION, source_id=key, facet=Facet.OCCASIONS),
        note("The user likes paella with shellfish."),
    ]
    documents_index(user_id=alice.pk, documents=both)
    assert set(Passage.objects.filter(source_id=key).values_list("facet", flat=True)) == {
        "text",
        "occasions",
    }
    hits = search(alice.pk, "shellfish allergy: ordering paella")
    assert [hit.source_id for hit in hits].count(key) == 1
    assert search(alice.pk, "Spain")[0].source_id == key
    documents_index(user_id=alice.pk, documents=[note("Nothing of it.", source_id=key)])
    assert Passage.objects.filter(source_id=key).count() == 1


def test_two_documents_are_compared_by_what_they_say_alone(alice: User) -> None:
    one, two = uuid7(), uuid7()
    occasion = [note(OCCASION, source_id=key, facet=Facet.OCCASIONS) for key in (one, two)]
    texts = [note(ALLERGY, source_id=one), note("The router is in the hall.", source_id=two)]
    documents_index(user_id=alice.pk, documents=[*texts, *occasion])
    assert alike_pairs(alice.pk, source=Source.MEMORY, among=[one, two], at_least=0.85) == []
    assert max(value for _, value in similar(alice.pk, OCCASION)) < 0.85


def test_the_database_knows_the_facets(alice: User) -> None:
    documents_index(user_id=alice.pk, documents=[note(ALLERGY)])
    assert Passage.objects.get().facet == "text"
    with pytest.raises(IntegrityError), transaction.atomic():
        Passage.objects.update(facet="mood")
