"""The changes that put Izzy into a client's settings, or take it out again: worked out first, shown, then written whole."""

import difflib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from izzy_cli.errors import Problem
from izzy_cli.hooks import tomltext
from izzy_cli.hooks.clients import Entry, HookClient, Place, Setup, is_ours
from izzy_cli.hooks.jsontext import JsonText, NotJson

NAME = "izzy"
"""Of the MCP server in a client's settings."""
BACKUP = ".izzy-backup"


@dataclass(frozen=True, slots=True)
class Change:
    """A file as it is (None: there is none) and as it should be (None: it goes)."""

    file: Path
    old: str | None
    new: str | None

    @property
    def is_one(self) -> bool:
        return self.old != self.new

    def diff(self) -> Iterator[str]:
        """Its lines, as `diff -u` has them."""
        before, after = ((text or "").splitlines() for text in (self.old, self.new))
        name = str(self.file)
        gone = "/dev/null"
        yield from difflib.unified_diff(
            before,
            after,
            gone if self.old is None else name,
            gone if self.new is None else name,
            lineterm="",
        )


def installing(client: HookClient, place: Place, setup: Setup, *, mcp: bool) -> list[Change]:
    """The changes that put the hooks in, and the MCP server where it is wanted. Raises Problem where a file is not what it should be."""
    texts = Files()
    _put_in(texts, client, place, setup, mcp=mcp)
    return texts.changes()


def _put_in(texts: "Files", client: HookClient, place: Place, setup: Setup, *, mcp: bool) -> None:
    wanted = {event: client.entry(event, setup) for event in client.events}
    if uses_toml(client, place):
        texts.edit(place.mcp, lambda text: tomltext.with_hooks(text, wanted, place.mcp))
    else:
        texts.edit(place.hooks, lambda text: _with_hooks(text, client, wanted, place.hooks))
    if mcp:
        entry = client.mcp(setup.url)
        texts.edit(place.mcp, lambda text: _with_server(text, entry, place.mcp))


def removing(client: HookClient, place: Place) -> list[Change]:
    """The changes that take out all that was put in, and nothing else."""
    texts = Files()
    _take_all_out(texts, client, place)
    return [replace(change, new=_as_it_was(client, place, change)) for change in texts.changes()]


def _as_it_was(client: HookClient, place: Place, change: Change) -> str | None:
    """The file as it was before Izzy was put in, from the copy beside it; else, as where somebody has changed it since, as `change`
    leaves it. Taking out alone also drops lists that were there before and empty."""
    with suppress(Problem):
        copy = Files().read(backup_of(change.file))
        if copy is None:
            return change.new
        clean = Files({change.file: copy})
        _take_all_out(clean, client, place)
        if clean.new(change.file) != copy:  # Izzy is in the copy too
            return change.new
        for mcp in (True, False):
            again = Files({change.file: copy})
            _put_in(
                again, client, place, Setup("http://izzy"), mcp=mcp
            )  # any address: it is taken out again
            _take_all_out(again, client, place)
            if again.new(change.file) == change.new:
                return copy
    return change.new


def _take_all_out(texts: "Files", client: HookClient, place: Place) -> None:
    if place.mcp.suffix == ".toml":
        texts.edit(place.mcp, tomltext.without_ours)
    texts.edit(place.hooks, lambda text: _without_hooks(text, client, place.hooks))
    if place.mcp.suffix == ".json":
        texts.edit(place.mcp, lambda text: _without_server(text, place.mcp))


@dataclass(frozen=True, slots=True)
class Installed:
    """A client's settings: its hooks by event, and whether the MCP server is there."""

    hooks: dict[str, Entry]
    mcp: bool
    file: Path


def installed(client: HookClient, place: Place) -> Installed:
    """The settings as they are now. Raises Problem."""
    found: dict[str, Entry] = {}
    texts = Files()
    if place.mcp.suffix == ".toml":
        settings = tomltext.read(texts.text(place.mcp), place.mcp)
        hooks = settings.get("hooks", {})
        servers = settings.get("mcp_servers", {})
    else:
        hooks, servers = {}, _json(texts.text(place.mcp), place.mcp).plain().get("mcpServers", {})
    file = place.mcp if uses_toml(client, place) else place.hooks
    for source in (hooks, _json(texts.text(place.hooks), place.hooks).plain().get("hooks", {})):
        for event, entries in source.items() if isinstance(source, dict) else ():
            for entry in entries if isinstance(entries, list) else ():
                for hook in _hooks_in(entry):
                    if is_ours(hook, client.name):
                        found[event] = hook
    found = {event: found[event] for event in client.events if event in found}
    return Installed(found, isinstance(servers, dict) and NAME in servers, file)


def write(changes: list[Change]) -> list[Path]:
    """Writes the files, each at once and with a copy of what it was beside it; the copies. What held nothing but Izzy's is deleted.

    Raises Problem where one changed since it was read.
    """
    copies = []
    for change in changes:
        if Files().read(change.file) != change.old:
            raise Problem(f"{change.file} was changed meanwhile; nothing was written. Try again.")
        file = change.file.resolve()  # a link stays one
        try:
            if change.old is not None and change.new is not None:
                copy = backup_of(file)
                shutil.copy2(file, copy)
                copies.append(copy)
            if change.new is None:
                file.unlink()
            else:
                _write_whole(file, change.new)
        except OSError as error:
            raise Problem(f"{change.file} cannot be written: {error.strerror}.") from None
    return copies


def backup_of(file: Path) -> Path:
    """Where a copy of a file is kept."""
    real = file.resolve()
    return real.with_name(real.name + BACKUP)


