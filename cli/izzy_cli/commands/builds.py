"""Builds of capabilities: which there are, following one, answering what it asks."""

from typing import Any

import click

from izzy_cli.client import Client, connect
from izzy_cli.errors import ConnectionLost, Exit, Problem, missing
from izzy_cli.options import (
    Command,
    given,
    id_of,
    json_option,
    page_options,
    refuse_options_before_command,
)
from izzy_cli.output import (
    Column,
    Row,
    moment,
    note,
    plain,
    say,
    say_json,
    show_answer,
    show_page,
    somebody_is_there,
    styled,
)
from izzy_cli.patience import Patience

OPEN = ("queued", "running")
STATES = (*OPEN, "done", "failed", "cancelled")
COLUMNS = [
    Column("Capability", lambda row: row["name"], under=lambda row: row["id"]),
    Column("State", lambda row: row["state"], narrow=True),
    Column("Asked for", lambda row: row["request"] or row["feedback"] or row["description"], most=120),
    Column("When", lambda row: moment(row["created_at"]), narrow=True),
]


def list_options(function: Command) -> Command:
    """Which builds to list, and how."""
    function = page_options(json_option(function))
    function = click.option("--name", help="Only builds of this capability.")(function)
    return click.option("--state", "-s", type=click.Choice(STATES))(function)


@click.group(invoke_without_command=True)
@list_options
@click.pass_context
def builds(ctx: click.Context, /, **options: Any) -> None:
    """List builds of capabilities, follow them, and answer what they ask."""
    refuse_options_before_command(ctx)
    if not ctx.invoked_subcommand:
        ctx.invoke(list_builds, **options)


@builds.command("list")
@list_options
def list_builds(state: str | None, name: str | None, page: int, page_size: int, as_json: bool) -> None:
    """List builds, newest first."""
    answer = connect().get(
        "builds/", {"state": state, "name": name, "page": page, "page_size": page_size}
    )
    show_page(answer, COLUMNS, page, page_size, as_json=as_json, empty="There are no such builds.")


@builds.command()
@click.argument("build_id", metavar="ID")
@json_option
def show(build_id: str, as_json: bool) -> None:
    """Show a build and its messages."""
    answer = connect().get(f"builds/{id_of(build_id)}/", {"transcript": None if as_json else "false"})
    if as_json:
        say_json(answer.content)
        return
    build = answer.value
    say(f"{plain(build['name'])}: {build['state']}")
    for name in ("description", "request", "feedback"):
        if build[name]:
            say(f"{styled(f'{name:<12}', 'dim')} {plain(build[name], one_line=True)}")
    for message in build["messages"]:
        say(message_line(message))
    if build["error"]:
        say(styled(plain(build["error"]["message"], one_line=True), "red"))


@builds.command()
@click.argument("build_id", metavar="ID")
@json_option
def follow(build_id: str, as_json: bool) -> None:
    """Show a build's messages as they come, until it has ended.

    On a terminal what the builder asks is answered at once. --json prints a message a line. A server that starts anew
    meanwhile is waited for, up to a minute.
    """
    client, path = connect(), f"builds/{id_of(build_id)}/"
    patience, seen = Patience(note), 0
    while True:
        try:
            headers = {"Last-Event-ID": str(seen)}
            with client.events("GET", f"{path}events/", headers=headers) as messages:
                patience.answered()
                for event in messages:
                    message = event.value
                    if message.get("type") == "error" and "number" not in message:
                        raise Problem(str(message.get("message")), Exit.SIGNED_OUT)
                    seen = message["number"]
                    patience.came()
                    if as_json:
                        say_json(event.content)
                    _followed(client, path, message, as_json=as_json)
            build = client.get(path, {"transcript": "false"}).value
            if build["state"] not in OPEN:
                break
            raise ConnectionLost("The messages of the build ended before it did.")
        except Problem as problem:
            try:
                patience.wait(problem)
            except Problem as end:
                if seen and end.exit_code == Exit.UNREACHABLE:
                    end.message += f" See later: izzy builds follow {build_id}"
                raise
    if not as_json:
        say(f"{plain(build['name'])}: {build['state']}")
    if build["state"] != "done":
        raise Problem(
            build["error"]["message"] if build["error"] else f"The build was {build['state']}."
        )


def _followed(client: Client, path: str, message: Row, *, as_json: bool) -> None:
    if not as_json:
        say(message_line(message))
    if message["type"] != "question" or message["read"]:
        return
    if as_json or not somebody_is_there():
        note(f"Answer with: izzy builds answer {message['build']} …")
        return
    try:
        client.post(f"{path}answer/", {"id": message["id"], **_asked(message["payload"])})
    except Problem as problem:
        if problem.exit_code != Exit.FAILURE:
            raise
        note(problem.message)


def _asked(payload: Row) -> dict[str, Any]:
    if payload.get("kind") in {"network", "secrets"}:
        return {"decision": "allow" if click.confirm("Allow it?", default=False, err=True) else "deny"}
    return {"text": click.prompt("Your answer", err=True)}


def message_line(message: Row) -> str:
    """A message of a build as a line."""
    payload = message["payload"]
    said = (
        payload.get("text")
        or payload.get("message")
        or payload.get("decision")
        or payload.get("stage")
        or ""
    )
    why = f" ({payload['why']})" if payload.get("why") else ""
    signs = {"question": "?", "answer": "→", "progress": "·", "complete": "✓", "error": "✗"}
    return plain(f"{signs.get(message['type'], '·')} {said}{why}", one_line=True)


@builds.command()
@click.argument("build_id", metavar="ID")
@click.argument("text", nargs=-1)
@click.option("--allow", "decision", flag_value="allow", help="Allow the hosts or secrets it asks for.")
@click.option("--deny", "decision", flag_value="deny", help="Decline them.")
@click.option("--question", help="Which question; the newest by default.")
@json_option
def answer(
    build_id: str, text: tuple[str, ...], decision: str | None, question: str | None, as_json: bool
) -> None:
    """Answer what a build asks: with TEXT, or --allow or --deny."""
    if bool(text) == bool(decision):
        raise missing("Say the answer, or --allow or --deny.")
    body = given({"text": " ".join(text) or None, "decision": decision, "id": question})
    result = connect().post(f"builds/{id_of(build_id)}/answer/", body)
    show_answer(result, lambda row: say(f"Answered; the build is {row['state']}."), as_json=as_json)


@builds.command()
@click.argument("build_id", metavar="ID")
@json_option
def cancel(build_id: str, as_json: bool) -> None:
    """Cancel a build that goes on."""
    result = connect().post(f"builds/{id_of(build_id)}/cancel/", {})
    show_answer(result, lambda row: say(f"{plain(row['name'])}: {row['state']}"), as_json=as_json)
