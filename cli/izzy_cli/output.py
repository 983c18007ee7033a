"""Output for people and programs: tables on a terminal, lines with tabs in a pipe, JSON as the server sent it."""

import contextlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from izzy_cli.client import Answer

Row = dict[str, Any]

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
"""Characters that count as printable and do not show."""
ID_CHARS = 36
ROOM_FOR_IDS = 50
"""On a narrower terminal ids go on in the next line."""
_SPACE = re.compile(r"\s+")
_COLOURS = {"dim": "2", "bold": "1", "red": "31", "green": "32", "yellow": "33"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `under` stands below in a second line on a terminal, and in a column of its own before the
    others in a pipe: an id. On a terminal `most` characters of it are shown, in a pipe all."""

    title: str
    value: Callable[[Row], object]
    under: Callable[[Row], object] | None = None
    narrow: bool = False  # never wrapped or cut
    most: int | None = None


def prepare_streams() -> None:
    """Text that the terminal's character set lacks is replaced instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def is_terminal(stream: TextIO | None = None) -> bool:
    stream = sys.stdout if stream is None else stream
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def somebody_is_there() -> bool:
    """Whether a person can be asked."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def plain(text: object, *, one_line: bool = False) -> str:
    """The text without what would steer a terminal: others may have written it."""
    clean = _CONTROL.sub("\ufffd", str(text).replace("\r\n", "\n"))
    return _SPACE.sub(" ", clean).strip() if one_line else clean


def exact(value: object) -> str:
    """JSON in which every character shows, since somebody says yes to it: one that would not is escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    shown = (
        sign
        if sign == "\n" or (sign.isprintable() and not _UNSEEN.match(sign))
        else json.dumps(sign)[1:-1]
        for sign in text
    )
    return "".join(shown)


def styled(text: str, style: str, stream: TextIO | None = None) -> str:
    """The text in a colour, where that is wanted (`NO_COLOR`, `TERM=dumb` and pipes want none)."""
    stream = sys.stdout if stream is None else stream
    if not is_terminal(stream) or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{_COLOURS[style]}m{text}\x1b[0m"


def say(text: str = "", *, end: str = "\n") -> None:
    """To standard output."""
    sys.stdout.write(text + end)
    sys.stdout.flush()


def note(text: str) -> None:
    """To standard error: what is about the answer rather than the answer."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def say_json(content: bytes) -> None:
    """The server's answer, byte for byte, and a line's end. Nothing where it answered nothing."""
    if content:
        sys.stdout.flush()
        sys.stdout.buffer.write(content.removesuffix(b"\n") + b"\n")
        sys.stdout.buffer.flush()


def width() -> int:
    return shutil.get_terminal_size((80, 24)).columns


def cut(text: object, limit: int) -> str:
    """One line of at most so many characters."""
    line = plain(text, one_line=True)
    return line if len(line) <= limit else line[: max(0, limit - 1)].rstrip() + "…"


def day(value: str | None) -> str:
    """The day of a time in ISO 8601, in this machine's time zone."""
    return moment(value)[:10]


def moment(value: str | None) -> str:
    """A time in ISO 8601 to the minute, in this machine's time zone."""
    if not value:
        return ""
    from datetime import datetime

    try:
        return datetime.fromisoformat(value).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return value


def show_rows(columns: Sequence[Column], rows: Sequence[Row], *, empty: str) -> None:
    """A table on a terminal; elsewhere a line a row, with tabs between. `empty` is told where there is nothing."""
    if not rows:
        note(empty)
    elif is_terminal():
        _show_table(columns, rows)
    else:
        unders = [column.under for column in columns if column.under]
        values = [*unders, *(column.value for column in columns)]
        say("\n".join("\t".join(plain(value(row), one_line=True) for value in values) for row in rows))


def _show_table(columns: Sequence[Column], rows: Sequence[Row]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    for column in columns:
        table.add_column(
            column.title,
            no_wrap=column.narrow,
            overflow="ellipsis" if column.narrow else "fold",
            min_width=ID_CHARS if column.under and width() >= ROOM_FOR_IDS else None,
        )
    for row in rows:
        cells = []
        for column in columns:
            value = column.value(row)
            cell = Text(cut(value, column.most) if column.most else plain(value, one_line=True))
            if column.under:
                cell.append("\n" + plain(column.under(row), one_line=True), style="dim")
            cells.append(cell)
        table.add_row(*cells)
    Console(highlight=False, emoji=False, markup=False).print(table)


@contextlib.contextmanager
def progress(
    words: str, *, quiet: bool, counted: bool = False
) -> Iterator[Callable[[int, int | None], None]]:
    """A bar on standard error, where that is a terminal: a function that shows how much is done, and of how much. `counted` shows
    both numbers, else it is a percentage."""
    if quiet or not is_terminal(sys.stderr):
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    share = MofNCompleteColumn() if counted else TaskProgressColumn()
    columns = (TextColumn(plain(words, one_line=True)), BarColumn(), share, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def page_line(page: Row, number: int, size: int) -> None:
    """Where in a list a page is, on a terminal."""
    shown = len(page["results"])
    if is_terminal() and shown < page["count"]:
        first = (number - 1) * size + 1
        more = f"; more with --page {number + 1}" if page["next"] else ""
        say(styled(f"{first}–{first + shown - 1} of {page['count']}{more}", "dim"))


def show_page(
    answer: "Answer", columns: Sequence[Column], number: int, size: int, *, as_json: bool, empty: str
) -> None:
    """A page of a list, as JSON or as rows."""
    if as_json:
        say_json(answer.content)
        return
    show_rows(columns, answer.value["results"], empty=empty)
    page_line(answer.value, number, size)


def show_answer(answer: "Answer", show: Callable[[Row], None], *, as_json: bool) -> None:
    """The answer as JSON, or as `show` shows it to people."""
    if as_json:
        say_json(answer.content)
    else:
        show(answer.value)
