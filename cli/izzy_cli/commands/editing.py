"""Text in the person's editor, which is kept where something goes wrong."""

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from izzy_cli.errors import Problem, missing

LINE = "---"
LISTS = {"tags": ",", "occasions": ";"}
"""Fields that are lists, and what stands between their entries; one that holds that sign stands in quotes, as in a CSV file."""
FIELDS = (
    "kind",
    "importance",
    "tier",
    "status",
    "tags",
    "category",
    "occasions",
    "valid_from",
    "valid_to",
)
SETTABLE = ("active", "pending", "archived")


class EditedNote:
    """A note as a text file: its fields between two lines of dashes, then its text."""

    def __init__(self, before: dict[str, Any], file: Path) -> None:
        self.before, self.file = before, file

    def changes(self) -> dict[str, Any]:
        """The fields that read otherwise than before, as REST takes them."""
        old, new = _parsed(as_text(self.before)), _parsed(_read(self.file))
        unknown = sorted(new.keys() - old.keys())
        if unknown:
            raise Problem(f"A note has no field {unknown[0]!r}.")
        return {
            name: _value(name, text)
            for name, text in new.items()
            if text != old[name] and (text or name in CLEARED)
        }


CLEARED = {"tags", "occasions", "category", "content"}
"""Fields that may be emptied; another that is left empty stays as it was."""


@contextmanager
def edited_note(before: dict[str, Any]) -> Iterator[EditedNote]:
    """The note after the person has edited it. Where the body raises, the file is kept and the message says where."""
    with edited(as_text(before)) as file:
        yield EditedNote(before, file)


@contextmanager
def edited(text: str) -> Iterator[Path]:
    """A file with this text that the person has edited; deleted in the end, but kept where the body raises."""
    descriptor, name = tempfile.mkstemp(prefix="izzy-", suffix=".md")
    file = Path(name)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(text)
    try:
        _edit(file)
        yield file
    except Problem as problem:
        if _read(file) == text:
            file.unlink(missing_ok=True)
            raise
        message = f"{problem.message} What you wrote is kept in {file}."
        raise Problem(message, problem.exit_code, code=problem.code) from None
    file.unlink(missing_ok=True)


def has_editor() -> bool:
    """Whether the environment names an editor, which may need no terminal."""
    return bool(os.environ.get("VISUAL") or os.environ.get("EDITOR"))


def _edit(file: Path) -> None:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        done = subprocess.run([*shlex.split(editor), str(file)], check=False)  # noqa: S603
    except (OSError, ValueError):
        raise missing(f"The editor {editor!r} cannot be started; set EDITOR.") from None
    if done.returncode:
        raise Problem(f"The editor ended with {done.returncode}; nothing was changed.")


def as_text(note: dict[str, Any]) -> str:
    """The file of a note."""
    lines = []
    for name in FIELDS:
        value = note[name]
        if name == "status" and value not in SETTABLE:
            continue
        if name in LISTS:
            value = _in_list(value, LISTS[name])
        lines.append(f"{name}: {'' if value is None else value}".rstrip())
    return "\n".join([LINE, *lines, LINE, note["content"], ""])


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise Problem(f"{file} is no longer text in UTF-8.") from None


def _parsed(text: str) -> dict[str, str]:
    """Fields by name as they stand there, and `content`."""
    head, found, content = text.removeprefix(f"{LINE}\n").partition(f"\n{LINE}\n")
    if not found or not text.startswith(f"{LINE}\n"):
        raise Problem(f"The lines {LINE} above and below the fields must stay.")
    fields = {}
    for line in filter(str.strip, head.splitlines()):
        name, colon, value = line.partition(":")
        if not colon:
            raise Problem(f"There is no “name: value” in the line {line[:60]!r}.")
        fields[name.strip()] = value.strip()
    return {**fields, "content": content.strip()}


def _value(name: str, text: str) -> object:
    if name in LISTS:
        return _listed(text, LISTS[name])
    if name == "importance":
        return int(text) if text.isascii() and text.isdigit() else text
    return text


def _in_list(entries: Iterable[str], sign: str) -> str:
    return f"{sign} ".join(
        '"{}"'.format(entry.replace('"', '""')) if sign in entry or entry.startswith('"') else entry
        for entry in entries
    )


def _listed(text: str, sign: str) -> list[str]:
    """The entries of what `_in_list` gives."""
    pattern = rf'(?:^|{sign})\s*(?:"((?:[^"]|"")*)"\s*(?={sign}|$)|([^{sign}]*))'
    found = (
        match[1].replace('""', '"') if match[1] is not None else match[2]
        for match in re.finditer(pattern, text)
    )
    return [entry.strip() for entry in found if entry.strip()]
