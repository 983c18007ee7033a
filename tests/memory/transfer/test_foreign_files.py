"""Other programs' files through the whole import: what comes of them, and that the second time nothing is new."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from apps.accounts.models import User
from apps.chat.models import Conversation, Message
from apps.core.errors import InvalidInput
from apps.core.jobs import leases
from apps.memory.models import CaptureWindow, Import, Memory, MemoryEdge, MemoryFile
from apps.memory.transfer import records
from apps.memory.transfer.batches import foreign_batches
from apps.memory.transfer.jobs import import_create, import_get
from apps.memory.transfer.records import (
    ForeignConversation,
    ForeignEdge,
    ForeignFile,
    ForeignMessage,
    ForeignNote,
    Read,
    Reader,
    Skipped,
    Upload,
    Wrong,
)
from apps.memory.transfer.running import Run, import_taken, imports_run
from apps.search.documents import Source
from apps.search.selectors import passages_saying
from tests.waiting import eventually

from .conftest import TakeIn, counts, exported
from .reading import Uploads, zipped

pytestmark = pytest.mark.django_db(transaction=True)

GRAPH = [
    {"type": "entity", "name": "Anna", "entityType": "person", "observations": ["plays the cello"]},
    {"type": "entity", "name": "Vienna", "entityType": "city", "observations": ["has trams"]},
    {"type": "relation", "from": "Anna", "to": "Vienna", "relationType": "lives in"},
]
TALK = ForeignConversation(
    place="entry 4",
    key="c1",
    title="About moving",
    messages=[
        ForeignMessage(
            key=f"m{n}", role=("user", "assistant")[n % 2], content=f"My cello case is blue {n}"
        )
        for n in range(700)
    ],
)


def entries(upload: Upload) -> Iterator[Read]:
    yield ForeignEdge(place="entry 1", source="a", target="b", relation="knows")
    yield ForeignNote(place="entry 2", key="a", content="The bicycle is in the cellar", tags=("things",))
    yield ForeignNote(place="entry 3", key="b", content="The key hangs by the door")
    yield ForeignNote(place="entry 3b", key="c", content="the key hangs by the DOOR")
    yield TALK
    yield ForeignFile(place="entry 5", path="/memories/plan.md", content="# Plan")
    yield ForeignNote(place="entry 6", key="d", content="x" * 30_000)
    yield Skipped("entry 7", "It was hidden.")
    yield Wrong("entry 8", "It is no object.")


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    made = Reader(name="sample", title="A sample", matches=lambda upload: False, read=entries)
    monkeypatch.setitem(records._readers, "sample", made)
    return made


def test_everything_that_a_reader_gives_is_taken_and_nothing_twice(
    bob: User, take_in: TakeIn, reader: Reader
) -> None:
    job = take_in(bob, b"whatever", format="sample")
    assert job.state == "done", job.error
    assert counts(job) == {"note": 2, "edge": 1, "conversation": 1, "message": 700, "file": 1}
    assert counts(job, "merged") == {"note": 1}
    assert {row["place"] for row in job.report["wrong"]} == {"entry 6", "entry 8"}
    assert [row["reason"] for row in job.report["skipped"]] == ["It was hidden."]
    before = exported(bob)
    again = take_in(bob, b"whatever", format="sample")
    assert counts(again) == {}
    assert exported(bob) == before


def test_the_links_of_a_folder_are_taken_in_one_go_behind_its_pages(upload: Uploads) -> None:
    pages = {f"Page {n}.md": f"Text {n}, see [[Page {(n + 1) % 30}]]" for n in range(30)}
    packed = upload("vault.zip", zipped(pages))
    first, second = foreign_batches(records.reader_for(packed), packed)

    assert {entry.kind for entry in first.entries} == {"foreign_note"}
    assert {entry.kind for entry in second.entries} == {"foreign_edge"}
    assert second.count == 30


def test_rows_that_share_an_id_and_say_different_things_are_all_taken(
    bob: User, take_in: TakeIn
) -> None:
    table = b"id,content\n1,Likes tea\n1,Has a dog\n1,Likes tea\n2,Rows\n"
    assert counts(take_in(bob, table, name="notes.csv")) == {"note": 3}
    again = take_in(bob, table, name="notes.csv")
    assert (counts(again), counts(again, "skipped")) == ({}, {"note": 4})


def test_others_words_wait_and_what_was_said_is_found_and_read(
    bob: User, take_in: TakeIn, reader: Reader
) -> None:
    take_in(bob, b"whatever", format="sample")
    assert set(Memory.objects.for_user(bob).values_list("status", "trust")) == {("pending", "untrusted")}
    assert MemoryFile.objects.for_user(bob).get().trust == "untrusted"
    assert any(passages_saying(bob.pk, "cello case", source=Source.CONVERSATION))
    talk = Conversation.objects.for_user(bob).get()
    assert (talk.channel, talk.session, talk.title) == ("sample", "c1", "About moving")
    windows = CaptureWindow.objects.for_user(bob)
    assert windows
    assert {piece["trust"] for window in windows for piece in window.segments} == {"untrusted"}


def test_vouched_for_it_counts_as_ones_own(bob: User, take_in: TakeIn, reader: Reader) -> None:
    take_in(bob, b"whatever", format="sample", accept=True)
    assert set(Memory.objects.for_user(bob).values_list("status", "trust")) == {("active", "user")}
    windows = CaptureWindow.objects.for_user(bob)
    assert "user" in {piece["trust"] for window in windows for piece in window.segments}


def test_a_reader_that_fails_at_the_end_has_taken_nothing(
    bob: User, take_in: TakeIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(upload: Upload) -> Iterator[Read]:
        yield ForeignNote(place="entry 1", key="a", content="One")
        raise InvalidInput("The archive is cut off.")

    made = Reader(name="cut", title="Cut", matches=lambda upload: False, read=cut_off)
    monkeypatch.setitem(records._readers, "cut", made)
    job = take_in(bob, b"whatever", format="cut")
    assert (job.state, job.error) == ("failed", "The archive is cut off.")
    assert not Memory.objects.for_user(bob).exists()


def test_a_file_that_takes_long_to_read_stays_with_its_reader(
    bob: User, take_in: TakeIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(upload: Upload) -> Iterator[Read]:
        open_ones = Import.objects.unscoped().filter(state="running")
        open_ones.update(lease_until=timezone.now().replace(year=2020))
        eventually(lambda: not open_ones.filter(Import.lease_free()).exists())
        yield from entries(upload)

    made = Reader(name="slow", title="Slow", matches=lambda upload: False, read=slowly)
    monkeypatch.setitem(records._readers, "slow", made)
    monkeypatch.setattr(leases, "EXTEND_SECONDS", 0.01)
    assert take_in(bob, b"x", format="slow").state == "done"


def test_the_command_says_that_another_process_goes_on(
    bob: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken_away(upload: Upload) -> Iterator[Read]:
        Import.objects.unscoped().update(runner="another")
        yield from entries(upload)

    made = Reader(name="away", title="Away", matches=lambda upload: False, read=taken_away)
    monkeypatch.setitem(records._readers, "away", made)
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(CommandError, match="Another process goes on"):
        call_command("import_memories", str(tmp_path / "file"), user="bob", format="away")


def test_a_memory_graph_is_known_by_itself(bob: User, take_in: TakeIn) -> None:
    data = "\n".join(map(json.dumps, GRAPH)).encode()
    job = take_in(bob, data, name="memory.jsonl")
    assert job.state == "done", job.error
    assert Memory.objects.for_user(bob).count() >= 2
    assert MemoryEdge.objects.for_user(bob).filter(relation__icontains="lives").exists()
    assert counts(take_in(bob, data, name="memory.jsonl")) == {}


def test_a_longer_talk_adds_what_is_new(
    bob: User, take_in: TakeIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def some(count: int) -> Reader:
        def read(upload: Upload) -> Iterator[Read]:
            yield ForeignConversation(place="1", key="c1", messages=TALK.messages[:count])

        return Reader(name="talk", title="Talk", matches=lambda upload: False, read=read)

    for count in (3, 5):
        monkeypatch.setitem(records._readers, "talk", some(count))
        job = take_in(bob, b"whatever", format="talk")
    assert counts(job) == {"message": 2}
    assert counts(job, "merged") == {"conversation": 1}
    assert Message.objects.for_user(bob).count() == 5


@pytest.mark.parametrize("known", [range(3), range(500, -1, -1), range(1, 501)])
def test_an_import_during_which_the_reader_changes_begins_anew_and_leaves_nothing_out(
    bob: User, monkeypatch: pytest.MonkeyPatch, known: range
) -> None:
    def notes(numbers: range) -> Reader:
        def read(upload: Upload) -> Iterator[Read]:
            for place, n in enumerate(numbers):
                yield ForeignNote(place=f"entry {place}", key=f"{n}", content=f"Note {n}")

        return Reader(name="notes", title="Notes", matches=lambda upload: False, read=read)

    monkeypatch.setitem(records._readers, "notes", notes(range(501)))
    job = import_create(user_id=bob.pk, chunks=[b"whatever"], format="notes")
    taken = import_taken(job.pk)
    assert taken is not None
    assert Run(taken).step()  # and then Izzy ends, and comes back as another version
    begun = Memory.objects.for_user(bob).count()
    assert 0 < begun < 501
    Import.objects.for_user(bob).update(runner="gone", lease_until=timezone.now().replace(year=2020))
    monkeypatch.setitem(records._readers, "notes", notes(known))
    imports_run()

    job = import_get(bob.pk, job.pk)
    assert (job.state, job.done, job.total) == ("done", len(known), len(known))
    kept = set(Memory.objects.for_user(bob).values_list("content", flat=True))
    assert kept == {f"Note {n}" for n in [*range(begun), *known]}
    assert Memory.objects.for_user(bob).count() == len(kept)


@pytest.mark.parametrize("title", ["", "New chat"])
def test_a_talk_without_a_title_is_called_by_the_first_words_of_its_owner(
    bob: User, take_in: TakeIn, monkeypatch: pytest.MonkeyPatch, title: str
) -> None:
    said = [
        ForeignMessage(key="m0", role="assistant", content="Welcome!"),
        ForeignMessage(key="m1", role="user", content="Hi, where do herons nest? I saw one."),
    ]

    def read(upload: Upload) -> Iterator[Read]:
        yield ForeignConversation(place="1", key="6f0c-1d2e", title=title, messages=said)

    made = Reader(name="talk", title="Talk", matches=lambda upload: False, read=read)
    monkeypatch.setitem(records._readers, "talk", made)
    take_in(bob, b"whatever", format="talk")
    assert Conversation.objects.for_user(bob).get().title == "Where do herons nest?"
