"""Where packages come from: the index that this machine's uv or pip is set up with, else PyPI."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from django.conf import settings

PUBLIC_INDEX, PUBLIC_FILES = (
    ".".join(labels) for labels in (("pypi", "org"), ("files", "pythonhosted", "org"))
)
"""Where packages come from unless a machine is set up otherwise: the public index, and the host of its files."""
PYPI = f"https://{PUBLIC_INDEX}/simple"
FILE_HOSTS = {PUBLIC_INDEX: (PUBLIC_FILES,), f"test.{PUBLIC_INDEX}": (f"test-{PUBLIC_FILES}",)}
PIP_OPTIONS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
}
UV_VARIABLES = (
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "UV_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_INDEX_STRATEGY",
)
UV_FILES = ("~/.config/uv/uv.toml", "/etc/uv/uv.toml")


@dataclass(frozen=True, slots=True)
class PackageIndex:
    """`variables` tell uv; `hosts` are those it must reach, as `name:port`; `folders` those it must read."""

    variables: dict[str, str]
    hosts: frozenset[str]
    folders: tuple[Path, ...]


@cache
def package_index() -> PackageIndex:
    """Looked up once: asking pip takes half a second."""
    variables = _configured()
    places = [*_places(variables), *([] if _has_default(variables) else [PYPI])]
    variables.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")  # as pip does: any of them may have it
    hosts = {host for place in places if (host := _host(place))}
    extra = {other for name, others in FILE_HOSTS.items() if f"{name}:443" in hosts for other in others}
    named = {*extra, *settings.IZZY_PACKAGE_HOSTS}
    hosts |= {host if ":" in host else f"{host}:443" for host in named}
    folders = {folder for place in places if (folder := _folder(place))}
    return PackageIndex(variables, frozenset(hosts), tuple(sorted(folders)))


def _configured() -> dict[str, str]:
    found = {name: os.environ[name] for name in UV_VARIABLES if os.environ.get(name)}
    for file in UV_FILES:
        for name, value in _from_uv_file(Path(file).expanduser()).items():
            found.setdefault(name, value)
    if not _places(found):
        found |= _from_pip()
    return found


def _from_uv_file(file: Path) -> dict[str, str]:
    try:
        said = tomllib.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    said = {**said.get("pip", {}), **said}
    indexes: list[dict[str, Any]] = said.get("index", [])
    found = {
        "UV_DEFAULT_INDEX": next((entry["url"] for entry in indexes if entry.get("default")), "")
        or said.get("index-url", ""),
        "UV_INDEX": " ".join(
            [
                *(entry["url"] for entry in indexes if not entry.get("default")),
                *said.get("extra-index-url", []),
            ]
        ),
        "UV_FIND_LINKS": ",".join(said.get("find-links", [])),
    }
    return {name: value for name, value in found.items() if value}


def _from_pip() -> dict[str, str]:
    """Of pip's files and variables: lines such as global.index-url='https://…'."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, check=False, capture_output=True, text=True).stdout  # noqa: S603  no user's text
    found: dict[str, str] = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        section, _, option = name.rpartition(".")
        if section in {"global", "install", ":env:"} and option in PIP_OPTIONS:
            words = value.strip("'\"").replace("\\n", " ").split()
            found[PIP_OPTIONS[option]] = ("," if option == "find-links" else " ").join(words)
    return found


def _places(variables: dict[str, str]) -> list[str]:
    return list(_each_place(variables))


def _each_place(variables: dict[str, str]) -> Iterator[str]:
    for name, value in variables.items():
        if name != "UV_INDEX_STRATEGY":
            for word in value.replace(",", " ").split():
                yield word.partition("=")[2] if "=" in word.partition("://")[0] else word


def _has_default(variables: dict[str, str]) -> bool:
    return bool(variables.get("UV_DEFAULT_INDEX") or variables.get("UV_INDEX_URL"))


def _host(place: str) -> str:
    parts = urlsplit(place)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return ""
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def _folder(place: str) -> Path | None:
    """Of an index on this disk the folder above `simple`, since its links lead beside it."""
    if "://" in place and not place.startswith("file://"):
        return None
    folder = Path(unquote(urlsplit(place).path) if place.startswith("file://") else place).expanduser()
    if folder.name == "simple":
        folder = folder.parent
    return folder.resolve() if folder.is_dir() else None
