"""Paths under /memories in one spelling, and the answers of file commands, built from plain values."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from apps.core.errors import Conflict, InvalidInput, TooLarge
from apps.core.text import truncated
from apps.memory.models import MAX_PATH_CHARS

ROOT = "/memories"
MAX_NAME_BYTES = 255
MAX_DEPTH = 20
SHOWN_CHARS = 200
_DECODINGS = 5


def clean_path(value: object, *, field: str = "path") -> str:
    """The path in its one spelling: NFC, no doubled or trailing slashes, `/memories` or below it.

    Raises InvalidInput (code `invalid_path`; `wrong_type` for what is no text) or TooLarge; `extra` names the field.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{field} must be text.", code="wrong_type", field=field)
    if len(value) > MAX_PATH_CHARS:
        message = f"{field} has {len(value):,} characters; at most {MAX_PATH_CHARS} are accepted."
        raise TooLarge(message, field=field, limit=MAX_PATH_CHARS, length=len(value))
    if wrong := _wrong(value):
        raise InvalidInput(wrong, code="invalid_path", field=field)
    path = "/" + "/".join(_names(unicodedata.normalize("NFC", value)))
    if len(path) > MAX_PATH_CHARS:
        raise TooLarge(f"{field} is too long.", field=field, limit=MAX_PATH_CHARS, length=len(path))
    return path


def parents(path: str) -> list[str]:
    """The directories that a path lies in, without the root."""
    names = _names(path)
    return ["/" + "/".join(names[:count]) for count in range(2, len(names))]


def inside(directory: str) -> str:
    """Prefix of all paths in a directory."""
    return f"{directory}/"


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _wrong(path: str) -> str:
    """The error in a path, or ""."""
    shown = _shown(path)
    if any(unicodedata.category(sign) in {"Cc", "Cs", "Zl", "Zp"} for sign in path):
        return f"The path {shown} contains control characters or characters that cannot be stored."
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        return f"Path must start with {ROOT}, got: {shown}"
    if _escapes(path):
        return f"Path {shown} would escape {ROOT} directory"
    names = _names(path)
    if len(names) > MAX_DEPTH:
        return f"The path {shown} has too many levels; at most {MAX_DEPTH} are accepted."
    return next((wrong for name in names if (wrong := _wrong_name(name))), "")


def _wrong_name(name: str) -> str:
    shown = _shown(name)
    if len(unicodedata.normalize("NFC", name).encode()) > MAX_NAME_BYTES:
        return f"The name {shown} is too long; at most {MAX_NAME_BYTES} bytes are accepted."
    if name.startswith("."):
        return f"The name {shown} is hidden: names in {ROOT} must not begin with a dot."
    if name != name.strip():
        return f"The name {shown} begins or ends with a space."
    return ""


def _escapes(path: str) -> bool:
    """Whether a path, also one written with URL escapes (however often escaped), leads up or hides a separator."""
    decoded = path
    for _ in range(_DECODINGS):
        if "\\" in decoded or re.search(r"(?:^|/)\s*\.\.\s*(?:/|$)", decoded):
            return True
        further = unquote(decoded)
        if further == decoded:
            return False
        if further.count("/") != decoded.count("/") or not further.isprintable():
            return True
        decoded = further
    return True


def _shown(text: str) -> str:
    """A part of the input as it may stand in a message: printable and short."""
    printable = "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )
    return truncated(printable, SHOWN_CHARS)


MAX_FILE_CHARS = 100_000
MAX_LINES = 999_999
LEVELS = 2
NUMBER_WIDTH = 6
AROUND = 2
"""Lines shown before and after a change."""

LEFT_OUT = "node_modules"
QUOTED_CHARS = 500

_BINARY = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff]")
_UNITS = ("B", "K", "M", "G")


