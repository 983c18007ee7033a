"""Changing notes, forgetting them, and bringing them back."""

from typing import Any

import click

from izzy_cli.client import LONG_SECONDS, Client, connect
from izzy_cli.commands.editing import edited_note, has_editor
from izzy_cli.errors import Problem, missing
from izzy_cli.options import given, id_of, json_option, note_options, text_of, yes_option
from izzy_cli.output import cut, note, plain, say, say_json, show_answer, somebody_is_there


@click.command()
@click.argument("note_id", metavar="ID")
@click.option("--text", help="The new text; `-` reads it from standard input.")
@note_options
@json_option
def edit(note_id: str, text: str | None, as_json: bool, **fields: Any) -> None:
    """Change a note: its fields by options, or all of it in $EDITOR.

    Nothing is changed where the editor changes nothing. Where the server refuses, what you wrote is kept in a file.
    """
    client, path = connect(), f"memories/{id_of(note_id)}/"
    content = text_of(("-",), "the new text") if text == "-" else text
    changes = given({"content": content, **fields})
    if changes:
        answer = client.patch(path, changes)
    else:
        if not has_editor() and not somebody_is_there():
            raise missing("Nobody is there to edit; name what to change, such as --text or --tag.")
        with edited_note(client.get(path).value) as edited:
            changes = edited.changes()
            if not changes:
                note("Nothing was changed.")
                return
            if client.get(path).value["content"] != edited.before["content"]:
                raise Problem("The note was changed by somebody else meanwhile.")
            answer = client.patch(path, changes)
    show_answer(answer, lambda row: say(f"Changed {row['id']}."), as_json=as_json)


@click.command()
@click.argument("note_ids", metavar="ID...", nargs=-1, required=True)
@click.option("--purge", is_flag=True, help="Remove it everywhere, for good, with a receipt.")
@click.option("--redact", is_flag=True, help="With --purge: also the messages that say the same.")
@yes_option
@json_option
def forget(note_ids: tuple[str, ...], purge: bool, redact: bool, yes: bool, as_json: bool) -> None:
    """Delete notes: out of search at once, and restorable for 30 days.

    On a terminal it asks first. With --purge nothing is left to restore, so without a terminal --yes is needed. --json
    prints the receipts of a purge, one a line; of a deletion the server says nothing.
    """
    if redact and not purge:
        raise missing("--redact is for --purge.")
    if purge and not yes and not somebody_is_there():
        raise missing("A purge cannot be undone; say --yes.")
    client = connect()
    notes = [client.get(f"memories/{id_of(given_id)}/").value for given_id in note_ids]
    if not yes and somebody_is_there():
        for each in notes:
            note(f"  {cut(each['content'], 74)}")
            if purge:
                _warn(client, each["id"], redact=redact)
        question = "Remove this for good?" if purge else "Forget this?"
        if not click.confirm(question, err=True):
            raise Problem("Nothing was forgotten.")
    for each in notes:
        if purge:
            _purge(client, each["id"], redact=redact, as_json=as_json)
        else:
            client.delete(f"memories/{each['id']}/")
            if not as_json:
                say(
                    f"Forgot {each['id']}. It can be brought back for 30 days: izzy restore {each['id']}"
                )


def _warn(client: Client, note_id: str, *, redact: bool) -> None:
    """A purge's finds beside the note itself."""
    preview = client.get(f"memories/{note_id}/purge/").value
    for message in preview["source_messages"]:
        fate = "goes too" if redact else "stays; --redact removes it"
        note(f"    said in “{cut(message['title'], 40)}” ({fate}): {cut(message['excerpt'], 60)}")
    for related in preview["related"]:
        note(f"    a note that says the same stays, {related['id']}: {cut(related['content'], 60)}")


def _purge(client: Client, note_id: str, *, redact: bool, as_json: bool) -> None:
    answer = client.post(f"memories/{note_id}/purge/", {"redact": redact}, seconds=LONG_SECONDS)
    if as_json:
        say_json(answer.content)
        return
    receipt = answer.value
    removed = sum(place["removed"] for place in receipt["places"])
    say(f"Purged {note_id}: {removed} rows removed, receipt {receipt['id']} ({receipt['state']}).")
    for place in receipt["left"]:
        say(f"  left: {plain(place['label'])}, {place['left']}: {plain(place['why'], one_line=True)}")


@click.command()
@click.argument("note_id", metavar="ID")
@click.option("--version", type=click.IntRange(1), help="What the note was in this version.")
@json_option
def restore(note_id: str, version: int | None, as_json: bool) -> None:
    """Bring back a deleted or archived note, or a former version."""
    answer = connect().post(f"memories/{id_of(note_id)}/restore/", given({"version": version}))
    show_answer(
        answer, lambda row: say(f"Restored {row['id']}: {cut(row['content'], 60)}"), as_json=as_json
    )
