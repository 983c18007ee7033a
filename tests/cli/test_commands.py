"""The commands as a whole: all are documented, all help, all complete in a shell; and running capabilities and the doctor."""

import json
import shutil
import subprocess
from importlib import import_module
from pathlib import Path

import click
import pytest
from django.conf import settings

from izzy_cli.errors import Exit
from izzy_cli.main import COMMANDS, cli
from tests.chat.server import Server
from tests.cli.izzy import Izzy
from tests.cli.test_json import SHOUT, made
from tests.peers.prepared import Person

ROOT = Path(settings.BASE_DIR)
NO_JSON = {"logout", "export", "completion"}
"""Commands of which the server says nothing, or whose output is the server's file."""


def command_of(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def leaves(command: click.Command, name: str) -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return [(name, command)]
    return [leaf for each, child in command.commands.items() for leaf in leaves(child, f"{name} {each}")]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_list_of_commands_says_what_each_says_itself(name: str) -> None:
    assert (command_of(name).help or "").split("\n\n")[0].replace("\n", " ") == COMMANDS[name][1]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_prints_json_and_is_documented(name: str) -> None:
    text = (ROOT / "docs" / "cli.md").read_text()
    for words, command in leaves(command_of(name), name):
        assert f"`izzy {words}" in text
        if name not in NO_JSON and name != "hook":
            assert any("--json" in param.opts for param in command.params), words


def test_every_exit_code_is_documented() -> None:
    text = (ROOT / "docs" / "cli.md").read_text()
    assert [code.value for code in Exit if f"| {code.value} |" not in text] == []


def test_the_package_needs_nothing_of_the_server() -> None:
    for file in ROOT.glob("cli/izzy_cli/**/*.py"):
        assert "from apps" not in file.read_text()
        assert "import apps" not in file.read_text()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_its_script(izzy: Izzy, shell: str) -> None:
    script = izzy.run("completion", shell).ok().text
    assert "_IZZY_COMPLETE" in script
    if path := shutil.which(shell):
        assert subprocess.run([path, "-n"], input=script, text=True, check=False).returncode == 0


def test_commands_and_capabilities_are_completed(izzy: Izzy, server: Server) -> None:
    made(server, "capabilities/", {**SHOUT, "name": "whisper"})
    words = {"_IZZY_COMPLETE": "bash_complete", "COMP_CWORD": "1", "COMP_WORDS": "izzy rest"}
    program = "from izzy_cli.main import main; main()"
    for more, wanted in (
        ({}, "plain,restore"),
        ({"COMP_CWORD": "2", "COMP_WORDS": "izzy run whi"}, "plain,whisper"),
    ):
        environment = izzy.variables({**words, **more})
        done = subprocess.run(
            [izzy.command, "-c", program], capture_output=True, text=True, env=environment, check=False
        )
        assert done.stdout.splitlines() == [wanted], done.stderr


def test_a_capability_runs_with_pairs_and_with_json(izzy: Izzy, server: Server) -> None:
    made(server, "capabilities/", SHOUT)
    assert izzy.run("run", "shout", "text=3", "times=2").ok().text == "33\n"
    assert izzy.run("run", "shout", "--input", '{"text": "a"}', "times=2").ok().text == "AA\n"
    assert izzy.run("run", "shout", "--input", "-", given='{"text": "b"}').ok().text == "B\n"
    assert "shout" in izzy.run("capabilities", "louder").ok().text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["no-such", "text=a"], Exit.NOT_FOUND, ""),
        (["whisper", "times=many"], Exit.USAGE, "must be of the type integer"),
        (["whisper", "text"], Exit.USAGE, "is not NAME=VALUE"),
        (["whisper", "--input", "[1]"], Exit.USAGE, "must be a JSON object"),
        (["whisper", "times=2"], Exit.FAILURE, ""),
    ],
)
def test_a_run_that_cannot_be_is_told_why(
    izzy: Izzy, server: Server, arguments: list[str], code: int, message: str
) -> None:
    with server.http as client:
        client.post("/api/v1/capabilities/", json={**SHOUT, "name": "whisper"})
    done = izzy.run("run", *arguments)
    assert done.code == code
    assert message in done.err
    assert done.err.startswith("izzy: ")


def test_the_doctor_finds_all_in_order(izzy: Izzy, server: Server, person: Person) -> None:
    izzy.run("login", izzy.url, "--token-stdin", given=server.token).ok()
    done = izzy.run("doctor")
    assert f"✓ server: {izzy.url} answers" in done.text
    assert f"✓ token: test (read, write) of {person.name}" in done.text
    found = json.loads(izzy.run("doctor", "--json").text)
    assert {"configuration", "server", "token", "health"} <= {check["name"] for check in found["checks"]}


def test_the_doctor_says_what_is_wrong(izzy: Izzy, server: Server) -> None:
    izzy.run("login", izzy.url, "--token-stdin", given=server.token).ok()
    (izzy.home / ".config" / "izzy" / "config.toml").chmod(0o644)
    done = izzy.run("doctor", IZZY_TOKEN="izzy_wrong")
    assert done.code == 1
    assert "Others can read" in done.text
    assert "✗ token: This API token is unknown" in done.text
    assert izzy.run("doctor", IZZY_URL="http://127.0.0.1:1", IZZY_TOKEN="x").code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        "builds --json show an-id",
        "builds --state failed list",
        "review --json list",
        "review -p 1 accept",
    ],
)
def test_options_before_a_command_that_would_not_see_them_are_refused(
    tmp_path: Path, arguments: str
) -> None:
    group, *_ = words = arguments.split()
    done = Izzy(tmp_path, "http://127.0.0.1:1", "izzy_token").run(*words)
    assert done.code == Exit.USAGE
    assert f"Options come after the command: izzy {group} " in done.err


def test_modules_are_imported_by_their_own_commands_alone() -> None:
    assert {import_module(f"izzy_cli.{place.partition(':')[0]}") for place, _ in COMMANDS.values()}
