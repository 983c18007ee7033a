"""Options that several commands share, and how they read what is piped to them."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from izzy_cli.errors import Problem, missing

Command = TypeVar("Command", bound=Callable[..., Any])

KINDS = ("decision", "insight", "fact", "preference", "project", "conversation", "general")
TIERS = ("short_term", "long_term")
SOURCES = ("memory", "conversation", "file", "capability")
MAX_PAGE_SIZE = 200

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print what the server answered, as JSON."
)
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


def page_options(function: Command) -> Command:
    """`--page` and `--page-size`."""
    size = click.IntRange(1, MAX_PAGE_SIZE)
    function = click.option("--page-size", "-n", type=size, default=20, show_default=True)(function)
    return click.option("--page", "-p", type=click.IntRange(1), default=1, help="Which page.")(function)


def note_options(function: Command) -> Command:
    """The fields of a note that may be set beside its text."""
    options = [
        click.option("--tag", "-t", "tags", multiple=True, help="Can be given several times."),
        click.option("--kind", "-k", type=click.Choice(KINDS)),
        click.option("--importance", "-i", type=click.IntRange(1, 5)),
        click.option("--tier", type=click.Choice(TIERS)),
        click.option("--category"),
        click.option("--occasion", "occasions", multiple=True, help="When it matters; several times."),
        click.option("--valid-from", help="A time such as 2026-05-01T12:00:00Z."),
        click.option("--valid-to"),
        click.option("--status", type=click.Choice(["active", "pending", "archived"])),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def refuse_options_before_command(context: click.Context) -> None:
    """Refuse the options of a group that lists by itself where a command of it follows, which would not see them.

    Raises Problem.
    """
    sources = map(context.get_parameter_source, context.params)
    if context.invoked_subcommand and ParameterSource.COMMANDLINE in sources:
        raise missing(
            f"Options come after the command: izzy {context.info_name} {context.invoked_subcommand} …"
        )


def given(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that were given, as JSON has them."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in fields.items()
        if value is not None and value != ()
    }


def text_of(words: tuple[str, ...], what: str) -> str:
    """The text of the arguments, or of standard input where there are none or they are `-`."""
    if words and words != ("-",):
        return " ".join(words)
    if not words and sys.stdin.isatty():
        raise missing(f"Say {what}, or pipe it in.")
    text = decoded(sys.stdin.buffer.read(), "What was piped in")
    if not text.strip():
        raise missing(f"Nothing was piped in; say {what}.")
    return text.strip("\n")


def decoded(content: bytes, place: str) -> str:
    """UTF-8, or UTF-16 with its mark, as text. Raises Problem with the place."""
    encoding = "utf-16" if content[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise Problem(f"{place} is not text in UTF-8 (line {line}).") from None


def contents(file: Path) -> bytes:
    """A file's bytes, or those of standard input for `-`."""
    if str(file) == "-":
        return sys.stdin.buffer.read()
    try:
        return file.read_bytes()
    except OSError as error:
        raise missing(f"{file} cannot be read: {error.strerror}.") from None


def id_of(given: str) -> str:
    """An id as part of an address: it cannot become another address."""
    from urllib.parse import quote

    return quote(given.strip(), safe="") or "-"
