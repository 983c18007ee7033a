"""Deciding on the notes that wait."""

import click

from izzy_cli.client import Answer, Client, connect
from izzy_cli.commands.editing import edited
from izzy_cli.errors import Exit, Problem, missing
from izzy_cli.options import (
    MAX_PAGE_SIZE,
    id_of,
    json_option,
    page_options,
    refuse_options_before_command,
    yes_option,
)
from izzy_cli.output import (
    Column,
    Row,
    cut,
    day,
    note,
    plain,
    say,
    say_json,
    show_page,
    somebody_is_there,
    styled,
)

WAITING = [
    Column("Note", lambda row: row["content"], under=lambda row: row["id"], most=300),
    Column("Proposes", lambda row: row["proposal"], narrow=True),
    Column("Why", lambda row: row["review_reason"]),
    Column("Since", lambda row: day(row["created_at"]), narrow=True),
]
CHOICES = "[a]ccept, [e]dit and accept, [r]eject, [s]kip, [q]uit"


@click.group(invoke_without_command=True)
@page_options
@json_option
@click.pass_context
def review(ctx: click.Context, page: int, page_size: int, as_json: bool) -> None:
    """Decide on the notes that wait for you.

    On a terminal one by one; elsewhere, and with --json, it lists them.
    """
    refuse_options_before_command(ctx)
    if ctx.invoked_subcommand:
        return
    client = connect()
    if somebody_is_there() and not as_json:
        _one_by_one(client)
        return
    answer = client.get("memories/review/", {"page": page, "page_size": page_size})
    show_page(answer, WAITING, page, page_size, as_json=as_json, empty="Nothing waits for review.")


@review.command("list")
@page_options
@json_option
@click.pass_context
def list_waiting(ctx: click.Context, page: int, page_size: int, as_json: bool) -> None:
    """List the notes that wait."""
    answer = connect().get("memories/review/", {"page": page, "page_size": page_size})
    show_page(answer, WAITING, page, page_size, as_json=as_json, empty="Nothing waits for review.")


@review.command()
@click.argument("note_ids", metavar="ID...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="All that wait.")
@yes_option
@json_option
def accept(note_ids: tuple[str, ...], every: bool, yes: bool, as_json: bool) -> None:
    """Do what waiting notes propose."""
    _decide("accept", note_ids, every=every, yes=yes, as_json=as_json)


@review.command()
@click.argument("note_ids", metavar="ID...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="All that wait.")
@yes_option
@json_option
def reject(note_ids: tuple[str, ...], every: bool, yes: bool, as_json: bool) -> None:
    """Turn waiting notes down; they can be restored for 30 days."""
    _decide("reject", note_ids, every=every, yes=yes, as_json=as_json)


def _decide(decision: str, note_ids: tuple[str, ...], *, every: bool, yes: bool, as_json: bool) -> None:
    """The server takes as many ids at once as a page has rows; --json prints its answers, one a line."""
    if bool(note_ids) == every:
        raise missing("Name notes, or say --all.")
    client = connect()
    ids = list(note_ids) or _all_waiting(client)
    if not ids:
        note("Nothing waits for review.")
        return
    if every and not yes:
        if not somebody_is_there():
            raise missing(f"Nobody is there to confirm for all {len(ids)}; say --yes.")
        if not click.confirm(f"{decision.capitalize()} all {len(ids)} that wait?", err=True):
            raise Problem("Nothing was decided.")
    failed = []
    for first in range(0, len(ids), MAX_PAGE_SIZE):
        body = {"decision": decision, "notes": ids[first : first + MAX_PAGE_SIZE]}
        answer = client.post("memories/review/", body)
        if as_json:
            say_json(answer.content)
        failed += answer.value["failed"]
    if not as_json:
        done = len(ids) - len(failed)
        say(f"{decision.capitalize()}ed {done} of {len(ids)}.")
    for each in failed:
        note(f"{each['id']}: {plain(each['message'], one_line=True)}")
    if failed:
        raise Problem(f"{len(failed)} could not be decided on.", Exit.FAILURE)


def _all_waiting(client: Client) -> list[str]:
    return [row["id"] for row in _waiting(client)]


def _waiting(client: Client) -> list[Row]:
    rows: list[Row] = []
    page = 1
    while True:
        answer = client.get("memories/review/", {"page": page, "page_size": MAX_PAGE_SIZE}).value
        rows += answer["results"]
        if not answer["next"]:
            return rows
        page += 1


def _one_by_one(client: Client) -> None:
    rows = _waiting(client)
    if not rows:
        say("Nothing waits for review.")
        return
    for number, row in enumerate(rows, 1):
        say(styled(f"\n{number} of {len(rows)} · {row['proposal']} · {row['id']}", "dim"))
        _show(row)
        while True:
            choice = click.prompt(CHOICES, prompt_suffix=": ", err=True).strip().lower()[:1]
            if choice == "q":
                return
            if choice == "s" or (choice in {"a", "r", "e"} and _decided(client, row, choice)):
                break


def _show(row: Row) -> None:
    is_change = row["diff"] and row["proposal"] != "add"
    if is_change:
        signs = {"same": ("", "dim"), "added": ("+", "green"), "removed": ("-", "red")}
        pieces = []
        for piece in row["diff"]:
            sign, style = signs[piece["kind"]]
            text = plain(piece["text"])
            pieces.append(styled(f"[{sign}{text}{sign}]" if sign else text, style))
        say("".join(pieces))
    else:
        say(plain(row["content"]))
    if row["review_reason"]:
        say(styled(f"Waits because: {plain(row['review_reason'], one_line=True)}", "yellow"))
    if (near := row["most_similar"]) and not is_change:
        say(styled(f"Known already: {cut(near['content'], 200)}", "dim"))


def _decided(client: Client, row: Row, choice: str) -> bool:
    """Whether the server did it; where it refused, that is said and the person decides again."""
    path = f"memories/{id_of(row['id'])}/"
    try:
        if choice == "a":
            client.post(f"{path}accept/", {})
        elif choice == "r":
            client.post(f"{path}reject/", {})
        else:
            _accept_edited(client, path, row["content"])
    except Problem as problem:
        if problem.exit_code in {Exit.SIGNED_OUT, Exit.UNREACHABLE}:
            raise
        note(problem.message)
        return problem.exit_code == Exit.NOT_FOUND or problem.code == "not_waiting"
    return True


def _accept_edited(client: Client, path: str, content: str) -> Answer:
    with edited(content + "\n") as file:
        return client.post(f"{path}accept/", {"content": file.read_text(encoding="utf-8").strip()})
