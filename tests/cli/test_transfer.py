"""Taking everything out and bringing it in again, against a server with its worker."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from izzy_cli import patience
from izzy_cli.client import Answer
from izzy_cli.commands import transfer
from izzy_cli.errors import Exit, Problem
from tests.browser.server import Server
from tests.cli.izzy import Izzy, fields_of
from tests.peers.prepared import prepared
from tests.site.test_described import problems

IMPORT = {"$ref": "#/components/schemas/ImportOutput"}
PAGE = {"$ref": "#/components/schemas/ImportPage"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server.prepared(tmp_path_factory.mktemp("served"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def izzy(running: Server, tmp_path: Path) -> Izzy:
    return Izzy(tmp_path, running.url, prepared().token)


def graph(izzy: Izzy, name: str, *observations: str) -> Path:
    """A file of the MCP memory server."""
    file = izzy.home / "memory.jsonl"
    entity = {"type": "entity", "name": name, "entityType": "person", "observations": list(observations)}
    file.write_text(json.dumps(entity) + "\n")
    return file


def report(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    assert problems(IMPORT, found) == []
    return found


def test_what_was_taken_out_is_whole_and_comes_in_without_anything_new(izzy: Izzy) -> None:
    izzy.run("save", "Plays the theremin").ok()
    file = izzy.home / "izzy.jsonl"
    izzy.run("export", str(file)).ok()
    assert file.stat().st_mode & 0o077 == 0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[0]["type"] == "manifest"
    assert any(line.get("content") == "Plays the theremin" for line in lines)
    again = report(izzy.run("import", str(file), "--own", "--json").ok().text)
    assert again["state"] == "done"
    assert sum(kind["taken"] for kind in again["report"]["kinds"]) == 0


def test_an_export_goes_to_a_pipe_too_and_writes_over_nothing_unasked(izzy: Izzy) -> None:
    assert izzy.run("export").ok().text.startswith('{"type":"manifest"')
    assert izzy.run("export", "--json").ok().text.startswith('{"type":"manifest"')
    assert izzy.run("export", "--json", "--format", "markdown").code == 2
    archive = izzy.home / "izzy.zip"
    archive.write_text("mine")
    assert izzy.run("export", str(archive), "--format", "markdown").code == 2
    assert archive.read_text() == "mine"
    izzy.run("export", str(archive), "--format", "markdown", "--force").ok()
    assert archive.read_bytes()[:2] == b"PK"
    with izzy.terminal("export", "--format", "markdown") as terminal:
        terminal.expect("name a file")
        assert terminal.end() == 2


def test_one_conversation_is_taken_out_as_markdown(izzy: Izzy) -> None:
    izzy.run("ingest", "-s", "harbour", given="user: Where is the harbour?\nassistant: North\n").ok()
    key = izzy.run("conversations", "harbour").ok().text.split("\t")[0]
    text = izzy.run("export", "--conversation", key).ok().text
    assert "Where is the harbour?" in text
    assert izzy.run("export", "--conversation", "no-such").code == 4


def test_a_dry_run_takes_nothing_and_the_second_time_nothing_is_new(izzy: Izzy) -> None:
    file = graph(izzy, "Ada", "Ada keeps axolotls")
    dry = report(izzy.run("import", str(file), "--dry-run", "--json").ok().text)
    assert dry["dry_run"]
    assert sum(kind["taken"] for kind in dry["report"]["kinds"]) > 0
    assert "axolotls" not in izzy.run("list", "--all").ok().text
    izzy.run("import", str(file), "--accept").ok()
    assert "axolotls" in izzy.run("list", "--status", "active", "axolotls").ok().text
    second = report(izzy.run("import", str(file), "--accept", "--json").ok().text)
    assert sum(kind["taken"] for kind in second["report"]["kinds"]) == 0


def test_what_is_wrong_is_named_and_the_rest_is_taken(izzy: Izzy) -> None:
    izzy.run("save", "Rows a skiff").ok()
    file = izzy.home / "izzy.jsonl"
    lines = izzy.run("export").ok().text.splitlines()
    file.write_text("\n".join([*lines[:2], "{broken", *lines[2:]]) + "\n")
    done = izzy.run("import", str(file), "--own")
    assert done.code == 1
    assert "3" in done.text
    assert "done" in done.text


def test_a_file_whose_end_is_missing_is_no_success(izzy: Izzy) -> None:
    file = izzy.home / "izzy.jsonl"
    lines = izzy.run("export").ok().text.splitlines()
    file.write_text("\n".join(lines[:-1]) + "\n")
    done = izzy.run("import", str(file), "--own")
    assert done.code == 1
    assert "ends early" in done.text


def test_pasted_memories_come_in_through_a_pipe(izzy: Izzy) -> None:
    izzy.run("import", "--pasted", "--accept", given="- Collects snow globes\n- Speaks Basque\n").ok()
    assert "snow globes" in izzy.run("list", "snow", "globes").ok().text


def test_imports_are_listed_and_shown(izzy: Izzy) -> None:
    file = graph(izzy, "Bo", "Bo paints boats")
    started = report(izzy.run("import", str(file), "--no-wait", "--json").ok().text)
    followed = report(izzy.run("imports", started["id"], "--follow", "--json").ok().text)
    assert followed["state"] == "done"
    assert started["id"] in [row[0] for row in fields_of(izzy.run("imports"))]
    assert problems(PAGE, json.loads(izzy.run("imports", "--json").ok().text)) == []
    assert "memory.jsonl" in izzy.run("imports", started["id"]).ok().text
    assert izzy.run("imports", "no-such").code == 4


def test_a_file_that_nobody_can_read_is_refused_with_a_sentence(izzy: Izzy) -> None:
    file = izzy.home / "noise.bin"
    file.write_bytes(bytes(range(256)) * 20)
    done = izzy.run("import", str(file))
    assert done.code == 1
    assert done.err.startswith("izzy: ")
    assert izzy.run("import", str(izzy.home / "missing.zip")).code == 2


def test_a_terminal_shows_a_table_of_what_came_in(izzy: Izzy) -> None:
    file = graph(izzy, "Cy", "Cy climbs", "Cy dives")
    with izzy.terminal("import", str(file)) as terminal:
        terminal.expect("Taken")
        assert terminal.end() == 0


class Restarting:
    """A client of a server that does not answer so many times."""

    def __init__(self, silent: int) -> None:
        self.silent = silent

    def get(self, path: str) -> Answer:
        self.silent -= 1
        if self.silent >= 0:
            raise Problem("Izzy does not answer.", Exit.UNREACHABLE)
        return row("done")


def row(state: str) -> Answer:
    fields = {"id": "0199aa00-0000-7000-8000-000000000000", "state": state}
    return Answer(200, json.dumps({**fields, "progress": {"done": 0, "total": 0}}).encode())


def test_an_import_is_followed_past_a_server_that_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "POLL_SECONDS", (0.0, 0.0))
    client: Any = Restarting(3)
    ended = transfer.follow_import(client, row("running"), "notes", quiet=True)
    assert ended.value["state"] == "done"
    monkeypatch.setattr(patience, "RESTART_SECONDS", -1)
    client = Restarting(2)
    with pytest.raises(Problem, match="does not answer") as raised:
        transfer.follow_import(client, row("running"), "notes", quiet=True)
    assert "goes on without you" in raised.value.message
