"""Prints how large the program is: statements, tokens and lines of every Python file outside tests and migrations.

    python scripts/size.py [folder]

A token is a NAME, OP, NUMBER or STRING; docstrings are counted apart, as are comments. A statement is an `ast.stmt`
that is no docstring. A code line holds at least one such token. `static/` and `templates/` are counted in lines.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tokenize
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path

COUNTED = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}


def size_of(file: Path) -> Counter[str]:
    text = file.read_text()
    nodes = list(ast.walk(ast.parse(text)))
    docstrings = [
        node
        for node in nodes
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    covered = {line for node in docstrings for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    lines = text.splitlines()
    tokens, code = 0, set[int]()
    depth = 0  # From Python 3.12 an f-string is many tokens; here it is one on every version.
    with file.open("rb") as stream:
        for token in tokenize.tokenize(stream.readline):
            name = tokenize.tok_name[token.type]
            if name == "FSTRING_END":
                depth -= 1
            inside, depth = depth > 0, depth + (name == "FSTRING_START")
            counts = token.type in COUNTED or name == "FSTRING_START"
            if counts and not inside and token.start[0] not in covered:
                tokens += 1
                code.update(range(token.start[0], token.end[0] + 1))
    return Counter(
        files=1,
        lines=len(lines),
        code_lines=len(code),
        code_characters=sum(len(lines[line - 1]) for line in code),
        statements=sum(isinstance(node, ast.stmt) for node in nodes) - len(docstrings),
        tokens=tokens,
        docstring_words=sum(len(str(ast.literal_eval(node.value)).split()) for node in docstrings),
    )


def listed(root: Path, pattern: str) -> list[Path]:
    """The files of a checkout; ends with git's own words where there is none."""
    command = ["git", "-C", str(root), "ls-files", "-z", pattern]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        sys.exit(found.stderr.strip())
    return [root / name for name in found.stdout.split("\0") if name and (root / name).is_file()]


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path(), help="a checkout; the present one without"
    )
    root = parser.parse_args().folder.resolve()
    sizes: dict[str, Counter[str]] = {}
    for file in listed(root, "*.py"):
        parts = file.relative_to(root).parts
        if parts[0] == "tests" or "migrations" in parts:
            continue
        room = "/".join(parts[:2]) if parts[0] == "apps" and len(parts) > 2 else parts[0]
        sizes.setdefault(room, Counter()).update(size_of(file))
    print(
        f"{'':24}{'files':>7}{'lines':>8}{'code':>8}{'statem.':>9}{'tokens':>9}{'tok/line':>9}{'length':>8}{'doc w.':>8}"
    )
    for room, size in [*sorted(sizes.items()), ("together", sum(sizes.values(), Counter()))]:
        code_lines = max(size["code_lines"], 1)
        print(
            f"{room:24}{size['files']:7}{size['lines']:8}{size['code_lines']:8}{size['statements']:9}{size['tokens']:9}"
            f"{size['tokens'] / code_lines:9.2f}{size['code_characters'] / code_lines:8.1f}{size['docstring_words']:8}"
        )
    for folder in ("static", "templates", "tests"):
        kinds = {".py", ".js", ".css", ".html", ".svg", ".txt"}
        files = [file for file in listed(root, folder) if file.suffix in kinds]
        print(f"{folder:24}{len(files):7}{sum(len(file.read_text().splitlines()) for file in files):8}")


if __name__ == "__main__":
    main()
