"""The clients whose hooks Izzy knows: where their settings are, and what is put into them."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOKEN_VARIABLE = "IZZY_TOKEN"  # noqa: S105  the variable's name
SECONDS = 5
"""A client waits so long for a hook; what the hook runs gives up after three."""
CAPTURE_SECONDS = 30

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Setup:
    """The wanted installation: the server's address, and whether hooks are called over HTTP where the client can."""

    url: str
    http: bool = False

    def address(self, client: str) -> str:
        return f"{self.url}/api/v1/hooks/{client}/"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a client's settings are, for a user or a project."""

    hooks: Path
    mcp: Path


@dataclass(frozen=True, slots=True)
class HookClient:
    """One client. `entry` makes what stands in the list of an event; `mcp` the entry of the MCP server."""

    name: str
    title: str
    events: tuple[str, ...]
    entry: Callable[[str, Setup], Entry]
    user: Callable[[], Place]
    project: Callable[[Path], Place]
    mcp: Callable[[str], Entry]
    fixed: Mapping[str, Any]  # what a new file of hooks has beside them
    note: str

    def places(self) -> dict[str, Place]:
        """Where its settings are, by level; in the home folder a project's are the user's."""
        places = {"user": self.user(), "project": self.project(Path.cwd())}
        return places if places["user"].hooks != places["project"].hooks else {"user": places["user"]}


def command_of(client: str) -> str:
    """The command that a hook runs: the same text everywhere, so that clients that read each other's settings run it once."""
    if shutil.which("izzy"):
        return f"izzy hook {client}"
    python = f'"{sys.executable}"' if " " in sys.executable else sys.executable
    return f"{python} -m izzy_cli hook {client}"


def is_ours(entry: object, client: str) -> bool:
    """Whether Izzy's hook stands in this entry of an event, or a part of it."""
    if not isinstance(entry, dict):
        return False
    command, url = entry.get("command"), entry.get("url")
    runs = (
        isinstance(command, str) and command.rstrip().endswith(f" hook {client}") and "izzy" in command
    )
    calls = isinstance(url, str) and url.rstrip("/").endswith(f"/api/v1/hooks/{client}")
    return runs or calls


def _grouped(client: str, event: str, setup: Setup) -> Entry:
    """The group of one hook that Claude Code and Codex have."""
    hook: Entry = {"type": "command", "command": command_of(client), "timeout": SECONDS}
    return {"hooks": [hook]}


def _claude(event: str, setup: Setup) -> Entry:
    """HTTP where Claude Code can: not at a session's start. A command at a stop runs in the background."""
    if setup.http and event != "SessionStart":
        hook: Entry = {
            "type": "http",
            "url": setup.address("claude-code"),
            "headers": {"Authorization": f"Bearer ${TOKEN_VARIABLE}"},
            "allowedEnvVars": [TOKEN_VARIABLE],
            "timeout": SECONDS,
        }
        return {"hooks": [hook]}
    group = _grouped("claude-code", event, setup)
    if event == "Stop":
        group["hooks"][0] |= {"async": True, "timeout": CAPTURE_SECONDS}
    return group


def _codex(event: str, setup: Setup) -> Entry:
    return _grouped("codex", event, setup)


def _gemini(event: str, setup: Setup) -> Entry:
    """Its time-outs are in milliseconds."""
    command = {"type": "command", "command": command_of("gemini-cli"), "timeout": SECONDS * 1000}
    return {"hooks": [{"name": "izzy", **command}]}


def _cursor(event: str, setup: Setup) -> Entry:
    return {"command": command_of("cursor")}


def _folder(variable: str, name: str) -> Path:
    """A client's folder, which some let be moved by a variable."""
    given = os.environ.get(variable, "")
    return Path(given) if given else Path.home() / name


def _claude_user() -> Place:
    folder = _folder("CLAUDE_CONFIG_DIR", ".claude")
    state = (
        folder / ".claude.json" if os.environ.get("CLAUDE_CONFIG_DIR") else Path.home() / ".claude.json"
    )
    return Place(folder / "settings.json", state)


def _codex_place(folder: Path) -> Place:
    return Place(folder / "hooks.json", folder / "config.toml")


def _one_file(folder: Path) -> Place:
    return Place(folder / "settings.json", folder / "settings.json")


def _cursor_place(folder: Path) -> Place:
    return Place(folder / "hooks.json", folder / "mcp.json")


def _remote(variable: str) -> Callable[[str], Entry]:
    """The entry of a remote MCP server; each client writes an environment variable in its own way."""
    return lambda url: {"url": f"{url}/mcp", "headers": {"Authorization": f"Bearer {variable}"}}


CLIENTS = {
    each.name: each
    for each in (
        HookClient(
            "claude-code",
            "Claude Code",
            ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"),
            _claude,
            _claude_user,
            lambda project: Place(project / ".claude" / "settings.json", project / ".mcp.json"),
            lambda url: {"type": "http", **_remote(f"${{{TOKEN_VARIABLE}}}")(url)},
            {},
            "Sessions that are open take the hooks up by themselves; /hooks in Claude Code lists them.",
        ),
        HookClient(
            "codex",
            "Codex",
            ("SessionStart", "UserPromptSubmit", "Stop"),
            _codex,
            lambda: _codex_place(_folder("CODEX_HOME", ".codex")),
            lambda project: _codex_place(project / ".codex"),
            lambda url: {"url": f"{url}/mcp", "bearer_token_env_var": TOKEN_VARIABLE},
            {},
            "Codex runs a new or changed hook only when you have trusted it: open /hooks in Codex.",
        ),
        HookClient(
            "gemini-cli",
            "Gemini CLI",
            ("SessionStart", "BeforeAgent", "AfterAgent", "PreCompress", "SessionEnd"),
            _gemini,
            lambda: _one_file(Path.home() / ".gemini"),
            lambda project: _one_file(project / ".gemini"),
            lambda url: {
                "httpUrl": f"{url}/mcp",
                "headers": {"Authorization": f"Bearer ${TOKEN_VARIABLE}"},
            },
            {},
            "Start Gemini CLI anew; /hooks there lists them.",
        ),
        HookClient(
            "cursor",
            "Cursor",
            (
                "sessionStart",
                "beforeSubmitPrompt",
                "afterAgentResponse",
                "preCompact",
                "stop",
                "sessionEnd",
            ),
            _cursor,
            lambda: _cursor_place(Path.home() / ".cursor"),
            lambda project: _cursor_place(project / ".cursor"),
            _remote(f"${{env:{TOKEN_VARIABLE}}}"),
            {"version": 1},
            "Open a new chat in Cursor; its settings list the hooks under Hooks.",
        ),
    )
}
