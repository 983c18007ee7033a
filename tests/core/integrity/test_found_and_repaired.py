"""Each kind of damage, done to rows and files by hand: it is found, and --fix repairs it or leaves it to a person."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from apps.builder.models import DialogueMessage, Follower
from apps.capabilities.catalog.versions import capability_begin
from apps.chat.models import Message, Turn, TurnStatus
from apps.core.ids import uuid7
from apps.memory.models import (
    CaptureWindow,
    MemoryEdge,
    NoteHandle,
    WindowState,
)
from apps.memory.transfer.storage import import_path
from apps.search.models import EmbeddingSpace, IndexOwner, Passage, Tombstone

from .conftest import Look
from .world import World

pytestmark = pytest.mark.django_db
SQLITE = connection.vendor == "sqlite"

NOBODY = uuid7()
Table = list[tuple[str, str, Callable[[World], object]]]
FAR = timedelta(days=400)
OBJECT = {"type": "object", "properties": {}}


def sql(statement: str, *parameters: int | str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def passages(world: World, row: Any) -> Any:
    return Passage.objects.filter(user=world.user, source_id=row.pk)


def edit(row: Any, **values: object) -> None:
    type(row)._base_manager.filter(pk=row.pk).update(**values)


def stray_posting(world: World) -> None:
    if not SQLITE:  # where they go with their passage
        lost_posting(world)
        return
    owner = IndexOwner.objects.get(user=world.user).number
    sql("INSERT INTO search_terms(rowid, terms) VALUES (987654, %s)", f"{owner}xzebra")


def lost_posting(world: World) -> None:
    owner, row = IndexOwner.objects.get(user=world.user).number, passages(world, world.file).first()
    if not SQLITE:
        sql("DELETE FROM search_terms WHERE passage_id = %s", row.pk)
        return
    sql(
        "INSERT INTO search_terms(search_terms, rowid, terms) VALUES ('delete', %s, %s)",
        row.pk,
        f"{owner}x{row.terms.split()[0]}",
    )


def nobodys_postings(world: World) -> None:
    sql("INSERT INTO search_terms(rowid, terms) VALUES (987654, '99999xzebra')")


def another_text(world: World) -> None:
    passages(world, world.note).filter(past=False, facet="text").update(text="I love crabs.")


def lost_file(world: World) -> None:
    (Path(settings.IZZY_DATA_DIR) / world.capability.path / "main.py").unlink()


def changed_file(world: World) -> None:
    path = Path(settings.IZZY_DATA_DIR) / world.capability.path / "main.py"
    path.write_text("def run(args): return 'Ha!'")


def stray_version(world: World) -> None:
    folder = Path(settings.IZZY_DATA_DIR) / world.capability.path
    (folder.parent / "v77").mkdir()
    (folder.parent / "v77" / "main.py").write_text("def run(args): ...")


def stray_capability(world: World) -> None:
    folder = Path(settings.IZZY_DATA_DIR) / "capabilities" / str(NOBODY) / "v1"
    folder.mkdir(parents=True)
    (folder / "main.py").write_text("def run(args): ...")


def stray_upload(world: World) -> None:
    import_path(NOBODY).write_bytes(b"# Garden")


def lost_upload(world: World) -> None:
    import_path(world.upload.pk).unlink()


def orphan_edge(world: World) -> None:
    edge = MemoryEdge.objects.for_user(world.user).get()
    edit(edge, target_id=NOBODY)


def idle_capability(world: World) -> None:
    capability_begin(user_id=world.user.pk, name="weather", description="Weather.", input_schema=OBJECT)


def another_space(world: World) -> None:
    EmbeddingSpace.objects.filter(role="base").update(name="another", dimension=64)


def encoders_leavings(world: World) -> None:
    passages(world, world.note).update(side_vector=b"\0" * 128)


def low_counter(world: World) -> None:
    edit(world.conversation, last_position=1)


def silent_turn(world: World) -> Turn:
    return Turn.objects.create(
        user=world.user,
        conversation=world.conversation,
        position=90,
        state=TurnStatus.RUNNING,
    )


def ended_window(world: World) -> None:
    window = CaptureWindow.objects.for_user(world.user).first()
    assert window
    assert window.segments
    edit(window, state=WindowState.DONE)


def lost_conversation(world: World) -> None:
    window = CaptureWindow.objects.for_user(world.user).first()
    assert window
    edit(window, conversation_id=NOBODY)


REPAIRED: Table = [
    ("search: passages", "a note without passages", lambda w: passages(w, w.note).delete()),
    ("search: passages", "a message without passages", lambda w: _unindexed(w)),
    ("search: passages", "a passage with another text", another_text),
    ("search: passages", "a passage of nothing", lambda w: passages(w, w.file).update(source_id=NOBODY)),
    ("search: passages", "a note that was archived", lambda w: edit(w.note, status="archived")),
    (
        "search: passages",
        "features of another",
        lambda w: passages(w, w.file).update(features=b"\0" * 66),
    ),
    ("search: passages", "a capability not found", lambda w: passages(w, w.capability).delete()),
    ("search: postings", "a stem that is missing", lost_posting),
    ("search: postings", "a stem of no passage", stray_posting),
    ("search: postings", "other stems", lambda w: passages(w, w.file).update(terms="zebra")),
    *([("search: full text", "stems of nobody", nobodys_postings)] if SQLITE else []),
    ("search: vectors", "a short vector", lambda w: passages(w, w.note).update(vector=b"\0" * 12)),
    ("search: vectors", "no number", lambda w: passages(w, w.note).update(vector=_nan())),
    ("search: vectors", "no vector", lambda w: passages(w, w.note).update(vector=None)),
    ("search: vectors", "vectors of no encoder", encoders_leavings),
    ("search: spaces", "another embedder's space", another_space),
    ("search: changes", "a low change number", lambda w: IndexOwner.objects.update(change=0)),
    ("search: changes", "a tombstone of the living", lambda w: _tombstone(w)),
    ("memory: derived", "folded text of another", lambda w: edit(w.note, folded_content="x")),
    ("memory: derived", "a wrong size", lambda w: edit(w.file, size=1)),
    ("memory: derived", "a clock that runs behind", lambda w: edit(w.note, priority_cycle=9)),
    ("memory: windows", "words in what was read", ended_window),
    ("memory: windows", "a time far ahead", lambda w: _windows(w).update(due_at=timezone.now() + FAR)),
    ("memory: windows", "nothing to read", lambda w: _windows(w).update(segments=[])),
    ("memory: windows", "occasions far ahead", lambda w: edit(w.note, **_occasions_ahead())),
    ("memory: uploads", "a file of no import", stray_upload),
    ("memory: uploads", "an import without file", lost_upload),
    ("capabilities: folders", "a version of nobody", stray_version),
    ("capabilities: folders", "a capability of nobody", stray_capability),
    ("capabilities: versions", "another folder", lambda w: edit(w.capability, path="capabilities/x")),
    ("capabilities: versions", "active without version", lambda w: _versionless(w)),
    ("builder: builds", "running, never begun", lambda w: edit(w.build, started_at=None)),
    ("builder: builds", "open and ended", lambda w: edit(w.build, ended_at=timezone.now())),
    (
        "builder: builds",
        "a gap in its talk",
        lambda w: DialogueMessage.objects.unscoped().filter(position=0).delete(),
    ),
    ("builder: builds", "a low counter", lambda w: edit(w.build, messages_count=0)),
    ("builder: builds", "building, with no build", idle_capability),
    (
        "builder: builds",
        "a follower too far ahead",
        lambda w: Follower.objects.unscoped().update(emitted=50),
    ),
    ("chat: counters", "a low counter", low_counter),
    ("chat: turns", "a turn without message", silent_turn),
    ("chat: turns", "an open call of an ended turn", lambda w: edit(w.call, state="running")),
    ("chat: turns", "ended, without a time", lambda w: edit(w.turn, ended_at=None)),
    ("chat: orphans", "a call of no turn", lambda w: edit(w.call, turn_id=NOBODY)),
    (
        "chat: orphans",
        "a follower of nobody",
        lambda w: Follower.objects.unscoped().update(conversation_id=NOBODY),
    ),
    ("chat: orphans", "a handle of nobody", lambda w: _handle(w)),
    ("chat: orphans", "a window of nobody", lost_conversation),
    ("database: foreign keys", "a link to a note that is gone", orphan_edge),
    (
        "database: foreign keys",
        "replaced by a note that is gone",
        lambda w: edit(w.note, superseded_by_id=NOBODY),
    ),
    (
        "leases",
        "a lease long over",
        lambda w: edit(w.conversation, runner="gone-1-ab", lease_until=timezone.now() - FAR),
    ),
    ("leases", "a lease without end", lambda w: edit(w.build, runner="gone-1-ab", lease_until=None)),
    ("leases", "a lease far ahead", lambda w: edit(w.build, lease_until=timezone.now() + FAR)),
]
"""(check, what is wrong, what makes it so)."""


def _unindexed(world: World) -> None:
    message = Message.objects.for_user(world.user).filter(indexed=True).exclude(text="").first()
    assert message
    passages(world, message).delete()


def _nan() -> bytes:
    return np.full(256, np.nan, dtype="<f2").tobytes()


def _tombstone(world: World) -> None:
    row = passages(world, world.note).first()
    Tombstone.objects.create(user=world.user, change=row.change, passage_id=row.pk)


def _windows(world: World) -> Any:
    return CaptureWindow.objects.for_user(world.user)


def _occasions_ahead() -> dict[str, object]:
    return {"occasions_wait": "check", "occasions_due": timezone.now() + FAR}


def _versionless(world: World) -> None:
    edit(world.capability, current=None, path="")


def _handle(world: World) -> None:
    NoteHandle.objects.create(user=world.user, conversation_id=NOBODY, number=1, memory=world.note)


LEFT: Table = [
    ("capabilities: files", "a file that is gone", lost_file),
    ("capabilities: files", "a file that was changed", changed_file),
    ("chat: histories", "blocks that are no JSON", lambda w: _blocks(w, "[{")),
    ("chat: histories", "a call without its result", lambda w: _blocks(w, "[]")),
    ("chat: turns", "two at once", lambda w: _two_at_once(w)),
]


def _blocks(world: World, blocks: str) -> None:
    rows = Message.objects.unscoped().filter(turn=world.turn, kind="tool_results")
    rows.update(blocks=blocks)


def _two_at_once(world: World) -> None:
    edit(world.turn, state=TurnStatus.RUNNING, ended_at=None)
    second = silent_turn(world)
    Message.objects.create(
        user=world.user, conversation=world.conversation, turn=second, position=91, role="user", text="x"
    )
    edit(world.conversation, last_position=91)


def cases(table: Table) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("check", sorted({check for check, _, _ in table}))


def test_nothing_is_wrong_with_what_the_services_have_made(world: World, look: Look) -> None:
    assert look() == []


@cases(REPAIRED)
def test_it_is_found_and_repaired(world: World, look: Look, check: str) -> None:
    for what, damage in [(what, damage) for name, what, damage in REPAIRED if name == check]:
        before = transaction.savepoint()
        damage(world)
        repaired = look(fix=True)
        assert check in {outcome.check for outcome in repaired}, what
        assert [outcome for outcome in repaired if not outcome.fixed] == [], what
        assert look() == [], what
        transaction.savepoint_rollback(before)


@cases(LEFT)
def test_it_is_found_and_left_to_a_person(world: World, look: Look, check: str) -> None:
    for what, damage in [(what, damage) for name, what, damage in LEFT if name == check]:
        before = transaction.savepoint()
        damage(world)
        for outcomes in (look(fix=True), look()):
            assert {outcome.check for outcome in outcomes} == {check}, what
            assert all(outcome.finding.advice and not outcome.fixed for outcome in outcomes), what
        transaction.savepoint_rollback(before)
