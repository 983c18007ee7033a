"""A removed note is gone from rows, vectors, full text and the index in memory at once."""

from apps.accounts.models import User
from apps.search.backends import Stem, backend
from apps.search.documents import Source
from apps.search.index import cache
from apps.search.models import IndexOwner, Passage
from apps.search.selectors import context, search
from apps.search.services import documents_remove

from .conftest import found, note, save, say


def test_nothing_of_a_removed_note_is_left(alice: User) -> None:
    (name,) = save(alice, "I'm allergic to shellfish")
    save(alice, "The car is red")
    owner = IndexOwner.objects.get(user=alice).number
    stems = Stem("allerg"), Stem("shellfish")
    assert all(map(len, backend.postings(owner, stems)))
    assert documents_remove(user_id=alice.pk, source=Source.MEMORY, source_ids=[name]) == 1
    assert not Passage.objects.filter(source_id=name).exists()
    assert not any(map(len, backend.postings(owner, stems)))
    assert found(alice, "shellfish allergy") == ["The car is red"]
    assert "shellfish" not in context(alice.pk, "shellfish allergy").text


def test_all_parts_of_a_long_note_go(alice: User) -> None:
    (name,) = save(alice, "A sentence about geese and ponds. " * 400)
    assert Passage.objects.filter(source_id=name).count() > 2
    owner = IndexOwner.objects.get(user=alice).number
    stems = [Stem("sentenc"), Stem("gees"), Stem("pond")]
    assert all(map(len, backend.postings(owner, stems)))
    documents_remove(user_id=alice.pk, source=Source.MEMORY, source_ids=[name])
    assert Passage.objects.count() == 0
    assert not any(map(len, backend.postings(owner, stems)))


def test_removing_the_note_leaves_what_was_said(alice: User) -> None:
    (name,) = save(alice, "I'm allergic to shellfish")
    say(alice, ("user", "Remember that I'm allergic to shellfish"))
    documents_remove(user_id=alice.pk, source=Source.MEMORY, source_ids=[name])
    hits = search(alice.pk, "shellfish")
    assert [hit.source for hit in hits] == [Source.CONVERSATION]


def test_removing_what_is_not_there_does_nothing(alice: User) -> None:
    save(alice, "The car is red")
    missing = note("x").source_id
    assert documents_remove(user_id=alice.pk, source=Source.MEMORY, source_ids=[missing]) == 0
    assert documents_remove(user_id=alice.pk, source=Source.MEMORY, source_ids=[]) == 0
    assert found(alice, "car") == ["The car is red"]


def test_a_document_of_another_kind_with_the_same_id_stays(alice: User) -> None:
    (name,) = save(alice, "A note about geese")
    save(alice, "A file about geese", source=Source.FILE, source_id=name)
    documents_remove(user_id=alice.pk, source=Source.MEMORY, source_ids=[name])
    assert found(alice, "geese") == ["A file about geese"]


def test_a_removed_message_no_longer_supports_its_neighbours(alice: User) -> None:
    say(alice, ("Ben", "Which colour shall the kitchen get?"), ("Ann", "Green."), name="k")
    question = Passage.objects.get(external_id="k0")
    found(alice, "kitchen")
    documents_remove(user_id=alice.pk, source=Source.CONVERSATION, source_ids=[question.source_id])
    hit = search(alice.pk, "kitchen colour")[0]
    assert hit.text == "Green."
    assert hit.parts.get("keywords", 0.0) == 0.0


def test_an_index_of_mostly_removed_notes_is_loaded_anew(alice: User) -> None:
    names = save(alice, *(f"note number {number}" for number in range(1300)))
    found(alice, "note")
    documents_remove(user_id=alice.pk, source=Source.MEMORY, source_ids=names[:1200])
    assert len(found(alice, "note", top_k=500)) == 100
    save(alice, "one more note")
    assert len(found(alice, "note", top_k=500)) == 101
    with cache.index_open(alice.pk) as opened:
        assert opened is not None
        assert opened[1].size < 200