def _write_whole(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else 0o600
    partial = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        partial.chmod(mode)
        partial.replace(file)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


class Files:
    """Files as they were read and as they are to be; two edits of one file add up. `instead` is taken for what stands in one."""

    def __init__(self, instead: Mapping[Path, str] | None = None) -> None:
        self._instead = instead or {}
        self._old: dict[Path, str | None] = {}
        self._new: dict[Path, str | None] = {}

    def text(self, file: Path) -> str:
        return self.read(file) or ""

    def read(self, file: Path) -> str | None:
        if file in self._instead:
            return self._instead[file]
        try:
            return file.read_bytes().decode("utf-8")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Problem(f"{file} cannot be read: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise Problem(f"{file} is not UTF-8; nothing was written.") from None

    def edit(self, file: Path, change: Callable[[str], str | None]) -> None:
        if file not in self._old:
            self._old[file] = self._new[file] = self.read(file)
        new = change(self._new[file] or "")
        self._new[file] = new if new or self._new[file] is not None else None

    def new(self, file: Path) -> str | None:
        """The text that an edited file is to have, None where there is to be none."""
        return self._new[file]

    def changes(self) -> list[Change]:
        every = [Change(file, self._old[file], self._new[file]) for file in self._old]
        return [change for change in every if change.is_one]


def uses_toml(client: HookClient, place: Place) -> bool:
    """Whether a client keeps its hooks in config.toml, as Codex can: they stay together."""
    if client.name != "codex" or place.hooks.exists() or not place.mcp.exists():
        return False
    hooks = tomltext.read(Files().text(place.mcp), place.mcp).get("hooks", {})
    return isinstance(hooks, dict) and any(isinstance(entries, list) for entries in hooks.values())


def _json(text: str, file: Path) -> JsonText:
    try:
        document = JsonText(text)
    except NotJson as error:
        raise Problem(f"{file}: {error}. Nothing was written; correct it and try again.") from None
    if document.root.sign != "{":
        raise Problem(f"{file} must hold a JSON object. Nothing was written.")
    return document


def _hooks_in(entry: object) -> list[Any]:
    """The hooks of an event's entry: those of a group, or the entry itself."""
    inner = entry.get("hooks") if isinstance(entry, dict) else None
    return inner if isinstance(inner, list) else [entry]


def _with_hooks(text: str, client: HookClient, wanted: dict[str, Entry], file: Path) -> str:
    document = _json(text, file)
    own = _own(document, client, file)
    if [(event, entry) for event, _, entry in own] == list(wanted.items()):
        return text
    if {event: entry for event, _, entry in own} == wanted and len(own) == len(wanted):
        return text
    _take_out(document, client, file)
    for name, value in client.fixed.items():
        if document.node([name]) is None:
            document.add([name], value)
    for event, entry in wanted.items():
        if document.node(["hooks", event]) is None:
            document.add(["hooks", event], [entry])
        else:
            document.add(["hooks", event], entry)
    return document.text


def _without_hooks(text: str, client: HookClient, file: Path) -> str | None:
    document = _json(text, file)
    if not _own(document, client, file):
        return text
    _take_out(document, client, file)
    rest = document.plain()
    return None if rest in ({}, dict(client.fixed)) else document.text


def _own(document: JsonText, client: HookClient, file: Path) -> list[tuple[str, list[str | int], Entry]]:
    """Izzy's entries: event, where each stands, and what it says. Those that share a group with others' hooks stand inside it."""
    found: list[tuple[str, list[str | int], Entry]] = []
    hooks = document.node(["hooks"])
    events = hooks.plain() if hooks is not None else {}
    if not isinstance(events, dict):
        raise Problem(f"{file}: “hooks” must be an object. Nothing was written.")
    for event, entries in events.items():
        if not isinstance(entries, list):
            if event in client.events:
                raise Problem(f"{file}: “hooks.{event}” must be a list. Nothing was written.")
            continue
        for number, entry in enumerate(entries):
            inner = _hooks_in(entry)
            ours = [place for place, hook in enumerate(inner) if is_ours(hook, client.name)]
            whole = ours and len(ours) == len(inner)
            if whole:
                found.append((event, ["hooks", event, number], entry))
            else:
                found += [
                    (event, ["hooks", event, number, "hooks", place], inner[place]) for place in ours
                ]
    return found


def _take_out(document: JsonText, client: HookClient, file: Path) -> None:
    for event, path, _ in reversed(_own(document, client, file)):
        document.remove(path)
        entries = document.node(["hooks", event])
        if entries is not None and entries.sign == "[" and not entries.children:
            document.remove(["hooks", event])
    hooks = document.node(["hooks"])
    if (
        hooks is not None
        and hooks.sign == "{"
        and not hooks.children
        and "//" not in document.text[hooks.start : hooks.end]
    ):
        document.remove(["hooks"])


def _with_server(text: str, entry: Entry, file: Path) -> str:
    if file.suffix == ".toml":
        return tomltext.with_server(text, NAME, entry, file)
    document = _json(text, file)
    servers = document.node(["mcpServers"])
    if servers is not None and servers.sign != "{":
        raise Problem(f"{file}: “mcpServers” must be an object. Nothing was written.")
    known = document.node(["mcpServers", NAME])
    if known is None or known.plain() != entry:
        document.add(["mcpServers", NAME], entry)
    return document.text if known is None or known.plain() != entry else text


def _without_server(text: str, file: Path) -> str | None:
    document = _json(text, file)
    known = document.node(["mcpServers", NAME])
    if known is None or "/mcp" not in str(known.plain()):
        return text
    document.remove(["mcpServers", NAME])
    servers = document.node(["mcpServers"])
    if servers is not None and servers.sign == "{" and not servers.children:
        document.remove(["mcpServers"])
    return None if document.plain() == {} else document.text
