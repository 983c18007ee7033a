"""Notes: saving, listing, showing."""

from typing import Any

import click

from izzy_cli.client import connect
from izzy_cli.options import (
    KINDS,
    MAX_PAGE_SIZE,
    TIERS,
    given,
    id_of,
    json_option,
    note_options,
    page_options,
    text_of,
)
from izzy_cli.output import (
    Column,
    Row,
    day,
    moment,
    page_line,
    plain,
    say,
    say_json,
    show_answer,
    show_page,
    show_rows,
    styled,
)
from izzy_cli.unmarked import unmarked

STATUSES = ("active", "pending", "archived", "superseded", "deleted")
ORIGINS = ("user", "assistant", "extraction", "import", "api", "mcp", "file")
ORDERS = ("created_at", "updated_at", "importance", "priority", "last_accessed", "access_count")

NOTES = [
    Column("Note", lambda row: unmarked(row["content"]), under=lambda row: row["id"], most=300),
    Column("Kind", lambda row: row["kind"], narrow=True),
    Column("Status", lambda row: row["status"], narrow=True),
    Column("Since", lambda row: day(row["created_at"]), narrow=True),
]


@click.command()
@click.argument("text", nargs=-1)
@note_options
@json_option
def save(text: tuple[str, ...], as_json: bool, **fields: Any) -> None:
    """Save a note.

    TEXT is the note; `-` or nothing reads it from standard input.
    """
    answer = connect().post("memories/", {"content": text_of(text, "what to remember"), **given(fields)})
    show_answer(answer, lambda row: say(f"Saved {row['id']}."), as_json=as_json)


@click.command("list")
@click.argument("words", nargs=-1)
@click.option("--tag", "-t")
@click.option("--kind", "-k", type=click.Choice(KINDS))
@click.option("--status", "-s", type=click.Choice(STATUSES), help="All but deleted by default.")
@click.option("--tier", type=click.Choice(TIERS))
@click.option("--category")
@click.option("--source", type=click.Choice(ORIGINS), help="Where notes came from.")
@click.option("--as-of", help="What held at this time, as it read then.")
@click.option(
    "--order", type=click.Choice([*ORDERS, *(f"-{name}" for name in ORDERS)]), default="-created_at"
)
@click.option("--all", "every", is_flag=True, help="All pages; with --json one object a page and line.")
@page_options
@json_option
def list_notes(
    words: tuple[str, ...],
    order: str,
    every: bool,
    page: int,
    page_size: int,
    as_json: bool,
    **filters: Any,
) -> None:
    """List notes.

    Only those in whose text or tags all WORDS occur, where some are given.
    """
    client = connect()
    params = {**filters, "q": " ".join(words), "ordering": order}
    size = MAX_PAGE_SIZE if every else page_size
    rows: list[Row] = []
    while True:
        answer = client.get("memories/", {**params, "page": page, "page_size": size})
        if as_json:
            say_json(answer.content)
        rows += answer.value["results"]
        if not every or not answer.value["next"]:
            break
        page += 1
    if not as_json:
        show_rows(NOTES, rows, empty="There are no such notes.")
        if not every:
            page_line(answer.value, page, size)


@click.command()
@click.argument("note_id", metavar="ID")
@click.option("--history", is_flag=True, help="Its versions, newest first.")
@click.option("--links", is_flag=True, help="The notes near it.")
@page_options
@json_option
def show(note_id: str, history: bool, links: bool, page: int, page_size: int, as_json: bool) -> None:
    """Show a note, its history or its links."""
    path = f"memories/{id_of(note_id)}/"
    if not history and not links:
        answer = connect().get(path)
        show_answer(answer, show_note, as_json=as_json)
        return
    part = "history/" if history else "related/"
    answer = connect().get(path + part, {"page": page, "page_size": page_size})
    near = [Column("Relation", lambda row: row["relation"], narrow=True), *NOTES[:2]]
    columns = VERSIONS if history else near
    show_page(answer, columns, page, page_size, as_json=as_json, empty="There are none.")


VERSIONS = [
    Column("No.", lambda row: row["version"], narrow=True),
    Column("Note", lambda row: row["content"], most=300),
    Column("Change", lambda row: f"{row['action']} by {row['actor']}"),
    Column("When", lambda row: moment(row["at"]), narrow=True),
]


def show_note(row: Row) -> None:
    """A note in full: its text, then its fields, a line each."""
    say(plain(row["content"]))
    say()
    fields = {
        "id": row["id"],
        "kind": f"{row['kind']}, importance {row['importance']}, {row['tier'].replace('_', ' ')}",
        "status": row["status"] + (", faded" if row["faded"] else ""),
        "tags": ", ".join(row["tags"]),
        "category": row["category"],
        "matters": ", ".join(row["occasions"]),
        "valid": " – ".join(filter(None, (moment(row["valid_from"]), moment(row["valid_to"])))),
        "from": f"{row['origin']}, trust {row['trust']}",
        "review": row["review_reason"],
        "replaced": row["superseded_by"],
        "saved": moment(row["created_at"]),
        "changed": moment(row["updated_at"]),
    }
    for name, value in fields.items():
        if value:
            say(f"{styled(f'{name:<9}', 'dim')} {plain(value, one_line=True)}")
