"""Taken out, brought into another account and taken out again: the same file."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.services import user_delete
from apps.chat.attachments.files import file_read
from apps.chat.attachments.selectors import ids_in
from apps.chat.conversations.selectors import attached_turn
from apps.chat.models import Attachment, Conversation, Folder, Message, Turn
from apps.memory.models import Memory, MemoryEdge
from apps.memory.notes.creation import memory_create
from apps.memory.notes.joining import edge_create, memory_merge, memory_supersede
from apps.memory.notes.undoing import memory_restore
from apps.memory.transfer.exporting import export_markdown
from tests.conftest import make_user

from .conftest import TakeIn, counts, exported

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_export_that_goes_into_an_empty_instance_comes_out_the_same(
    full: User, admin: User, take_in: TakeIn
) -> None:
    kept = Folder.objects.create(user=full, name="Kept", opened=False)
    Conversation.objects.for_user(full).update(archived=True, folder=kept)
    data = exported(full)
    assert b'"pinned":true,"archived":true' in data
    user_delete(user=full)
    other = make_user("other")
    job = take_in(other, data, own=True)
    assert (job.state, job.error) == ("done", "")
    assert (counts(job, "wrong"), counts(job, "skipped")) == ({}, {}), job.report
    assert exported(other).decode().splitlines() == data.decode().splitlines()


def test_a_turn_that_was_under_way_comes_in_as_one_that_has_ended(full: User, take_in: TakeIn) -> None:
    Turn.objects.for_user(full).update(state="waiting", ended_at=None)
    other = make_user("other")
    take_in(other, exported(full), own=True)
    turn = Turn.objects.for_user(other).get()
    assert (turn.state, turn.ended_at) == ("interrupted", turn.created_at)


def test_notes_that_were_merged_or_replaced_come_out_the_same(alice: User, take_in: TakeIn) -> None:
    tea, cups, walks = (
        memory_create(user_id=alice.pk, content=word) for word in ("Tea", "Cups", "Walks")
    )
    memory_merge(user_id=alice.pk, into_id=tea.pk, from_ids=[cups.pk])
    memory_supersede(user_id=alice.pk, memory_id=walks.pk, content="Runs")
    data = exported(alice)
    user_delete(user=alice)
    other = make_user("other")
    take_in(other, data, own=True)
    assert exported(other).decode().splitlines() == data.decode().splitlines()


def test_what_a_plan_stood_in_for_comes_back_in_another_account_too(
    alice: User, take_in: TakeIn
) -> None:
    later, sooner = (timezone.now() + timedelta(days=days) for days in (10, 5))
    old = memory_create(user_id=alice.pk, content="Lives in Porto.")
    new = memory_supersede(
        user_id=alice.pk, memory_id=old.pk, content="Lives in Lyon.", valid_from=later
    )
    memory_supersede(user_id=alice.pk, memory_id=new.pk, content="Lives in Oslo.", valid_from=sooner)
    data = exported(alice)
    user_delete(user=alice)
    other = make_user("other")
    take_in(other, data, own=True)
    assert exported(other).decode().splitlines() == data.decode().splitlines()
    kept = {note.content: note for note in Memory.objects.for_user(other)}
    memory_restore(user_id=other.pk, memory_id=kept["Lives in Lyon."].pk)
    active = Memory.objects.for_user(other).filter(status="active")
    assert set(active.values_list("content", flat=True)) == {"Lives in Porto.", "Lives in Lyon."}
    assert active.get(content="Lives in Porto.").superseded_by_id == kept["Lives in Lyon."].pk


def test_notes_of_times_long_ago_and_far_ahead_go_along(alice: User, take_in: TakeIn) -> None:
    born, ever = datetime(1815, 12, 10, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
    memory_create(user_id=alice.pk, content="Ada was born.", valid_from=born, valid_to=ever)
    other = make_user("other")
    job = take_in(other, exported(alice), own=True)
    assert counts(job, "wrong") == {}, job.report
    note = Memory.objects.for_user(other).get(content="Ada was born.")
    assert (note.valid_from, note.valid_to) == (born, ever)


def test_a_file_beside_a_message_goes_along_under_the_id_that_it_gets(
    full: User, take_in: TakeIn
) -> None:
    """It belongs to somebody else here already, so that bob's is another."""
    hers = Attachment.objects.for_user(full).get()
    said = Message.objects.for_user(full).get()
    blocks = json.dumps([{"id": str(hers.pk), "type": "attachment"}], separators=(",", ":"))
    Message.objects.for_user(full).filter(pk=said.pk).update(blocks=blocks)
    Turn.objects.for_user(full).update(state="done", attached=True)
    bob = make_user("bob")
    job = take_in(bob, exported(full), own=True)
    assert counts(job, "wrong") == {}, job.report
    his = Attachment.objects.for_user(bob).get()
    assert his.pk != hers.pk
    assert (his.name, his.text, file_read(his)) == (hers.name, hers.text, file_read(hers))
    assert ids_in(Message.objects.for_user(bob).get().blocks) == [his.pk]
    assert attached_turn(bob.pk, his.conversation_id)  # type: ignore[arg-type]
    again = take_in(bob, exported(full), own=True)
    assert counts(again, "skipped")["attachment"] == 1
    others = take_in(make_user("charlie"), exported(full))
    assert counts(others, "skipped")["attachment"] == 1


def test_notes_as_markdown_come_back_with_their_words_tags_and_links(
    alice: User, take_in: TakeIn
) -> None:
    tea, cups = (
        memory_create(user_id=alice.pk, content=words, tags=["kitchen"], occasions=[])
        for words in ("Tea at four", "The cups are in the left cupboard")
    )
    edge_create(user_id=alice.pk, source_id=tea.pk, target_id=cups.pk, relation="needs")
    bob = make_user("bob")
    job = take_in(bob, b"".join(export_markdown(alice.pk)))
    assert job.reader == "markdown"
    notes = Memory.objects.for_user(bob)
    assert sorted(notes.values_list("content", flat=True)) == [cups.content, tea.content][::-1]
    assert [note.tags for note in notes] == [["kitchen"], ["kitchen"]]
    edge = MemoryEdge.objects.for_user(bob).get()
    assert (edge.source.content, edge.relation) == (tea.content, "needs")
