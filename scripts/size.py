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
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TypeGuard

COUNTED = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}


@dataclass
class Size:
    files: int = 0
    lines: int = 0
    code_lines: int = 0
    code_characters: int = 0
    statements: int = 0
    tokens: int = 0
    docstring_words: int = 0
    functions: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


def size_of(file: Path) -> Size:
    text = file.read_text()
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    docstrings = [node for node in nodes if is_docstring(node)]
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
            if not counts or inside or token.start[0] in covered:
                continue
            tokens += 1
            code.update(range(token.start[0], token.end[0] + 1))
    return Size(
        files=1,
        lines=len(lines),
        code_lines=len(code),
        code_characters=sum(len(lines[line - 1]) for line in code),
        statements=sum(isinstance(node, ast.stmt) for node in nodes) - len(docstrings),
        tokens=tokens,
        docstring_words=sum(len(str(ast.literal_eval(node.value)).split()) for node in docstrings),
        functions=sum(isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) for node in nodes),
    )


def is_docstring(node: ast.AST) -> TypeGuard[ast.Expr]:
    """Whether a statement only documents: a module, a class, a function, or the name above it."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def listed(root: Path, *patterns: str) -> list[Path]:
    names = subprocess.run(
        ["git", "ls-files", "-z", *patterns], cwd=root, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    return [root / name for name in names if name and (root / name).is_file()]


def main() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    sizes: dict[str, Size] = {}
    for file in listed(root, "*.py"):
        parts = file.relative_to(root).parts
        if parts[0] == "tests" or "migrations" in parts:
            continue
        room = "/".join(parts[:2]) if parts[0] == "apps" and len(parts) > 2 else parts[0]
        sizes[room] = sizes.get(room, Size()) + size_of(file)
    print(
        f"{'':24}{'files':>7}{'lines':>8}{'code':>8}{'statem.':>9}{'tokens':>9}{'tok/line':>9}{'length':>8}{'doc w.':>8}"
    )
    for room, size in [*sorted(sizes.items()), ("together", sum(sizes.values(), Size()))]:
        per_line, length = (
            size.tokens / max(size.code_lines, 1),
            size.code_characters / max(size.code_lines, 1),
        )
        print(
            f"{room:24}{size.files:7}{size.lines:8}{size.code_lines:8}{size.statements:9}{size.tokens:9}"
            f"{per_line:9.2f}{length:8.1f}{size.docstring_words:8}"
        )
    for folder in ("static", "templates", "tests"):
        files = [
            file
            for file in listed(root, folder)
            if file.suffix in {".py", ".js", ".css", ".html", ".svg", ".txt"}
        ]
        print(f"{folder:24}{len(files):7}{sum(len(file.read_text().splitlines()) for file in files):8}")


if __name__ == "__main__":
    main()
