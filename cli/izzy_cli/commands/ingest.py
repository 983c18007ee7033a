"""Taking in conversations that were held elsewhere."""

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import click

from izzy_cli.client import LONG_SECONDS, Client, connect
from izzy_cli.errors import Problem, missing
from izzy_cli.options import contents, decoded, json_option
from izzy_cli.output import is_terminal, progress, say, say_json
from izzy_cli.transcripts import Batch, Format, Message, batches, messages_of

CHANNEL = "cli"
_INDEX = re.compile(r"messages\[(\d+)\]")


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--session", "-s", help="The conversation's name; a file's own name by default.")
@click.option(
    "--channel", "-c", default=CHANNEL, show_default=True, help="Which program it was held in."
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["auto", "jsonl", "json", "text"]),
    default="auto",
    show_default=True,
)
@click.option("--no-extract", is_flag=True, help="Do not read it for what is worth remembering.")
@json_option
def ingest(
    files: tuple[Path, ...],
    session: str | None,
    channel: str,
    kind: Format,
    no_extract: bool,
    as_json: bool,
) -> None:
    """Take in conversations from files or standard input.

    JSON Lines or a JSON list of messages {role or speaker, content, external_id?, created_at?, session?}, or plain text
    in which a message begins with “user:”, “assistant:” or a name. All is read before anything is sent. The same again
    adds nothing, so a run that was broken off is just repeated. --json prints an answer a batch and line.
    """
    messages = [message for file in files or (Path("-"),) for message in _read(file, session, kind)]
    client, counts = connect(), Counter[str]()
    done = 0
    try:
        with progress("Taking in", quiet=as_json, counted=True) as show:
            show(0, len(messages))
            for batch in batches(messages):
                answer = _send(client, batch, channel, extract=not no_extract)
                if as_json:
                    say_json(answer.content)
                counts.update({name: answer.value[name] for name in ("added", "repeated", "skipped")})
                counts["skipped"] -= batch.after_tools
                done += len(batch.messages)
                show(done, len(messages))
    except Problem as problem:
        if done:
            problem.message += (
                f" {done} of {len(messages)} messages are taken; the same command goes on."
            )
        raise
    if not as_json:
        say(
            f"{counts['added']} messages added, {counts['repeated']} had come before, "
            f"{counts['skipped']} that nobody said are left out."
        )


def _read(file: Path, session: str | None, kind: Format) -> list[Message]:
    if str(file) == "-":
        if is_terminal(sys.stdin):
            raise missing("Name files, or pipe a conversation in.")
        place, name = "standard input", session or ""
    else:
        place, name = str(file), session or file.stem
    messages = messages_of(decoded(contents(file), place), place, name, kind)
    if unnamed := next((message for message in messages if not message.session), None):
        raise missing(
            f"Name the conversation with --session ({unnamed.place} has no session of its own)."
        )
    return messages


def _send(client: Client, batch: Batch, channel: str, *, extract: bool) -> Any:
    body = {
        "session": batch.session,
        "channel": channel,
        "messages": batch.body(),
        "extract": extract,
    }
    try:
        return client.post("ingest/", body, seconds=LONG_SECONDS)
    except Problem as problem:
        # The server names a message by its place in the request; the person knows the file.
        if found := _INDEX.match(str(problem.extra.get("field", ""))):
            index = int(found[1]) - batch.after_tools
            if 0 <= index < len(batch.messages):
                problem.message = f"{batch.messages[index].place}: {problem.message}"
        raise
