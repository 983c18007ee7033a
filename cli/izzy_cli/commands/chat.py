"""Talking with Izzy."""

import sys
from contextlib import suppress
from typing import Any
from uuid import uuid4

import click

from izzy_cli.client import LONG_SECONDS, Client, connect
from izzy_cli.errors import Exit, Problem, missing
from izzy_cli.options import id_of, json_option, page_options, text_of
from izzy_cli.output import Column, is_terminal, moment, note, plain, say, say_json, show_page, styled
from izzy_cli.patience import Patience
from izzy_cli.turns import Printer, Talk, waiting_line

HELP = "A line is a message. Ctrl-C stops an answer, /new begins a conversation, /quit or Ctrl-D ends."
PROMPT = "you> "


@click.command()
@click.argument("message", nargs=-1)
@click.option("--conversation", "-c", help="Go on with this conversation.")
@click.option("--last", "-l", is_flag=True, help="Go on with the newest conversation.")
@click.option("--answer", help="Answer what the conversation asks.")
@click.option(
    "--approve",
    type=click.Choice(["allow", "decline", "conversation", "always"]),
    help="Decide on the tool call that the conversation waits with.",
)
@click.option("--call", help="Which question or tool call, where several wait.")
@click.option("--no-memory", is_flag=True, help="A new conversation that brings up and keeps nothing.")
@click.option("--quiet", "-q", is_flag=True, help="Only the answer; nothing about tools.")
@json_option
def chat(
    message: tuple[str, ...],
    conversation: str | None,
    last: bool,
    answer: str | None,
    approve: str | None,
    call: str | None,
    no_memory: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Talk with Izzy.

    With MESSAGE, or one that is piped in, it prints the answer and ends; else the conversation goes on line by line.
    What tools do stands on standard error. Where Izzy asks something and nobody is there the exit code is 6.
    """
    if sum([bool(message), answer is not None, approve is not None]) > 1:
        raise missing("Say a message, --answer or --approve, one of them.")
    if no_memory and (conversation or last):
        raise missing("--no-memory is for a new conversation.")
    if call is not None and answer is None and approve is None:
        raise missing("--call goes with --answer or --approve.")
    client = connect()
    if last:
        conversation = _newest(client)
    if (answer is not None or approve) and not conversation:
        raise missing("Say which conversation: -c ID or --last.")
    key = id_of(conversation) if conversation else None
    if as_json:
        _as_json(client, key, message, answer, approve, call, use_memory=not no_memory)
        return
    talk = Talk(client, Printer(quiet=quiet), key, use_memory=not no_memory)
    if answer is not None:
        talk.answer(answer, call)
    elif approve:
        talk.decide(approve, call)
    elif message or not (is_terminal(sys.stdin) and is_terminal()):
        talk.say(text_of(message, "what to say"))
    else:
        _line_by_line(talk)
        return
    if is_terminal() and not quiet:
        note(styled(f"Go on with: izzy chat -c {talk.conversation}", "dim", sys.stderr))


def _newest(client: Client) -> str:
    found = client.get("conversations/", {"channel": "chat", "page_size": 1}).value["results"]
    if not found:
        raise Problem("There is no conversation yet.", Exit.NOT_FOUND)
    return str(found[0]["id"])


def _as_json(
    client: Client,
    conversation: str | None,
    message: tuple[str, ...],
    answer: str | None,
    approve: str | None,
    call: str | None,
    *,
    use_memory: bool,
) -> None:
    """The turn as a whole, as the server answers it."""
    body: dict[str, Any] = {"id": call} if call else {}
    path = f"conversations/{conversation}/{'answer' if approve is None else 'approve'}/"
    if answer is not None:
        body["text"] = answer
    elif approve is not None:
        body["decision"] = approve
    else:
        path, body = "chat/", {"message": text_of(message, "what to say"), "client_id": uuid4().hex}
        if conversation:
            body["conversation"] = conversation
        elif not use_memory:
            body["use_memory"] = False
    patience = Patience(note)
    while True:
        try:
            result = client.post(path, body, seconds=LONG_SECONDS)
            break
        except Problem as problem:
            if "client_id" not in body:  # it is not known whether the server took it
                raise
            patience.wait(problem)
    say_json(result.content)
    turn = result.value
    question, approval = turn["pending_question"], turn["pending_approval"]
    if question or approval:
        raise Problem(waiting_line(turn["conversation"], question, approval), Exit.WAITING)


def _line_by_line(talk: Talk) -> None:
    with suppress(ImportError):
        import readline  # noqa: F401  arrows and history at the prompt
    note(styled(HELP, "dim", sys.stderr))
    if talk.conversation:
        found = talk.client.get(f"conversations/{talk.conversation}/").value
        note(styled(f"“{plain(found['title'])}”, {found['messages']} messages", "dim", sys.stderr))
    while True:
        try:
            line = input(PROMPT).strip()
        except EOFError:
            say()
            return
        except KeyboardInterrupt:
            say()
            continue
        if line == "/quit":
            return
        if line == "/new":
            talk.conversation = None
        elif line in {"/help", "/?"}:
            note(HELP)
        elif line:
            _one_turn(talk, line)


def _one_turn(talk: Talk, line: str) -> None:
    """A failure of one message does not end the conversation, unless nothing can go on."""
    try:
        talk.say(line)
    except Problem as problem:
        if problem.exit_code == Exit.SIGNED_OUT:
            raise
        note(plain(problem.message, one_line=True))


CONVERSATIONS = [
    Column("Title", lambda row: row["title"], under=lambda row: row["id"]),
    Column("Channel", lambda row: row["channel"], narrow=True),
    Column("Messages", lambda row: row["messages"], narrow=True),
    Column("Last", lambda row: moment(row["updated_at"]), narrow=True),
]


@click.command()
@click.argument("words", nargs=-1)
@click.option("--channel", help="Only of this channel: chat, or a program's name.")
@page_options
@json_option
def conversations(
    words: tuple[str, ...], channel: str | None, page: int, page_size: int, as_json: bool
) -> None:
    """List conversations, or those in which some words occur."""
    params = {"q": " ".join(words), "channel": channel, "page": page, "page_size": page_size}
    answer = connect().get("conversations/", params)
    show_page(
        answer, CONVERSATIONS, page, page_size, as_json=as_json, empty="There are no such conversations."
    )
