"""Files that are brought in: whole, broken, twice, somebody else's, cut off by a kill."""

import errno
import json
import os
from datetime import timedelta
from io import BytesIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.storage import FileSystemStorage
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.models import User
from apps.accounts.services import user_delete
from apps.capabilities.models import Capability, CapabilityVersion
from apps.chat.conversations.ingest import messages_ingest
from apps.chat.models import Attachment, Conversation, Message
from apps.core.errors import InvalidInput, Unavailable
from apps.memory.files.services import file_delete, file_write
from apps.memory.models import Import, Memory, MemoryEdge, MemoryFile
from apps.memory.notes.changes import memory_delete
from apps.memory.notes.creation import memory_create
from apps.memory.similarity import NOTES
from apps.memory.transfer import batches
from apps.memory.transfer.jobs import import_cancel, import_create, import_get
from apps.memory.transfer.lines import lines
from apps.memory.transfer.running import Run, import_taken, imports_run
from apps.memory.transfer.storage import import_path
from apps.search.selectors import context
from tests.memory.conftest import found_texts
from tests.site.belongings import rows_of

from .conftest import TakeIn, as_file, counts, exported, rows_in

pytestmark = pytest.mark.django_db(transaction=True)

MANIFEST = {"type": "manifest", "format": "izzy", "version": 1}
END = {"type": "end"}
VERSION = b'"description":"Greets.","files":{},"created_at":"2026-01-01T00:00:00Z"}'
CAPABILITY = (
    b'"description":"Greets.","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}'
)


def record(content: str, **more: Any) -> dict[str, Any]:
    return {"type": "note", "id": str(uuid4()), "content": content, **more}


def contents(user: User) -> set[str]:
    return set(Memory.objects.for_user(user).values_list("content", flat=True))


def test_the_same_file_twice_brings_nothing_new(full: User, bob: User, take_in: TakeIn) -> None:
    data = exported(full)
    take_in(bob, data, own=True)
    before = exported(bob)
    job = take_in(bob, data, own=True)
    assert counts(job) == {}
    assert exported(bob) == before


def test_an_id_of_somebody_else_gets_a_new_one_everywhere(
    full: User, bob: User, take_in: TakeIn
) -> None:
    data = exported(full)
    hers = exported(full)
    take_in(bob, data, own=True)
    assert exported(full) == hers
    taken = rows_in(exported(bob))
    ids = {row["id"] for row in rows_in(data) if "id" in row}
    assert not ids & {row["id"] for row in taken if "id" in row}
    assert len(taken) == len(rows_in(data))
    notes = {row["id"] for row in taken if row["type"] == "note"}
    talks = {row["id"] for row in taken if row["type"] == "conversation"}
    edges = [row for row in taken if row["type"] == "edge"]
    assert edges
    assert {end for edge in edges for end in (edge["source"], edge["target"])} <= notes
    assert {row["note"] for row in taken if row["type"] == "revision"} <= notes
    assert {row["conversation"] for row in taken if row["type"] in {"message", "turn"}} <= talks


def test_what_is_not_ticked_as_ones_own_waits_for_review(full: User, bob: User, take_in: TakeIn) -> None:
    job = take_in(bob, exported(full))
    notes = Memory.objects.for_user(bob)
    assert counts(job)["note"] == notes.count() > 0
    assert set(notes.values_list("status", "trust", "origin")) == {("pending", "untrusted", "import")}
    assert {row.state["trust"] for note in notes for row in note.revisions.all()} == {"untrusted"}
    assert not found_texts(bob, "allergic to prawns")


def test_text_that_is_vouched_for_is_active_at_once(bob: User, take_in: TakeIn) -> None:
    take_in(bob, as_file([MANIFEST, record("The cellar key hangs behind the door."), END]), accept=True)
    note = Memory.objects.for_user(bob).get()
    assert (note.status, note.trust, note.origin) == ("active", "user", "import")
    assert found_texts(bob, "cellar key")


def test_capabilities_come_in_disabled_and_unapproved(full: User, bob: User, take_in: TakeIn) -> None:
    job = take_in(bob, exported(full), own=True)
    assert counts(job)["capability_version"] == 2
    assert set(Capability.objects.for_user(bob).values_list("status", flat=True)) == {"disabled"}
    versions = CapabilityVersion.objects.for_user(bob)
    assert {(row.is_approved, row.untrusted) for row in versions} == {(False, True)}


