"""Capabilities: which there are, and running one."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import click
from click.shell_completion import CompletionItem

from izzy_cli.client import LONG_SECONDS, connect
from izzy_cli.errors import Exit, Problem, missing
from izzy_cli.options import contents, decoded, id_of, json_option, page_options
from izzy_cli.output import Column, cut, moment, note, plain, say, say_json, show_page

STATUSES = ("building", "active", "failed", "disabled")
COMPLETION_SECONDS = 2.0


def _state(row: Mapping[str, Any]) -> str:
    status = str(row["status"])
    return f"{status}, not approved" if row["needs_approval"] and not row["approved"] else status


COLUMNS = [
    Column("Name", lambda row: row["name"], narrow=True),
    Column("Does", lambda row: row["description"], most=200),
    Column("State", _state),
    Column("Runs", lambda row: row["runs"], narrow=True),
    Column("Last", lambda row: moment(row["last_run_at"]), narrow=True),
]


@click.command()
@click.argument("words", nargs=-1)
@click.option("--status", "-s", type=click.Choice(STATUSES))
@click.option("--tag", "-t")
@page_options
@json_option
def capabilities(
    words: tuple[str, ...], status: str | None, tag: str | None, page: int, page_size: int, as_json: bool
) -> None:
    """List capabilities, or those that fit some words."""
    params = {"q": " ".join(words), "status": status, "tag": tag, "page": page, "page_size": page_size}
    answer = connect().get("capabilities/", params)
    show_page(answer, COLUMNS, page, page_size, as_json=as_json, empty="There are no such capabilities.")


def _names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of active capabilities, for the shell; none where the server does not answer at once."""
    with suppress(Problem, ValueError, KeyError, TypeError):
        client, wanted = connect(), {"status": "active", "page_size": "200"}
        page = client.request("GET", "capabilities/", params=wanted, seconds=COMPLETION_SECONDS)
        rows = page.value["results"]
        return [
            CompletionItem(row["name"], help=cut(row["description"], 60))
            for row in rows
            if row["name"].startswith(incomplete)
        ]
    return []


@click.command()
@click.argument("capability", shell_complete=_names)
@click.argument("pairs", metavar="[NAME=VALUE]...", nargs=-1)
@click.option(
    "--input",
    "given",
    help="Its input as a JSON object; `-` reads it from standard input, @FILE from a file.",
)
@json_option
def run(capability: str, pairs: tuple[str, ...], given: str | None, as_json: bool) -> None:
    """Run a capability and print its result.

    NAME=VALUE pairs are its input, read as its schema says (a number, a text, …), and come on top of --input. What it
    printed goes to standard error. The exit code is 1 where the run failed.
    """
    client, path = connect(), f"capabilities/{id_of(capability)}/"
    values = _input(given)
    if pairs:
        schema = client.get(path).value["input_schema"]
        values |= dict(_pair(pair, schema) for pair in pairs)
    answer = client.post(f"{path}run/", {"input": values}, seconds=LONG_SECONDS)
    outcome = answer.value
    if as_json:
        say_json(answer.content)
    else:
        if outcome["stdout"]:
            note(plain(outcome["stdout"]).rstrip("\n"))
        if outcome["result"] is not None:
            say(plain(outcome["result"]))
    if not outcome["ok"]:
        said = (outcome["error"] or {}).get("message", "").strip().splitlines()
        more = "" if len(said) < 2 else " (--json shows all of it)"
        raise Problem(f"{said[-1] if said else 'The run failed.'}{more}", Exit.FAILURE)


def _input(given: str | None) -> dict[str, Any]:
    if given is None:
        return {}
    text = given
    if given == "-" or given.startswith("@"):
        from pathlib import Path

        text = decoded(contents(Path(given.removeprefix("@"))), "The input")
    try:
        values = json.loads(text)
    except ValueError as error:
        raise missing(f"--input is not JSON: {error}.") from None
    if not isinstance(values, dict):
        raise missing('--input must be a JSON object, such as {"city": "Oslo"}.')
    return values


def _pair(pair: str, schema: Mapping[str, Any]) -> tuple[str, object]:
    """The name and value of `NAME=VALUE`, the value of the type that the schema gives it."""
    name, equals, text = pair.partition("=")
    if not equals or not name:
        raise missing(f"{pair[:60]!r} is not NAME=VALUE.")
    properties = schema.get("properties")
    described = properties.get(name) if isinstance(properties, dict) else None
    kinds = described.get("type", []) if isinstance(described, dict) else []
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds == ["string"]:
        return name, text
    try:
        value = json.loads(text)
    except ValueError:
        if kinds and "string" not in kinds:
            raise missing(f"{name} must be of the type {' or '.join(kinds)}: {text[:60]!r}.") from None
        return name, text
    if "string" in kinds and not isinstance(value, _TYPES.get(str(kinds[0]), object)):
        return name, text
    return name, value


_TYPES: dict[str, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
    "string": str,
    "null": type(None),
}
