"""`--json` is what the server answers, and that is what OpenAPI describes."""

import json
from collections.abc import Iterator
from typing import Any

import click
import pytest

from izzy_cli.main import cli as izzy_command
from tests.chat.server import Server
from tests.cli.izzy import Done, Izzy
from tests.site.test_described import operation, problems

Case = tuple[list[str], str, str, str]

NOTE = "api/v1/memories/<str:memory_id>/"
REVIEW = "api/v1/memories/review/"
CHAT = "api/v1/chat/"
SHOUT = {
    "name": "shout",
    "description": "Says it louder",
    "input_schema": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "times": {"type": "integer"}},
    },
    "files": {"main.py": "def run(args):\n    return args['text'].upper() * args.get('times', 1)\n"},
    "examples": [{"input": {"text": "a"}, "expect": "A"}],
}

CASES: list[Case] = [
    (["login", "{url}", "--token-stdin"], "{token}", "GET", "api/v1/me/"),
    (["status"], "", "GET", "api/v1/me/"),
    (["search", "shellfish"], "", "POST", "api/v1/search/"),
    (["context", "What can I not eat, shellfish?"], "", "POST", "api/v1/context/"),
    (["save", "-t", "food", "-k", "fact", "-i", "4"], "Likes dill.", "POST", "api/v1/memories/"),
    (["list", "--tag", "food", "--order", "importance"], "", "GET", "api/v1/memories/"),
    (["list", "--all"], "", "GET", "api/v1/memories/"),
    (["show", "{note}"], "", "GET", NOTE),
    (["show", "{note}", "--history"], "", "GET", f"{NOTE}history/"),
    (["show", "{note}", "--links"], "", "GET", f"{NOTE}related/"),
    (["edit", "{note}", "--text", "Allergic to nuts", "--tag", "food"], "", "PATCH", NOTE),
    (["forget", "{note}", "--purge", "--yes"], "", "POST", f"{NOTE}purge/"),
    (["restore", "{note}", "--version", "1"], "", "POST", f"{NOTE}restore/"),
    (["review"], "", "GET", REVIEW),
    (["review", "list"], "", "GET", REVIEW),
    (["review", "accept", "{waiting}"], "", "POST", REVIEW),
    (["review", "reject", "--all", "--yes"], "", "POST", REVIEW),
    (["ingest", "-s", "chess"], "user: Hello\nassistant: Hello!", "POST", "api/v1/ingest/"),
    (["chat", "Good morning"], "", "POST", CHAT),
    (["conversations"], "", "GET", "api/v1/conversations/"),
    (["capabilities"], "", "GET", "api/v1/capabilities/"),
    (["run", "shout", "text=hm"], "", "POST", "api/v1/capabilities/<str:capability>/run/"),
    (["builds"], "", "GET", "api/v1/builds/"),
    (["builds", "list"], "", "GET", "api/v1/builds/"),
    (["builds", "show", "{build}"], "", "GET", "api/v1/builds/<str:build_id>/"),
    (["builds", "cancel", "{build}"], "", "POST", "api/v1/builds/<str:build_id>/cancel/"),
]


@pytest.fixture(scope="module")
def capability(server: Server) -> str:
    with server.http as client:
        answer = client.post("/api/v1/capabilities/", json=SHOUT)
    assert answer.status_code == 201, answer.text
    return "shout"


def answers(done: Done) -> list[Any]:
    return [json.loads(line) for line in done.ok().text.splitlines()]


def made(server: Server, path: str, body: dict[str, Any]) -> dict[str, Any]:
    with server.http as client:
        answer: dict[str, Any] = client.post(f"/api/v1/{path}", json=body).raise_for_status().json()
    return answer


def placed(server: Server, words: list[str]) -> dict[str, str]:
    """Returns what the braces stand for, made where they occur."""
    line = " ".join(words)
    found = {"url": f"http://127.0.0.1:{server.port}", "token": server.token}
    if "{note}" in line:
        found["note"] = made(
            server, "memories/", {"content": "Allergic to shellfish", "tags": ["food"]}
        )["id"]
    if "restore" in line:
        with server.http as client:
            client.patch(f"/api/v1/memories/{found['note']}/", json={"content": "Allergic to nuts"})
    if "review" in line:
        found["waiting"] = made(server, "memories/", {"content": "Plays go", "status": "pending"})["id"]
    if "build" in line:
        wanted = {"name": "tides", "description": "Tells when the tide is high"}
        found["build"] = made(server, "builds/", wanted)["build_id"]
    return found


@pytest.mark.parametrize(
    ("arguments", "given", "method", "path"), CASES, ids=[" ".join(case[0])[:40] for case in CASES]
)
@pytest.mark.usefixtures("capability")
def test_every_answer_is_as_openapi_describes_it(
    izzy: Izzy, server: Server, arguments: list[str], given: str, method: str, path: str
) -> None:
    there = placed(server, arguments)
    done = izzy.run(*(word.format(**there) for word in arguments), "--json", given=given.format(**there))
    found = answers(done)
    assert found
    responses = operation(path, method)["responses"]
    (schema,) = [
        answer["content"]["application/json"]["schema"]
        for status, answer in responses.items()
        if status.startswith("2")
    ]
    assert [problem for answer in found for problem in problems(schema, answer)] == []


def commands(group: click.Group, *path: str) -> Iterator[tuple[str, click.Command]]:
    """All commands below, those that are groups and do something by themselves too, by name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield " ".join([*path, name]), command


def test_every_command_that_asks_the_server_has_it() -> None:
    lacking = {
        name
        for name, command in commands(izzy_command)
        if "as_json" not in {p.name for p in command.params}
    }
    assert lacking == {"logout", "completion", "hook install", "hook remove"}


def test_a_page_is_what_the_server_answers_byte_for_byte(izzy: Izzy, server: Server) -> None:
    made(server, "memories/", {"content": "Zoë likes “☕”\u2028"})
    with server.http as client:
        answer = client.get("/api/v1/memories/?ordering=-created_at&page=1&page_size=20")
    assert izzy.run("list", "--json", PYTHONIOENCODING="ascii").ok().out == answer.content + b"\n"


def test_what_a_build_says_is_a_message_a_line(izzy: Izzy, server: Server) -> None:
    wanted = {"name": "moons", "description": "Tells the phase of the moon"}
    build = made(server, "builds/", wanted)["build_id"]
    made(server, f"builds/{build}/cancel/", {})
    done = izzy.run("builds", "follow", build, "--json")
    assert done.code == 1
    lines = [json.loads(line) for line in done.text.splitlines()]
    assert [line.pop("build") for line in lines] == [build] * len(lines)
    described = {"$ref": "#/components/schemas/BuilderMessageOutput"}
    assert lines
    assert [problem for line in lines for problem in problems(described, line)] == []


def test_a_deletion_of_which_the_server_says_nothing_prints_nothing(izzy: Izzy, server: Server) -> None:
    note = made(server, "memories/", {"content": "Forget me"})["id"]
    assert izzy.run("forget", note, "--yes", "--json").ok().out == b""
    assert izzy.run("show", note).code == 4