def test_files_beyond_the_quota_are_refused_with_a_sentence(
    full: User, bob: User, take_in: TakeIn, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_in(exported(full))
    (place,) = (at for at, row in enumerate(rows) if row["type"] == "attachment")
    rows[place:place] = [{**rows[place], "id": str(uuid4())} for _ in range(3)]
    settings.IZZY_ATTACHMENT_QUOTA = Attachment.objects.for_user(full).get().size * 5 // 2
    monkeypatch.setattr(batches, "RECORDS", 1)
    for dry_run in (True, False):
        job = take_in(bob, as_file(rows), own=True, dry_run=dry_run)
        assert (counts(job)["attachment"], counts(job, "wrong")) == (2, {"attachment": 2})
        assert "would take more than the" in job.report["wrong"][0]["message"]
    assert Attachment.objects.for_user(bob).count() == 2


@pytest.mark.parametrize(
    ("paths", "says"),
    [
        (["/memories/a", "/memories/a/b/c"], "/memories/a is a file"),
        (["/memories/a/b/c", "/memories/a"], "/memories/a is a directory"),
    ],
)
def test_no_path_of_a_file_that_comes_is_a_directory_too(
    bob: User, take_in: TakeIn, paths: list[str], says: str
) -> None:
    rows = [{"type": "file", "id": str(uuid4()), "path": path, "content": path} for path in paths]
    job = take_in(bob, as_file([MANIFEST, *rows, END]))
    (left_out,) = job.report["skipped"]
    assert says in left_out["reason"]
    assert MemoryFile.objects.for_user(bob).get().path == paths[0]


def test_others_conversations_bring_what_was_said_alone(full: User, bob: User, take_in: TakeIn) -> None:
    take_in(bob, exported(full))
    talk = Conversation.objects.for_user(bob).get()
    assert talk.channel == "izzy"
    message = Message.objects.for_user(bob).get()
    assert (message.turn_id, json.loads(message.blocks)) == (
        None,
        [{"type": "text", "text": message.text}],
    )


def test_a_broken_line_is_reported_with_its_number_and_the_rest_is_taken(
    bob: User, take_in: TakeIn
) -> None:
    lines = as_file([MANIFEST, record("One"), record("Two"), record("Three"), END]).splitlines(True)
    lines[2] = lines[2][:20] + b"\n"
    job = take_in(bob, b"".join(lines))
    assert job.state == "done"
    assert contents(bob) == {"One", "Three"}
    (wrong,) = job.report["wrong"]
    assert wrong["line"] == 3
    assert "no JSON" in wrong["message"]


def test_what_stands_behind_a_broken_line_is_taken_with_what_it_belongs_to(
    full: User, bob: User, take_in: TakeIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "RECORDS", 1)
    data = exported(full)
    whole = take_in(bob, data, own=True, dry_run=True)
    broken = b"".join(line + b'{"type":\n' for line in data.splitlines(True))
    job = take_in(bob, broken, own=True)
    assert counts(job) == counts(whole)
    assert counts(job)["revision"] > 0
    assert job.report["skipped"] == []


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"type":"note","content":"\xff\xfe"}', "UTF-8"),
        (b'{"type":"note","id":"%s","content":"a\\u0000b"}', "NUL"),
        (b'{"type":"note","id":"%s","content":"a\\ud800b"}', "lone surrogates"),
        (b'{"type":"note","id":"none","content":"a"}', "UUID"),
        (b'{"type":"note","id":"%s","content":""}', "empty"),
        (b'{"type":"note","id":"%s","content":"a","importance":9}', "importance"),
        (b'{"type":"note","id":"%s","content":"a","valid_from":"9999-01-01"}', "range"),
        (b'{"type":"note","id":"%s","content":7}', "content"),
        (
            b'{"type":"capability_version","id":"%s","capability":"%s","number":1000001,' + VERSION,
            "number",
        ),
        (b'{"type":"capability","id":"%s","name":"a_tool","runs":1000000001,' + CAPABILITY, "runs"),
        (b'["note"]', "no record"),
        (b"[" * 5000, "deeply"),
        (b'{"type":"note","priority":NaN}', "NaN"),
    ],
)
def test_a_wrong_record_gets_a_sentence(line: bytes, says: str, bob: User, take_in: TakeIn) -> None:
    line = line.replace(b"%s", str(uuid4()).encode())
    data = as_file([MANIFEST, record("One")]) + line + b"\n" + as_file([record("Two"), END])
    job = take_in(bob, data, format="izzy")
    assert contents(bob) == {"One", "Two"}
    (wrong,) = job.report["wrong"]
    assert (wrong["line"], says in wrong["message"]) == (3, True), wrong


def test_a_line_has_room_for_the_largest_file_that_may_be_attached(settings: Settings) -> None:
    settings.IZZY_ATTACHMENT_LIMIT = 36_000_000
    line = b'{"type":"attachment","content":"%s"}\n'
    (largest,) = lines(BytesIO(line % (b"A" * 48_000_000)))
    assert not largest.problem
    (larger,) = lines(BytesIO(line % (b"A" * 49_000_000)))
    assert "more than 48,100,000 bytes" in larger.problem