def clean_file_text(value: object, *, field: str) -> str:
    """The content of a file or a part of it, unchanged: up to MAX_FILE_CHARS characters of text, possibly none.

    Raises InvalidInput (`wrong_type`, `invalid_text` for NUL, control characters and lone surrogates) or TooLarge.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{field} must be text.", code="wrong_type", field=field)
    check_size(value, field=field)
    if _BINARY.search(value):
        message = (
            f"{field} contains characters that are no text (NUL, control characters or lone surrogates)."
        )
        raise InvalidInput(message, code="invalid_text", field=field)
    return value


def check_size(text: str, *, field: str) -> None:
    """Raises TooLarge where a file would hold more than MAX_FILE_CHARS characters."""
    if len(text) > MAX_FILE_CHARS:
        message = (
            f"{field} makes a file of {len(text):,} characters; a file in memory holds at most {MAX_FILE_CHARS:,}. "
            "Split it into several files."
        )
        raise TooLarge(message, field=field, limit=MAX_FILE_CHARS, length=len(text))


def human_size(size: int) -> str:
    """0B, 10B, 1.5K, 2M: powers of 1,024, one decimal unless whole."""
    value, unit = float(size), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{int(value)}{_UNITS[unit]}" if value == int(value) else f"{value:.1f}{_UNITS[unit]}"


def listing(directory: str, entries: Iterable[tuple[str, int]]) -> str:
    """A directory two levels deep, depth first by name; a directory's size is that of all files in it."""
    start = inside(directory)
    sizes: dict[tuple[str, ...], int] = {}
    folders: set[tuple[str, ...]] = set()
    total = 0
    for path, size in entries:
        names = tuple(path[len(start) :].split("/"))
        if any(name == LEFT_OUT or name.startswith(".") for name in names):
            continue
        total += size
        for count in range(1, min(LEVELS, len(names)) + 1):
            sizes[names[:count]] = sizes.get(names[:count], 0) + size
            if count < len(names):
                folders.add(names[:count])
    lines = [f"{human_size(total)}\t{directory}"]
    lines += [
        f"{human_size(sizes[names])}\t{start}{'/'.join(names)}{'/' if names in folders else ''}"
        for names in sorted(sizes)
    ]
    about = f"up to {LEVELS} levels deep in {directory}, excluding hidden items and {LEFT_OUT}"
    return "\n".join([f"Here're the files and directories {about}:", *lines])


def numbered(path: str, text: str, view_range: Sequence[int] | None) -> str:
    """A file with line numbers, whole or from the first to the last line of the range (-1: to the end)."""
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        raise TooLarge(
            f"File {path} exceeds maximum line limit of {MAX_LINES:,} lines.", limit=MAX_LINES
        )
    wanted = view_range or (1, -1)
    first, last = max(1, wanted[0]), len(lines) if wanted[1] == -1 else wanted[1]
    if first > len(lines) or last < first:
        message = (
            f"Error: Invalid `view_range` parameter: [{wanted[0]}, {wanted[1]}]. "
            f"It should be within the range of lines of the file: [1, {len(lines)}]"
        )
        raise InvalidInput(message, field="view_range")
    last = min(last, len(lines))
    return f"Here's the content of {path} with line numbers:\n{_numbered(lines, first, last)}"


def _numbered(lines: Sequence[str], first: int, last: int) -> str:
    return "\n".join(
        f"{number:>{NUMBER_WIDTH}}\t{lines[number - 1]}" for number in range(first, last + 1)
    )


def replaced(path: str, text: str, old: str, new: str) -> tuple[str, int]:
    """The text with the one occurrence of `old` replaced, and the line (from 0) where it began.

    Raises Conflict where `old` occurs not at all or more than once.
    """
    places = _places(text, old)
    quoted = old if len(old) <= QUOTED_CHARS else old[:QUOTED_CHARS] + "…"
    if not places:
        message = f"No replacement was performed, old_str `{quoted}` did not appear verbatim in {path}."
        raise Conflict(message, code="not_in_file", field="old_str")
    if len(places) > 1:
        numbers = ", ".join(str(text.count("\n", 0, place) + 1) for place in places)
        message = (
            f"No replacement was performed. Multiple occurrences of old_str `{quoted}` in lines: {numbers}. "
            "Please ensure it is unique"
        )
        raise Conflict(message, code="not_unique", field="old_str")
    place = places[0]
    return text[:place] + new + text[place + len(old) :], text.count("\n", 0, place)


def _places(text: str, wanted: str, limit: int = 100) -> list[int]:
    places: list[int] = []
    place = text.find(wanted)
    while place >= 0 and len(places) < limit:
        places.append(place)
        place = text.find(wanted, place + 1)
    return places


def inserted(text: str, line: int, addition: str) -> str:
    """The text with `addition` as lines of its own after line `line` (0: at the top); it ends with a line break.

    Raises InvalidInput where there is no such line.
    """
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not 0 <= line <= len(lines):
        message = (
            f"Error: Invalid `insert_line` parameter: {line}. "
            f"It should be within the range of lines of the file: [0, {len(lines)}]"
        )
        raise InvalidInput(message, field="insert_line")
    lines.insert(line, addition.removesuffix("\n"))
    return "\n".join(lines) + "\n"


def snippet(text: str, line: int, count: int) -> str:
    """The lines of a change that begins at `line` (from 0) and has `count` lines, with two around, numbered."""
    lines = text.split("\n")
    return _numbered(lines, max(1, line + 1 - AROUND), min(len(lines), line + count + AROUND))
