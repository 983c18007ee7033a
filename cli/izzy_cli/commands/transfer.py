"""Taking everything out, and bringing other programs' memories in."""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import click

from izzy_cli.client import LONG_SECONDS, Answer, Client, connect
from izzy_cli.errors import Exit, Problem, missing
from izzy_cli.options import decoded, id_of, json_option, page_options
from izzy_cli.output import (
    Column,
    Row,
    is_terminal,
    moment,
    note,
    plain,
    progress,
    say,
    show_answer,
    show_page,
    show_rows,
    styled,
)
from izzy_cli.patience import Patience

OPEN = ("waiting", "running")
POLL_SECONDS = (0.2, 2.0)
"""How often a running import is looked at: at first, and after a while."""
SHOWN_PLACES = 5
STDIN = Path("-")


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option(
    "--format",
    "kind",
    type=click.Choice(["jsonl", "markdown"]),
    default="jsonl",
    show_default=True,
    help="JSON Lines, which can be imported again, or a zip of Markdown files.",
)
@click.option("--conversation", help="Only this conversation, as Markdown.")
@click.option("--force", "-f", is_flag=True, help="Write over a file that is there.")
@click.option("--json", "as_json", is_flag=True, help="JSON Lines or nothing.")
def export(file: Path | None, kind: str, conversation: str | None, force: bool, as_json: bool) -> None:
    """Take out everything that Izzy keeps for you, or one conversation.

    To FILE, or to standard output. A file is complete or not there.
    """
    if as_json and (conversation or kind == "markdown"):
        raise missing("A conversation and Markdown files have no form in JSON; leave --json out.")
    to_stdout = file is None or file == STDIN
    if to_stdout and kind == "markdown" and not conversation and is_terminal():
        raise missing("A zip is nothing for a terminal; name a file.")
    if file and not to_stdout and file.exists() and not force:
        raise missing(f"{file} is there already; --force writes over it.")
    params = {"conversation": conversation} if conversation else {"format": kind}
    with connect().stream("GET", "export/", params=params, seconds=LONG_SECONDS) as pieces:
        if file is None or to_stdout:
            for piece in pieces:
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
            return
        written = _write(file, pieces)
    note(f"{file}: {written:,} bytes.")


def _write(file: Path, pieces: Iterator[bytes]) -> int:
    """How many bytes were written. The file only gets its name when it is whole; for its owner's eyes only."""
    partial = file.with_name(f"{file.name}.part")
    written = 0
    try:
        partial.unlink(missing_ok=True)
        partial.touch(mode=0o600)
        with partial.open("wb") as opened:
            for piece in pieces:
                written += opened.write(piece)
        partial.replace(file)
    except OSError as error:
        raise Problem(f"{file} cannot be written: {error.strerror}.") from None
    finally:
        partial.unlink(missing_ok=True)
    return written


@click.command("import")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option(
    "--format",
    "kind",
    default="auto",
    show_default=True,
    help="Where it comes from; izzy tells by itself.",
)
@click.option(
    "--pasted",
    is_flag=True,
    help="What is piped in is text copied from another assistant's list of memories.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be taken.")
@click.option(
    "--own",
    is_flag=True,
    help="It is your own export: keep where notes came from and how far they are trusted.",
)
@click.option(
    "--accept", is_flag=True, help="Trust imported notes at once instead of keeping them for review."
)
@click.option("--no-wait", is_flag=True, help="Do not wait for its end.")
@json_option
def import_files(
    files: tuple[Path, ...], kind: str, pasted: bool, no_wait: bool, as_json: bool, **switches: bool
) -> None:
    """Bring in an export of Izzy or of another program.

    What it may be: Izzy's own, ChatGPT's and Claude's zips, mem0, Letta, the MCP memory server, Markdown, CSV. The same
    again brings nothing new. The exit code is 1 where something in it was wrong or its end is missing; the rest is taken
    all the same.
    """
    if pasted and files not in {(), (STDIN,)}:
        raise missing("--pasted is for text that is piped in.")
    if not files and is_terminal(sys.stdin):
        raise missing("Name the files to bring in, or pipe one in.")
    client = connect()
    fields = {"format": kind, **{name: "true" for name, on in switches.items() if on}}
    bad = 0
    for file in files or (STDIN,):
        answer = _upload(client, file, fields, pasted=pasted)
        if not no_wait:
            answer = follow_import(client, answer, str(file), quiet=as_json)
        show_answer(answer, show_import, as_json=as_json)
        report = answer.value["report"]
        ended_well = answer.value["state"] not in {"failed", "cancelled"}
        bad += not ended_well or bool(report["wrong"] or report["notes"])  # a note: its end is missing
    if bad:
        raise Problem(f"Not all could be taken of {bad} of {len(files) or 1} files; see above.")


