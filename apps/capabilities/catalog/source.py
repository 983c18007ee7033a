"""Reads facts from a tool's code. Imports nothing but Python's own, since long code is read in a process of its own."""

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """`error` is why it is no Python, "" where it is, in line `line`; `docstring` is that of `run`, else of the module."""

    error: str = ""
    line: int = 0
    defines_run: bool = False
    docstring: str = ""


def read_source(source: str) -> SourceFacts:
    try:
        tree = _tree(source)
    except SyntaxError as error:
        return SourceFacts(error=error.msg or "it cannot be read", line=error.lineno or 1)
    except (ValueError, RecursionError, MemoryError):
        return SourceFacts(error="it cannot be read")
    runs = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "run"]
    explained: list[ast.FunctionDef | ast.Module] = [*runs, tree]
    docstring = next(filter(None, map(ast.get_docstring, explained)), "")
    return SourceFacts(defines_run=_defines_run(tree), docstring=docstring)


def _tree(source: str) -> ast.Module:
    """Python before 3.11.8 raises SystemError where something is finalized while it makes a tree: then it is made anew."""
    try:
        return ast.parse(source)
    except SystemError:
        return ast.parse(source)


def _defines_run(tree: ast.Module) -> bool:
    for node in tree.body:
        match node:
            case ast.FunctionDef(name="run", args=arguments):
                positional = len(arguments.posonlyargs) + len(arguments.args)
                return (
                    (positional >= 1 or arguments.vararg is not None)
                    and positional - len(arguments.defaults) <= 1
                    and None not in arguments.kw_defaults
                )
            case ast.ImportFrom(names=names) | ast.Import(names=names):
                if any((name.asname or name.name) == "run" for name in names):
                    return True
            case ast.Assign(targets=targets):
                if any(isinstance(target, ast.Name) and target.id == "run" for target in targets):
                    return True
    return False
