"""Blocks of Izzy's own in a TOML text: put at its end between two lines of comment, and taken out with them."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from izzy_cli.errors import Problem

Entry = dict[str, Any]

_BLOCK = re.compile(r"(?:\r?\n)?# >>> izzy (\w+)[^\n]*\n.*?# <<< izzy \1[^\n]*(?:\n|\Z)", re.DOTALL)


def read(text: str, file: Path) -> dict[str, Any]:
    """The settings. Raises Problem, which quotes nothing: tokens may stand there."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = str(error).partition("(")[2].partition(")")[0]
        where = f" ({place})" if place.startswith("at ") else ""
        raise Problem(f"{file} is not valid TOML{where}. Nothing was written; correct it.") from None


def with_hooks(text: str, wanted: dict[str, Entry], file: Path) -> str:
    """With the hooks of Codex as its config.toml has them."""
    lines = []
    for event, group in wanted.items():
        lines.append(f"[[hooks.{event}]]")
        for hook in group["hooks"]:
            lines += [f"[[hooks.{event}.hooks]]", *_pairs(hook)]
    return _with_block(text, "hooks", lines, file)


def with_server(text: str, name: str, entry: Entry, file: Path) -> str:
    """With an MCP server. Raises Problem where one of that name stands there that was not put there by Izzy."""
    others = read(_without(text, "mcp"), file).get("mcp_servers", {})
    if name in others:
        if others[name] == entry:
            return text
        message = f"{file} has an MCP server “{name}” already. Nothing was written; take it out first."
        raise Problem(message)
    return _with_block(text, "mcp", [f"[mcp_servers.{name}]", *_pairs(entry)], file)


def without_ours(text: str) -> str | None:
    """Without any block of Izzy's; None where nothing else stood there."""
    rest = _BLOCK.sub("", text)
    return rest if rest.strip() or rest == text else None


def _without(text: str, block: str) -> str:
    return _BLOCK.sub(lambda found: "" if found[1] == block else found[0], text)


def _with_block(text: str, block: str, lines: list[str], file: Path) -> str:
    read(text, file)
    known = next((found for found in _BLOCK.finditer(text) if found[1] == block), None)
    body = "\n".join(lines)
    if known is not None and body in known[0].replace("\r\n", "\n"):
        return text
    rest = _without(text, block)
    if rest and not rest.endswith("\n"):
        rest += "\n"
    gap = "\n" if rest else ""
    new = f"{rest}{gap}# >>> izzy {block} (izzy hook remove codex takes it out)\n{body}\n# <<< izzy {block}\n"
    try:
        tomllib.loads(new)
    except tomllib.TOMLDecodeError:
        message = f"{file} has its {block} in a form that cannot be added to. Nothing was written."
        raise Problem(message) from None
    return new


def _pairs(entry: Entry) -> list[str]:
    """The lines of a table; JSON's texts and numbers are TOML's too."""
    return [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in entry.items()]
