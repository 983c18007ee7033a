"""The tools of all apps; each `AppConfig.ready` names the modules where its own are found."""

import pkgutil
from collections.abc import Callable, Collection
from importlib import import_module
from typing import Any

from apps.agent.tools.base import Tool

_tools: dict[str, Tool] = {}
_families: dict[str, Callable[[str], Tool | None]] = {}


def register_tools(module_name: str) -> None:
    """Adds the tools in a module and, where it is a package, in its modules. A name can be registered again only with an
    equal tool."""
    module = import_module(module_name)
    for found in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{module_name}."):
        register_tools(found.name)
    for tool in filter(lambda value: isinstance(value, Tool), vars(module).values()):
        known = _tools.get(tool.name)
        if known is not None and known != tool:
            raise ValueError(f"two different tools are called {tool.name}")
        _tools[tool.name] = tool


def register_family(prefix: str, make: Callable[[str], Tool | None]) -> None:
    """Adds all tools whose names begin with `prefix`: `make` gives the one of a name, None where there can be none.

    They stand in no toolset; whoever knows which of them exist lists them.
    """
    _families[prefix] = make


def find_tool(name: str) -> Tool | None:
    """The tool of that name, whatever toolset it is in."""
    made = (make(name) for prefix, make in _families.items() if name.startswith(prefix))
    return _tools.get(name) or next(made, None)


def tool_title(name: str, command: str = "") -> str:
    """Title of a tool, or of one of its commands, for people; a tool that is gone has its name alone."""
    tool = find_tool(name)
    if tool is None or not tool.title:
        return name.replace("_", " ").capitalize()
    return tool.variants.get(command, (tool.title,))[0]


def tool_words() -> dict[str, dict[str, Any]]:
    """How the chat page shows calls of each tool: those fields of `Tool` that are for people, by the tool's name."""
    shown = ("title", "doing", "done", "shows", "icon", "variants", "notes")
    return {tool.name: {name: getattr(tool, name) for name in shown} for tool in all_tools()}


def all_tools() -> list[Tool]:
    """Every registered tool, in the order of the names."""
    return [_tools[name] for name in sorted(_tools)]


def tools_for(toolsets: Collection[str]) -> list[Tool]:
    """The tools of these toolsets and of the always-offered one (""), in the order of their names.

    The order depends on the set alone, so that the beginning of a request stays the same.
    """
    return [tool for tool in all_tools() if not tool.toolset or tool.toolset in toolsets]
