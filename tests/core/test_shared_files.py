"""The files that several hosts need, in a folder that they share or in an S3-compatible store."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.core.management import call_command
from django.test import Client
from pytest_django import DjangoDbBlocker, Settings

from apps.accounts.models import User
from apps.capabilities.catalog.files import CapabilityRefused, files_read, files_verified
from apps.capabilities.catalog.lifecycle import capability_delete
from apps.capabilities.models import Capability
from apps.core.errors import Unavailable
from apps.core.health import check_files
from apps.core.integrity import checks as integrity_checks
from apps.memory.models import Import, ImportState, Memory
from apps.memory.transfer.jobs import import_create, import_get
from apps.memory.transfer.running import imports_run
from apps.memory.transfer.storage import LOST_AFTER, import_path, imports_folder, uploads_prune
from izzysite.env import env_files
from tests.capabilities.making import GREETING, make
from tests.peers.ports import free_port
from tests.peers.s3_server import BUCKET, s3_endpoint  # noqa: F401  a fixture

pytestmark = pytest.mark.django_db(transaction=True)
LINES = b'{"type":"manifest","format":"izzy","version":1}\n{"type":"note","id":"%s","content":"Likes figs"}\n{"type":"end"}\n'
NOTE = b"01890000-0000-7000-8000-000000000001"
Move = Callable[[], None]


@pytest.fixture(params=["folder", "s3"])
def to_other_host(
    request: pytest.FixtureRequest, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Move:
    """Two hosts with data directories of their own and a store that they share; the call goes to the second."""
    if request.param == "folder":
        url = f"file://{tmp_path}/shared"
    else:
        url = f"s3://{BUCKET}/{request.node.name[:20]}?endpoint_url={request.getfixturevalue('s3_endpoint')}"
    monkeypatch.setenv("IZZY_FILES_URL", url)
    settings.IZZY_FILES_URL = url
    settings.STORAGES = {
        **settings.STORAGES,
        "shared": env_files("IZZY_FILES_URL", tmp_path / "unused"),
    }

    def at(name: str) -> None:
        settings.IZZY_DATA_DIR = tmp_path / name

    at("first")
    return lambda: at("second")


def away(settings: Settings) -> None:
    """Nobody answers where the store was."""
    options = env_files("IZZY_FILES_URL", Path("unused"))
    options["OPTIONS"]["endpoint_url"] = f"http://127.0.0.1:{free_port()}"
    settings.STORAGES = {**settings.STORAGES, "shared": options}


def stored(folder: str) -> list[str]:
    store, found = storages["shared"], []
    try:
        folders, names = store.listdir(folder)
    except FileNotFoundError:
        return []
    for each in folders:
        found += stored(f"{folder}/{each}")
    return sorted([*found, *(f"{folder}/{name}" for name in names if name)])


def test_a_capability_made_on_one_host_is_whole_on_another_and_goes_everywhere(
    alice: User, to_other_host: Move
) -> None:
    made = make(alice)
    assert made.current is not None
    to_other_host()
    version = Capability.objects.for_user(alice).get().current
    assert version is not None
    assert files_verified(version, "greeter")["main.py"] == GREETING
    assert len(stored("capabilities")) == 4
    capability_delete(user_id=alice.pk, capability_id=made.pk)
    assert stored("capabilities") == []


def test_a_backup_has_the_files_of_the_store(
    alice: User, to_other_host: Move, tmp_path: Path, django_db_blocker: DjangoDbBlocker
) -> None:
    version = make(alice).current
    assert version is not None
    import_create(user_id=alice.pk, chunks=[LINES % NOTE], own=True)
    to_other_host()
    with django_db_blocker.unblock():  # the copy is a database of its own
        call_command("backup", str(tmp_path / "backup"))
    named = [
        path
        for place in ("capabilities", "imports")
        for path in (tmp_path / "backup" / place).rglob("*")
    ]
    held = {str(path.relative_to(tmp_path / "backup")) for path in named if path.is_file()}
    assert held == {*stored("capabilities"), *stored("imports")}
    assert len(held) == 5
    assert (tmp_path / "backup" / version.path / "main.py").read_text() == GREETING


def test_what_lies_in_the_store_alone_is_no_lost_upload(alice: User, to_other_host: Move) -> None:
    job = import_create(user_id=alice.pk, chunks=[LINES % NOTE], own=True)
    to_other_host()
    checks = dict(integrity_checks())
    assert list(checks["memory: uploads"].find(None)) == []
    assert not (imports_folder() / str(job.pk)).exists()
    storages["shared"].delete(f"imports/{job.pk}")
    assert [finding.subject for finding in checks["memory: uploads"].find(None)] == [job.pk]


def test_a_file_changed_in_the_store_is_not_run(alice: User, to_other_host: Move) -> None:
    version = make(alice).current
    assert version is not None
    store, name = storages["shared"], f"{version.path}/main.py"
    with store.open(name, "rb") as file:
        text = file.read()
    store.delete(name)
    with pytest.raises(CapabilityRefused):
        files_verified(version, "greeter")
    assert files_read(version.path)["main.py"] == ""
    store.save(name, ContentFile(text + b"# more"))
    with pytest.raises(CapabilityRefused):
        files_verified(version, "greeter")


def test_what_is_uploaded_at_one_host_is_taken_in_by_anothers_worker(
    alice: User, to_other_host: Move
) -> None:
    job = import_create(user_id=alice.pk, chunks=[LINES % NOTE], name="notes.jsonl", own=True)
    assert stored("imports") == [f"imports/{job.pk}"]
    to_other_host()
    imports_run()
    done = import_get(alice.pk, job.pk)
    assert done.state == ImportState.DONE, done.error
    assert Memory.objects.for_user(alice).get().content == "Likes figs"
    assert stored("imports") == []
    assert list(imports_folder().iterdir()) == []


def test_an_upload_that_is_gone_everywhere_fails_with_a_sentence(
    alice: User, to_other_host: Move
) -> None:
    job = import_create(user_id=alice.pk, chunks=[LINES % NOTE], own=True)
    storages["shared"].delete(f"imports/{job.pk}")
    to_other_host()
    imports_run()
    assert import_get(alice.pk, job.pk).error_code == "upload_lost"


def test_files_of_no_import_are_swept_from_this_host_and_from_the_store(
    alice: User, to_other_host: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = import_create(user_id=alice.pk, chunks=[LINES % NOTE], own=True)
    lost = import_create(user_id=alice.pk, chunks=[LINES % NOTE], own=True)
    Import.objects.unscoped().filter(pk=lost.pk).update(state=ImportState.DONE)
    (imports_folder() / f".{lost.pk}.abcd").write_text("half of it")
    assert uploads_prune() == 0
    now = os.stat(import_path(kept.pk)).st_mtime
    monkeypatch.setattr("apps.memory.transfer.storage.time.time", lambda: now + LOST_AFTER + 60)
    assert uploads_prune() == 3
    assert stored("imports") == [f"imports/{kept.pk}"]
    assert [path.name for path in imports_folder().iterdir()] == [str(kept.pk)]


@pytest.mark.parametrize("to_other_host", ["s3"], indirect=True)
def test_a_store_that_does_not_answer_is_said_and_nothing_is_lost(
    alice: User, to_other_host: Move, settings: Settings, api: Callable[..., Client]
) -> None:
    version = make(alice).current
    assert version is not None
    assert check_files().ok
    shared = settings.STORAGES
    away(settings)
    assert not check_files().ok
    with pytest.raises(Unavailable):
        files_verified(version, "greeter")
    with pytest.raises(Unavailable):
        import_create(user_id=alice.pk, chunks=[LINES % NOTE], own=True)
    assert not Import.objects.for_user(alice).exists()
    body: dict[str, Any] = {"name": "other", "description": "d", "input_schema": {"type": "object"}}
    body["files"] = {"main.py": GREETING}
    answer = api(alice).post("/api/v1/capabilities/", body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (503, "files_unavailable")
    settings.STORAGES = shared
    assert files_verified(version, "greeter")["main.py"] == GREETING


@pytest.mark.parametrize(
    "text",
    [
        "/srv/izzy",
        "s3://",
        "s3:///folder",
        "s3://key:word@bucket/folder",
        "s3://bucket?secret_key=word",
        "s3://bucket?endpoint_url",
        "file://",
        "file://host/srv",
        "https://bucket.example.org",
        "s3://[bucket",
    ],
)
def test_an_address_that_is_none_is_told_at_the_start_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("IZZY_X", text)
    with pytest.raises(ImproperlyConfigured, match="IZZY_X must look like") as refused:
        env_files("IZZY_X", Path("/data"))
    assert "word" not in str(refused.value)


def test_a_bucket_may_have_a_folder_and_a_place() -> None:
    os.environ["IZZY_X"] = "s3://bucket/a/b?endpoint_url=https://s3.example.org&region_name=eu"
    try:
        found = env_files("IZZY_X", Path("/data"))
    finally:
        del os.environ["IZZY_X"]
    assert found["OPTIONS"]["bucket_name"] == "bucket"
    assert found["OPTIONS"]["location"] == "a/b"
    assert found["OPTIONS"]["endpoint_url"] == "https://s3.example.org"
    assert found["OPTIONS"]["region_name"] == "eu"
