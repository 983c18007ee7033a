"""Tags and category are words by which a note is found."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.memory.models import Memory
from apps.memory.notes.changes import memories_erase, memory_archive, memory_delete, memory_update
from apps.memory.notes.joining import memory_merge
from apps.memory.notes.undoing import memory_restore, memory_tag, memory_undo
from apps.memory.similarity import NOTES
from apps.search.backends import Stem, backend
from apps.search.documents import Document, Label, Scope, Source
from apps.search.models import IndexOwner, Passage
from apps.search.selectors import search
from apps.search.services import documents_index
from tests.memory.calling import Api
from tests.memory.conftest import MakeNote
from tests.memory.test_api_search import CONTEXT, ask, results
from tests.peers.ollama_server import OllamaPeer
from tests.search.conftest import ollama as ollama
from tests.tools import Tools

TEXT = "The user saw one on Rottnest in the evening."
QUESTION = "quokka"


@pytest.fixture
def tagged(alice: User, note: MakeNote) -> Memory:
    """A note tagged quokka, of the category animals, among others that are not about it."""
    for number in range(5):
        note(alice, f"The router number {number} stands in the hall closet.")
    return note(alice, TEXT, tags=["Quokka", "island trip"], category="animals")


def best(user: User, query: str = QUESTION) -> object:
    """The id of the note that has a word of the query, if any has."""
    hits = search(user.pk, query, scope=NOTES)
    return hits[0].source_id if hits and hits[0].labels else None


@pytest.mark.django_db(transaction=True)
async def test_the_assistant_finds_a_note_by_its_tag(alice: User, tagged: Memory) -> None:
    hits = await Tools(user_id=alice.pk).call("memory_search", query=QUESTION)
    assert (hits[0]["note_id"], hits[0]["text"]) == (tagged.note_id, TEXT)
    assert "Quokka" in hits[0]["reason"]
    assert not any("agged" in hit["reason"] for hit in hits[1:])


@pytest.mark.django_db(transaction=True)
async def test_deep_memory_finds_a_note_by_its_category(alice: User, tagged: Memory) -> None:
    result = await Tools(user_id=alice.pk).call("deep_memory", query="animals")
    assert result["memories"][0]["text"] == TEXT


def test_programs_find_a_note_by_its_tag_and_hear_which(
    alice: User, bob: User, tagged: Memory, api: Api
) -> None:
    client = api(alice, "read")
    by_tag = next(hit for hit in results(client, "animal quokka trips") if hit["id"] == str(tagged.pk))
    assert by_tag["text"] == TEXT
    assert {"tag:Quokka", "tag:island trip", "category:animals"} <= set(by_tag["parts"])
    assert by_tag["reason"] == "Tagged ‘Quokka’ and ‘island trip’ and in the category ‘animals’."
    context = ask(client, CONTEXT, {"query": QUESTION, "budget_tokens": 40}).json()
    assert TEXT in context["text"]
    assert "Quokka" in context["items"][0]["reason"]
    assert "Quokka" not in context["text"]
    assert results(api(bob, "read"), QUESTION) == []


def test_the_memories_page_finds_a_note_by_its_tag(alice: User, tagged: Memory, client: Client) -> None:
    client.force_login(alice)
    page = client.get("/memory/browse/", {"q": QUESTION}).content.decode()
    assert "on Rottnest in the evening" in page
    assert "The router number" not in page
    assert "Tagged ‘Quokka’" in page


def test_a_beginning_of_a_tag_finds_it_and_part_of_another_word_does_not(
    alice: User, tagged: Memory
) -> None:
    assert best(alice, "quok") == tagged.pk
    assert best(alice, "trips to islands") == tagged.pk
    assert best(alice, "okka") is None


def test_every_change_of_tags_reaches_search(alice: User, note: MakeNote, tagged: Memory) -> None:
    key = tagged.pk
    memory_update(user_id=alice.pk, memory_id=key, tags=["wallaby"])
    assert (best(alice), best(alice, "wallaby")) == (None, key)
    memory_undo(user_id=alice.pk, memory_id=key, version=1)
    assert (best(alice), best(alice, "wallaby")) == (key, None)
    memory_tag(user_id=alice.pk, memory_id=key, tag="wombat")
    memory_update(user_id=alice.pk, memory_id=key, category="marsupials")
    assert (best(alice, "wombat"), best(alice, "marsupial"), best(alice, "animals")) == (key, key, None)
    memory_archive(user_id=alice.pk, memory_id=key)
    assert best(alice) is None
    memory_restore(user_id=alice.pk, memory_id=key)
    assert best(alice) == key
    other = note(alice, "The user likes its smile.", tags=["selfie"])
    memory_merge(user_id=alice.pk, into_id=other.pk, from_ids=[key])
    assert (best(alice), best(alice, "selfie")) == (other.pk, other.pk)
    memory_delete(user_id=alice.pk, memory_id=other.pk)
    assert best(alice) is None
    memory_restore(user_id=alice.pk, memory_id=other.pk)
    assert best(alice) == other.pk


def test_a_search_as_of_another_time_knows_the_tags_of_that_time(alice: User, tagged: Memory) -> None:
    before = timezone.now()
    memory_update(user_id=alice.pk, memory_id=tagged.pk, content="The user saw a bird.", tags=["emu"])
    hit = search(alice.pk, QUESTION, scope=Scope(as_of=before))[0]
    assert (hit.text, hit.labels) == (TEXT, (Label("tag", "Quokka"),))
    assert best(alice) is None


def test_nothing_of_a_tag_is_left_when_its_note_is_gone(alice: User, tagged: Memory) -> None:
    owner = IndexOwner.objects.get(user=alice).number
    assert len(backend.postings(owner, [Stem("quokka")])[0]) == 1
    memories_erase(user_id=alice.pk, memory_ids=[tagged.pk])
    assert not len(backend.postings(owner, [Stem("quokka")])[0])
    assert not Passage.objects.filter(labels__icontains="quokka").exists()


def test_a_tag_has_no_part_in_the_vector_or_the_length(alice: User, note: MakeNote) -> None:
    rows = Passage.objects.order_by("id")
    note(alice, TEXT), note(alice, TEXT, tags=["quokka"], category="animals")
    plain, labelled = rows.values_list("vector", "features", "terms")
    assert plain[0] == labelled[0]
    dtype_length = 62
    assert plain[1][dtype_length - 2 : dtype_length] == labelled[1][dtype_length - 2 : dtype_length]
    assert set(labelled[2].split()) - set(plain[2].split()) == {"quokka", "anim"}


def test_a_change_of_tags_costs_no_vector_of_a_remote_embedder(
    alice: User, note: MakeNote, ollama: OllamaPeer
) -> None:
    made = note(alice, TEXT)
    call_command("reindex", stdout=StringIO())
    vector = Passage.objects.get().side_vector
    assert vector
    memory_update(user_id=alice.pk, memory_id=made.pk, tags=["quokka"])
    assert Passage.objects.get().side_vector == vector
    memory_update(user_id=alice.pk, memory_id=made.pk, content="Another text.")
    assert Passage.objects.get(past=False).side_vector is None


def test_reindex_adds_tags_to_what_an_older_index_holds(alice: User, bob: User, note: MakeNote) -> None:
    mine, his = note(alice, TEXT, tags=["quokka"]), note(bob, TEXT, tags=["quokka"])
    _forget_labels()
    assert (best(alice), best(bob)) == (None, None)
    out = StringIO()
    call_command("reindex", stdout=out)
    assert "2 notes are now found by their tags" in out.getvalue()
    assert (best(alice), best(bob)) == (mine.pk, his.pk)
    out = StringIO()
    call_command("reindex", stdout=out)
    assert "tags" not in out.getvalue()


def _forget_labels() -> None:
    """Make the index what it was before it knew of labels."""
    for passage in Passage.objects.all():
        bare = Document(
            source=Source.MEMORY,
            source_id=passage.source_id,
            text=passage.text,
            happened_at=passage.happened_at,
            valid_from=passage.valid_from,
        )
        documents_index(user_id=passage.user_id, documents=[bare])
