"""Taking out and bringing in over REST, on the page and by commands."""

import io
import json
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from apps.accounts.models import User
from apps.core.db.pool import in_db
from apps.memory.files.services import file_write
from apps.memory.models import Import, Memory
from apps.memory.notes.creation import memory_create
from apps.memory.notes.joining import edge_create
from apps.memory.transfer.requests import export_answer
from apps.memory.transfer.running import imports_run
from tests.site.belongings import MARK

from .conftest import as_file, exported, rows_in
from .test_importing import END, MANIFEST, contents, record

pytestmark = pytest.mark.django_db(transaction=True)

Api = Callable[..., Client]


def body(answer: Any) -> bytes:
    return bytes(answer.getvalue())


def test_rest_gives_and_takes_the_same_file(full: User, bob: User, api: Api) -> None:
    answer = api(full, "read").get("/api/v1/export/")
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    data = body(answer)
    assert data == exported(full)
    client = api(bob)
    given = {"file": SimpleUploadedFile("izzy.jsonl", data), "own": "true", "format": "auto"}
    job = client.post("/api/v1/import/", given).json()
    assert (job["state"], job["format"], job["own"], job["name"]) == (
        "waiting",
        "izzy",
        True,
        "izzy.jsonl",
    )
    imports_run()
    done = client.get(f"/api/v1/import/{job['id']}/").json()
    assert (done["state"], done["progress"]["percent"], done["report"]["wrong"]) == ("done", 100, [])
    assert client.get("/api/v1/import/").json()["count"] == 1
    assert client.post(f"/api/v1/import/{job['id']}/cancel/").status_code == 409


async def test_a_server_sends_it_while_it_is_made(full: User) -> None:
    answer = export_answer(full.pk, "jsonl")
    parts = [part async for part in answer]
    assert b"".join(parts) == await in_db(exported, full)


def test_scopes_and_bad_input(bob: User, api: Api) -> None:
    assert api(bob, "read").post("/api/v1/import/", {"text": "x"}).status_code == 403
    client = api(bob)
    assert client.post("/api/v1/import/", {}).json()["code"] == "no_file"
    wrong = client.post("/api/v1/import/", {"text": "x", "format": "wrong"}, "application/json")
    assert (wrong.status_code, wrong.json()["code"]) == (400, "unknown_format")
    assert client.get("/api/v1/export/?format=wrong").status_code == 400
    assert client.get(f"/api/v1/export/?conversation={bob.pk}").status_code == 404


def test_no_more_than_the_limit_is_taken(bob: User, api: Api, settings: object) -> None:
    settings.IZZY_IMPORT_LIMIT = 1000  # type: ignore[attr-defined]
    given = {"file": SimpleUploadedFile("a.jsonl", b"x" * 1001)}
    assert api(bob).post("/api/v1/import/", given).status_code == 413
    assert not Import.objects.for_user(bob).exists()


def test_nothing_secret_or_allowed_is_taken_out(full: User) -> None:
    data = exported(full).decode()
    assert f"{MARK}-value" not in data
    kinds = {row["type"] for row in rows_in(data.encode())}
    assert kinds.isdisjoint({"token", "secret", "grant", "preferences"})
    assert "approved" not in data
    assert "The {MARK} was deleted".replace("{MARK}", MARK) not in data


def test_markdown_opens_with_links(alice: User, api: Api) -> None:
    one = memory_create(user_id=alice.pk, content="Anna plays: the cello?", tags=["good friends"])
    two = memory_create(user_id=alice.pk, content="The cello is in Vienna")
    edge_create(user_id=alice.pk, source_id=one.pk, target_id=two.pk, relation="has a part in")
    answer = api(alice, "read").get("/api/v1/export/?format=markdown")
    archive = zipfile.ZipFile(io.BytesIO(body(answer)))
    assert archive.testzip() is None
    names = {Path(name).stem for name in archive.namelist()}
    (name,) = [name for name in archive.namelist() if "Anna" in name]
    text = archive.read(name).decode()
    assert text.startswith(f'---\nid: "{one.pk}"')
    assert 'tags: ["good-friends"]' in text
    (link,) = [line for line in text.splitlines() if "[[" in line]
    assert link.startswith("- has_a_part_in [[")
    assert link.partition("[[")[2].rstrip("]") in names


def test_markdown_has_names_that_every_file_system_takes(alice: User, api: Api) -> None:
    client = api(alice)
    for number, channel in enumerate(["Caf\u00e9", "Cafe\u0301", "\U0001f980" * 64]):
        said = [{"role": "user", "content": "\U0001f980" * 200}]
        sent = {"session": f"s{number}", "channel": channel, "messages": said}
        assert client.post("/api/v1/ingest/", sent, content_type="application/json").status_code == 202
    data = body(client.get("/api/v1/export/?format=markdown"))
    places = [name.split("/") for name in zipfile.ZipFile(io.BytesIO(data)).namelist()]
    assert {place[2] for place in places} >= {"Caf\u00e9"}
    assert len({place[2] for place in places}) == 2
    assert max(len(name.encode()) for place in places for name in place) <= 255