def _upload(client: Client, file: Path, fields: dict[str, str], *, pasted: bool) -> Answer:
    if pasted:
        text = decoded(sys.stdin.buffer.read(), "What was piped in")
        if not text.strip():
            raise missing("Nothing was piped in.")
        return client.request(
            "POST", "import/", files={"text": (None, text)}, data=fields, seconds=LONG_SECONDS
        )
    with ExitStack() as opened:
        try:
            content: IO[bytes] = (
                sys.stdin.buffer if file == STDIN else opened.enter_context(file.open("rb"))
            )
        except OSError as error:
            raise missing(f"{file} cannot be read: {error.strerror}.") from None
        if file == STDIN:  # a pipe can be read once, and a request may have to be sent again
            import io

            content = io.BytesIO(content.read())
        name = "piped" if file == STDIN else file.name
        sent = {"file": (name, content, "application/octet-stream")}
        return client.request("POST", "import/", files=sent, data=fields, seconds=LONG_SECONDS)


def follow_import(client: Client, answer: Answer, name: str, *, quiet: bool) -> Answer:
    """The import when it has ended. Ctrl-C ends the waiting, not the import."""
    path = f"import/{id_of(answer.value['id'])}/"
    wait, longest = POLL_SECONDS
    patience = Patience(note, heard=True)
    try:
        with progress(name, quiet=quiet) as show:
            while answer.value["state"] in OPEN:
                far = answer.value["progress"]
                show(far["done"], far["total"] or None)
                time.sleep(wait)
                wait = min(wait * 1.3, longest)
                try:
                    answer = client.get(path)
                    patience.came()
                except Problem as problem:
                    patience.wait(problem)
    except KeyboardInterrupt:
        message = f"The import goes on without you; see: izzy imports {answer.value['id']}"
        raise Problem(message, Exit.INTERRUPTED) from None
    except Problem as problem:
        if problem.exit_code == Exit.UNREACHABLE:
            problem.message += f" The import goes on without you; see: izzy imports {answer.value['id']}"
        raise
    return answer


KINDS = [
    Column("Kind", lambda row: row["kind"].replace("_", " "), narrow=True),
    *(
        Column(name.capitalize(), lambda row, name=name: row[name], narrow=True)  # type: ignore[misc]
        for name in ("taken", "merged", "skipped", "wrong")
    ),
]


def show_import(row: Row) -> None:
    """An import with its report."""
    what = "tried" if row["dry_run"] else "import"
    name = plain(row["name"] or "text", one_line=True)
    say(f"{name}: {what} as {plain(row['format'] or 'unknown')}, {row['state']} ({row['id']})")
    report = row["report"]
    if report["kinds"]:
        show_rows(KINDS, report["kinds"], empty="")
    for skipped in report["skipped"]:
        places = ", ".join(skipped["places"][:SHOWN_PLACES])
        more = ", …" if skipped["count"] > SHOWN_PLACES else ""
        reason = plain(skipped["reason"], one_line=True).rstrip(".")
        say(
            f"{skipped['count']} × {skipped['kind'].replace('_', ' ')} skipped: {reason} "
            f"({plain(places, one_line=True)}{more})"
        )
    for wrong in report["wrong"]:
        place = wrong["place"] or f"line {wrong['line']}"
        say(styled(plain(f"{place}: {wrong['message']}", one_line=True), "yellow"))
    for sentence in report["notes"]:
        say(plain(sentence, one_line=True))
    if row["error"]:
        say(styled(plain(row["error"]["message"], one_line=True), "red"))


IMPORTS = [
    Column("File", lambda row: row["name"] or "text", under=lambda row: row["id"]),
    Column("State", lambda row: f"{row['state']}, dry run" if row["dry_run"] else row["state"]),
    Column("When", lambda row: moment(row["created_at"]), narrow=True),
]


@click.command()
@click.argument("import_id", metavar="[ID]", required=False)
@click.option("--follow", is_flag=True, help="Wait for its end.")
@click.option("--cancel", is_flag=True, help="Stop it; what was taken stays.")
@page_options
@json_option
def imports(
    import_id: str | None, follow: bool, cancel: bool, page: int, page_size: int, as_json: bool
) -> None:
    """List imports, or show, follow or cancel one."""
    client = connect()
    if import_id is None:
        if follow or cancel:
            raise missing("Say which import.")
        answer = client.get("import/", {"page": page, "page_size": page_size})
        show_page(answer, IMPORTS, page, page_size, as_json=as_json, empty="There are no imports.")
        return
    path = f"import/{id_of(import_id)}/"
    answer = client.post(f"{path}cancel/", {}) if cancel else client.get(path)
    if follow:
        answer = follow_import(client, answer, answer.value["name"] or "text", quiet=as_json)
    show_answer(answer, show_import, as_json=as_json)
