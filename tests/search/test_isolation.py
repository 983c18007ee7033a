"""Two users: nothing of one reaches the other's results, ranking or memory."""

from apps.accounts.models import User
from apps.search.documents import Scope, Source
from apps.search.index import cache
from apps.search.models import IndexOwner, Passage, Tombstone
from apps.search.selectors import context, search, similar
from apps.search.services import documents_remove, user_forget

from .conftest import found, save, say


def test_a_search_finds_ones_own_notes_alone(alice: User, bob: User) -> None:
    save(alice, "The safe's code is 4711")
    save(bob, "Bob's safe is in the cellar")
    assert found(bob, "What is the safe's code 4711?") == ["Bob's safe is in the cellar"]
    assert found(alice, "Where is the safe in the cellar?") == ["The safe's code is 4711"]


def test_someone_without_notes_finds_nothing(alice: User, charlie: User) -> None:
    save(alice, "The safe's code is 4711")
    assert search(charlie.pk, "safe") == []
    assert context(charlie.pk, "safe").text == ""
    assert similar(charlie.pk, "The safe's code is 4711") == []


def test_anothers_ids_in_the_scope_give_nothing(alice: User, bob: User) -> None:
    (name,) = save(alice, "The safe's code is 4711")
    conversation = say(alice, ("user", "The safe's code is 4711"))
    save(bob, "My own note about a safe")
    assert search(bob.pk, "safe", scope=Scope(only_ids=[name])) == []
    assert search(bob.pk, "safe", scope=Scope(conversation_id=conversation)) == []


def test_one_cannot_remove_or_replace_anothers_note(alice: User, bob: User) -> None:
    (name,) = save(alice, "The safe's code is 4711")
    assert documents_remove(user_id=bob.pk, source=Source.MEMORY, source_ids=[name]) == 0
    save(bob, "Taken over", source_id=name)
    assert found(alice, "safe") == ["The safe's code is 4711"]
    assert found(bob, "safe") == ["Taken over"]


def test_others_notes_change_neither_order_nor_score(alice: User, bob: User) -> None:
    save(alice, "The red car is fast", "The blue car is slow", "A fast train")
    before = [(hit.text, hit.score) for hit in search(alice.pk, "fast car")]
    save(bob, *(f"fast car number {number}" for number in range(200)))
    cache.forget()
    assert [(hit.text, hit.score) for hit in search(alice.pk, "fast car")] == before


def test_the_vector_of_a_text_is_the_same_whoever_saved_it(alice: User, bob: User) -> None:
    save(alice, *(f"cats and more cats {number}" for number in range(50)), "The cat sleeps")
    save(bob, "The cat sleeps")
    vectors = {
        bytes(row or b"")
        for row in Passage.objects.filter(text="The cat sleeps").values_list("vector", flat=True)
    }
    assert len(vectors) == 1


def test_forgetting_a_user_leaves_no_row_behind(alice: User, bob: User) -> None:
    save(alice, "The safe's code is 4711")
    (gone,) = save(alice, "An old code")
    documents_remove(user_id=alice.pk, source=Source.MEMORY, source_ids=[gone])
    save(bob, "Bob's safe")
    assert user_forget(user_id=alice.pk) == 1
    assert not Passage.objects.filter(user=alice).exists()
    assert not Tombstone.objects.filter(user=alice).exists()
    assert not IndexOwner.objects.filter(user=alice).exists()
    assert found(alice, "safe") == []
    assert found(bob, "safe") == ["Bob's safe"]


def test_someone_who_was_forgotten_can_begin_anew(alice: User) -> None:
    save(alice, "The safe's code is 4711")
    found(alice, "safe")
    user_forget(user_id=alice.pk)
    save(alice, "A new beginning")
    assert found(alice, "safe") == ["A new beginning"]
