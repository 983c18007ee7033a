"""No tool of the assistant leads to the module that decides on what waits for review."""

import ast
import importlib.util
from pathlib import Path

from apps.agent.tools import base


def test_no_tool_decides_on_what_waits() -> None:
    """Nothing that a tool's module imports, however far away, is the module that decides."""
    known = {tool.handler.__module__ for tool in base.all_tools()} | {"apps.chat.turns.actor"}
    reached = reachable(known)
    assert {"apps.memory.tools.saving", "apps.memory.notes.creation"} <= reached
    assert "apps.memory.notes.review" not in reached
    assert "apps.memory.notes.review" in reachable({"apps.memory.api.review"})


def reachable(modules: set[str]) -> set[str]:
    """These modules and all of ours that they import, at their top or within a function."""
    reached: set[str] = set()
    pending = set(modules)
    while pending:
        name = pending.pop()
        spec = importlib.util.find_spec(name) if name.startswith("apps.") else None
        if name in reached or spec is None or spec.origin is None:
            continue
        reached.add(name)
        pending |= {name.rpartition(".")[0], *imported(name, Path(spec.origin))} - reached
    return reached


def imported(name: str, path: Path) -> set[str]:
    """Returns a module's imports: modules, and names that may be modules."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = (
                importlib.util.resolve_name("." * node.level + (node.module or ""), package)
                if node.level
                else node.module
            )
            found |= {str(base), *(f"{base}.{alias.name}" for alias in node.names)}
    return {one for one in found if one.startswith("apps.") and spec_exists(one)}


def spec_exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