def test_half_a_file_says_so(full: User, bob: User, take_in: TakeIn) -> None:
    data = exported(full)
    job = take_in(bob, data[: len(data) // 2], own=True)
    assert job.state == "done"
    assert "cut off" in job.report["wrong"][-1]["message"]
    whole_lines = data[: data.rindex(b"\n", 0, len(data) // 2) + 1]
    job = take_in(bob, whole_lines, own=True)
    assert "ends early" in job.report["notes"][0]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ("{}".encode("utf-16"), "wrong_encoding"),
        (b"PK\x03\x04nothing", "wrong_encoding"),
        (b"", "empty_file"),
    ],
)
def test_what_is_no_such_file_is_refused_at_once(data: bytes, code: str, bob: User) -> None:
    with pytest.raises(InvalidInput) as refused:
        import_create(user_id=bob.pk, chunks=[data], format="izzy")
    assert refused.value.code == code
    assert not Import.objects.for_user(bob).exists()


def test_a_newer_format_is_not_taken(bob: User, take_in: TakeIn) -> None:
    job = take_in(bob, as_file([{**MANIFEST, "version": 2}, record("One"), END]))
    assert (job.state, "newer" in job.error) == ("failed", True)
    assert not contents(bob)
    assert not import_path(job.pk).exists()


def test_a_dry_run_says_the_same_and_changes_nothing(full: User, bob: User, take_in: TakeIn) -> None:
    data = exported(full)
    before = {name: rows for name, rows in rows_of(bob).items() if "import" not in name}
    tried = take_in(bob, data, own=True, dry_run=True)
    assert {name: rows for name, rows in rows_of(bob).items() if "import" not in name} == before
    done = take_in(bob, data, own=True)
    assert counts(tried) == counts(done)


def test_an_import_that_was_killed_goes_on_where_it_was(bob: User) -> None:
    rows = [MANIFEST, *(record(f"Note {number}") for number in range(700)), END]
    job = import_create(user_id=bob.pk, chunks=[as_file(rows)], own=True)
    taken = import_taken(job.pk)
    assert taken is not None
    assert Run(taken).step()  # and then the process is gone, with its lease
    first = Memory.objects.for_user(bob).count()
    assert 0 < first < 700
    Import.objects.for_user(bob).update(runner="gone", lease_until=timezone.now().replace(year=2020))
    imports_run()
    job = import_get(bob.pk, job.pk)
    assert (job.state, counts(job), counts(job, "skipped")) == ("done", {"note": 700}, {})
    assert Memory.objects.for_user(bob).count() == 700


class StoreAway(Unavailable, OSError):
    """As a store that all hosts share says that it does not answer."""


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), StoreAway("Try again.")]
)
def test_a_file_that_has_no_room_for_now_holds_the_import_up_and_loses_nothing(
    full: User, bob: User, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def save(self: FileSystemStorage, name: str, content: Any) -> str:
        raise error

    data = exported(full)
    job = import_create(user_id=bob.pk, chunks=[data], own=True)
    with monkeypatch.context() as patched:
        patched.setattr(FileSystemStorage, "_save", save)
        with pytest.raises(OSError, match=str(error.args[-1])):
            imports_run()
    assert import_get(bob.pk, job.pk).state == "running"
    Import.objects.for_user(bob).update(runner="gone", lease_until=timezone.now().replace(year=2020))
    imports_run()
    job = import_get(bob.pk, job.pk)
    assert (job.state, job.report["wrong"]) == ("done", [])
    assert counts(job)["attachment"] == len(rows_in(data, "attachment")) > 0
    assert counts(job)["capability_version"] == len(rows_in(data, "capability_version")) > 0


def test_one_that_cannot_be_read_for_now_keeps_nobody_else_waiting(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Run._opened
    jobs = [
        import_create(user_id=user.pk, chunks=[as_file([MANIFEST, record("Mine"), END])], own=True)
        for user in (alice, alice, bob)
    ]

    def closed(run: Run) -> Any:
        if run.job.pk == jobs[0].pk:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(run)

    def states() -> list[str]:
        return [Import.objects.unscoped().get(pk=job.pk).state for job in jobs]

    monkeypatch.setattr(Run, "_opened", closed)
    for _ in range(2):
        with pytest.raises(PermissionError):
            imports_run()
        assert states() == ["running", "waiting", "done"]
        Import.objects.unscoped().filter(pk=jobs[0].pk).update(lease_until=None)
    monkeypatch.undo()
    imports_run()
    assert states() == ["done"] * 3


def test_an_import_can_be_called_off(bob: User) -> None:
    rows = [MANIFEST, *(record(f"Note {number}") for number in range(700)), END]
    job = import_create(user_id=bob.pk, chunks=[as_file(rows)])
    taken = import_taken(job.pk)
    assert taken is not None
    run = Run(taken)
    assert run.step()
    import_cancel(user_id=bob.pk, import_id=job.pk)
    assert not run.step()
    job = import_get(bob.pk, job.pk)
    assert job.state == "cancelled"
    assert not import_path(job.pk).exists()
    assert Memory.objects.for_user(bob).count() == counts(job)["note"]


def test_others_files_link_nothing_to_ones_own_notes(bob: User, take_in: TakeIn) -> None:
    own = memory_create(user_id=bob.pk, content="Mine")
    theirs = record("Theirs")
    edge = {"type": "edge", "id": str(uuid4()), "source": theirs["id"], "target": str(own.pk)}
    job = take_in(bob, as_file([MANIFEST, theirs, {**edge, "relation": "contradicts"}, END]))
    assert counts(job, "skipped") == {"edge": 1}
    assert not MemoryEdge.objects.for_user(bob).exists()


def test_a_note_of_a_clock_that_ran_ahead_is_found_at_once(bob: User, take_in: TakeIn) -> None:
    ahead = (timezone.now() + timedelta(hours=9)).isoformat()
    notes = [
        record("The penicillin allergy is severe.", created_at=ahead, updated_at=ahead),
        record("The lodger is called Marek.", created_at="2024-05-01T10:00:00Z", updated_at=ahead),
    ]
    take_in(bob, as_file([MANIFEST, *notes, END]), own=True)
    assert found_texts(bob, "penicillin")[0] == "The penicillin allergy is severe."
    for note in Memory.objects.for_user(bob):
        assert note.created_at <= note.updated_at <= timezone.now()


def test_a_superseded_note_without_an_end_does_not_hold_still(bob: User, take_in: TakeIn) -> None:
    old = record(
        "The user lives in Lisbon.",
        status="superseded",
        created_at="2025-01-01T00:00:00Z",
        updated_at="2025-03-01T00:00:00Z",
    )
    take_in(bob, as_file([MANIFEST, old, END]), own=True)
    (note,) = Memory.objects.for_user(bob)
    assert note.valid_to == note.updated_at
    assert (
        "Lisbon" not in context(bob.pk, "Where do I live, Lisbon?", budget_tokens=200, scope=NOTES).text
    )


def test_a_note_that_was_changed_here_is_kept(full: User, take_in: TakeIn) -> None:
    data = exported(full)
    note = Memory.objects.for_user(full).filter(status="active").first()
    assert note is not None
    Memory.objects.for_user(full).filter(pk=note.pk).update(content="Changed here")
    job = take_in(full, data, own=True)
    assert counts(job) == {}
    assert "Changed here" in contents(full)
    assert any("yours was kept" in row["reason"] for row in job.report["skipped"])


def test_what_was_deleted_here_stays_so_and_the_report_says_it(alice: User, take_in: TakeIn) -> None:
    note = memory_create(user_id=alice.pk, content="Mine")
    file_write(user_id=alice.pk, path="/memories/a.md", text="Mine, too")
    data = exported(alice)
    memory_delete(user_id=alice.pk, memory_id=note.pk)
    file_delete(user_id=alice.pk, path="/memories/a.md")
    job = take_in(alice, data, own=True)
    assert (counts(job), contents(alice)) == ({}, set())
    told = {row["kind"]: row["reason"] for row in job.report["skipped"]}
    assert "deleted here" in told["note"]
    assert "deleted here" in told["file"]


def test_a_conversation_that_went_on_goes_on_here(alice: User, bob: User, take_in: TakeIn) -> None:
    def say(*numbers: int) -> None:
        said = [{"role": "user", "content": f"Word {n}", "external_id": f"m{n}"} for n in numbers]
        messages_ingest(user_id=alice.pk, session="s", messages=said)

    say(1, 2)
    take_in(bob, exported(alice), own=True)
    say(3)
    job = take_in(bob, exported(alice), own=True)
    assert counts(job) == {"message": 1}
    texts = Message.objects.for_user(bob).order_by("position").values_list("text", flat=True)
    assert list(texts) == ["Word 1", "Word 2", "Word 3"]


def test_deleting_the_account_takes_the_files_that_wait(bob: User, admin: User) -> None:
    job = import_create(user_id=bob.pk, chunks=[as_file([MANIFEST, record("One"), END])])
    assert import_path(job.pk).exists()
    user_delete(user=bob)
    assert not import_path(job.pk).exists()
