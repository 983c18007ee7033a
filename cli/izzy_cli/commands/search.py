"""Finding what Izzy knows."""

from typing import Any

import click

from izzy_cli.client import connect
from izzy_cli.options import SOURCES, Command, given, json_option, text_of
from izzy_cli.output import Column, day, plain, say, say_json, show_rows
from izzy_cli.unmarked import unmarked


def limits(function: Command) -> Command:
    """The limits that `/search/` and `/context/` take."""
    options = [
        click.option("--source", "-s", "sources", multiple=True, type=click.Choice(SOURCES)),
        click.option("--tag", "-t", "tags", multiple=True, help="Only notes with this tag."),
        click.option("--conversation", help="Only what was said in this one."),
        click.option("--as-of", help="What held at this time."),
        click.option("--threshold", type=click.FloatRange(0, 1), help="Leave out what scores less."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@click.command()
@click.argument("query", nargs=-1)
@click.option("--top-k", "-n", type=click.IntRange(1, 100), help="How many results; 10 by default.")
@limits
@json_option
def search(query: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Search notes, conversations, files and capabilities by meaning and words.

    QUERY is a question or words; `-` or nothing reads it from standard input.
    """
    body = {"query": text_of(query, "what to look for"), **given(options)}
    answer = connect().post("search/", body)
    if as_json:
        say_json(answer.content)
        return
    columns = [
        Column("Score", lambda hit: f"{hit['score']:.2f}", narrow=True),
        Column("Found", lambda hit: unmarked(hit["text"]), under=lambda hit: hit["id"], most=300),
        Column("In", _place, narrow=True),
        Column("When", lambda hit: day(hit["created_at"]), narrow=True),
    ]
    show_rows(columns, answer.value["results"], empty="Nothing was found.")


def _place(hit: dict[str, Any]) -> str:
    source = str(hit["source"])
    return f"{source} (others' words)" if hit.get("untrusted") else source


@click.command()
@click.argument("query", nargs=-1)
@click.option(
    "--budget", "budget_tokens", type=click.IntRange(1, 20_000), help="Tokens; 500 by default."
)
@limits
@json_option
def context(query: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Print what a model should know before it answers.

    QUERY is the message that is to be answered; `-` or nothing reads it from standard input. Nothing is printed where
    nothing fits.
    """
    body = {"query": text_of(query, "the message that is to be answered"), **given(options)}
    answer = connect().post("context/", body)
    if as_json:
        say_json(answer.content)
    elif answer.value["text"]:
        say(plain(answer.value["text"]))