def test_files_that_differ_in_case_alone_have_names_that_differ_in_more(alice: User, api: Api) -> None:
    for name in ("Notes.md", "notes.md", "sub/NOTES.md"):
        file_write(user_id=alice.pk, path=f"/memories/{name}", text=name)
    data = body(api(alice).get("/api/v1/export/?format=markdown"))
    archive = zipfile.ZipFile(io.BytesIO(data))
    assert {name: archive.read(name).decode() for name in archive.namelist()} == {
        "izzy/files/Notes.md": "Notes.md",
        "izzy/files/notes (2).md": "notes.md",
        "izzy/files/sub/NOTES.md": "sub/NOTES.md",
    }


def test_one_conversation_as_markdown(full: User, sign_in: Callable[[User], Client]) -> None:
    (talk,) = rows_in(exported(full), "conversation")
    answer = sign_in(full).get(f"/settings/data/export/?conversation={talk['id']}")
    assert f"My shellfish allergy and the {MARK}" in body(answer).decode()


def test_the_page_takes_a_file_and_shows_what_became_of_it(
    bob: User, sign_in: Callable[[User], Client]
) -> None:
    client = sign_in(bob)
    assert "Nothing was brought in yet" in client.get("/settings/data/").text
    assert client.post("/settings/data/", {}).status_code == 422
    data = as_file([MANIFEST, record("One"), END]) + b"{broken\n"
    given = {"file": SimpleUploadedFile("a.jsonl", data), "format": "auto", "accept": "on"}
    assert client.post("/settings/data/", given).status_code == 302
    job = Import.objects.for_user(bob).get()
    assert 'hx-trigger="every 1s"' in client.get("/settings/data/").text
    imports_run()
    address = f"/settings/data/imports/{job.pk}/"
    shown = client.get(address, headers={"HX-Request": "true"}).text
    assert client.get(address).status_code == 302  # to the page, of which it is a part
    assert "Izzy (its own export)" in shown
    assert "hx-trigger" not in shown
    assert "line 4" in shown
    assert contents(bob) == {"One"}


def test_the_page_leads_to_the_review_where_something_waits_there(
    bob: User, sign_in: Callable[[User], Client]
) -> None:
    client = sign_in(bob)
    for waits in (True, False):
        client.post("/settings/data/", {"text": "Likes oat milk", "format": "text"})
        imports_run()
        newest = Import.objects.for_user(bob).latest("created_at")
        shown = client.get(f"/settings/data/imports/{newest.pk}/", headers={"HX-Request": "true"}).text
        assert ("wait for you in" in shown) is waits


def test_a_waiting_import_is_called_off_on_the_page(
    bob: User, sign_in: Callable[[User], Client]
) -> None:
    client = sign_in(bob)
    client.post("/settings/data/", {"text": as_file([MANIFEST, record("One")]).decode()})
    job = Import.objects.for_user(bob).get()
    client.post(f"/settings/data/imports/{job.pk}/cancel/")
    imports_run()
    assert Import.objects.for_user(bob).get().state == "cancelled"
    assert not contents(bob)


def test_the_commands_take_out_and_bring_in(full: User, bob: User, tmp_path: Path) -> None:
    file = tmp_path / "izzy.jsonl"
    call_command("export_memories", str(file), user="alice", stdout=io.StringIO())
    assert file.read_bytes() == exported(full)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    said = io.StringIO()
    call_command("import_memories", str(file), user="bob", dry_run=True, own=True, stdout=said)
    assert "Would be imported (izzy)" in said.getvalue()
    assert not Memory.objects.for_user(bob).exists()
    call_command("import_memories", str(file), user="bob", own=True, stdout=io.StringIO())
    assert len(rows_in(exported(bob))) == len(rows_in(file.read_bytes()))
    with pytest.raises(CommandError, match="no user"):
        call_command("import_memories", str(file), user="nobody")
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("import_memories", str(tmp_path / "none"), user="bob")
    json.loads(file.read_bytes().splitlines()[0])


def test_the_command_fails_where_something_was_wrong_and_takes_the_rest(
    bob: User, tmp_path: Path
) -> None:
    file, said = tmp_path / "izzy.jsonl", io.StringIO()
    file.write_bytes(as_file([MANIFEST, record("One")]) + b"no JSON\n" + as_file([END]))
    with pytest.raises(CommandError, match="1 of its records was wrong"):
        call_command("import_memories", str(file), user="bob", stdout=said)
    assert "line 3" in said.getvalue()
    assert contents(bob) == {"One"}
    file.write_bytes(as_file([MANIFEST, record("One")]))
    with pytest.raises(CommandError, match="end is missing"):
        call_command("import_memories", str(file), user="bob", stdout=said)


@pytest.mark.parametrize("asked", ["format=wrong", "conversation=wrong", "conversation={}"])
def test_the_page_has_no_such_file(
    asked: str, full: User, bob: User, sign_in: Callable[[User], Client]
) -> None:
    (talk,) = rows_in(exported(full), "conversation")
    assert sign_in(bob).get(f"/settings/data/export/?{asked.format(talk['id'])}").status_code == 404
