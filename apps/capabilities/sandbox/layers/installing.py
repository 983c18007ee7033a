"""Installs a layer: uv, within a sandbox that reaches the package index and nothing else."""

import asyncio
import contextlib
import fcntl
import os
import secrets
import shutil
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

from django.conf import settings
from uv import find_uv_bin

from apps.core.db.pool import shielded
from apps.core.http.addresses import PrivateHost

from ...egress import EgressProxy
from ..base import (
    ErrorCode,
    InstallFailed,
    Limits,
    Progress,
    RunError,
    SandboxGone,
    SandboxUnavailable,
    emit,
)
from ..bubblewrap.prepared import Prepared
from ..bubblewrap.process import SandboxProcess
from ..bubblewrap.session import BubblewrapSandbox
from ..bubblewrap.spawning import CERTIFICATES, Binding
from ..requirements import PUBLIC_FILES, PUBLIC_INDEX
from ..store import live_folder, store_folder
from .store import layer_folder, mark_used

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
STAGE = "/opt/stage"
UV = "/opt/uv"
UV_INSTALL = (
    *(UV, "pip", "install", "--no-config", "--quiet", "--no-progress", "--color", "never"),
    *("--target", f"{STAGE}/layer", "--cache-dir", f"{STAGE}/cache"),
    *("--only-binary", ":all:", "--compile-bytecode", "-r", f"{STAGE}/requirements.txt"),
)
UV_ENVIRONMENT = {
    "SSL_CERT_FILE": CERTIFICATES,
    "UV_PYTHON_DOWNLOADS": "never",
    "UV_NO_MANAGED_PYTHON": "1",
}
INSTALL_SECONDS = 300.0
SIZE_CHECK_SECONDS = 0.5
LOCK_POLL_SECONDS = 0.05
MOST_FILES = 100_000
SAID_CHARS = 2000
NOT_INSTALLED = "The requirements could not be installed"


@dataclass(frozen=True, slots=True)
class PackageIndex:
    """`variables` tell uv; `hosts` are those it must reach, as `name:port`; `folders` those it must read."""

    variables: dict[str, str]
    hosts: frozenset[str]
    folders: tuple[Path, ...]


@cache
def package_index() -> PackageIndex:
    """Looked up once: asking pip takes half a second."""
    variables = {name: os.environ[name] for name in UV_VARIABLES if os.environ.get(name)}
    for file in UV_FILES:
        variables = _from_uv_file(Path(file).expanduser()) | variables
    if not _places(variables):
        variables |= _from_pip()
    places = _places(variables)
    if not variables.get("UV_DEFAULT_INDEX") and not variables.get("UV_INDEX_URL"):
        places.append(PYPI)
    variables.setdefault(
        "UV_INDEX_STRATEGY", "unsafe-best-match"
    )  # as pip does: any of them may have it
    hosts = {host for place in places if (host := _host(place))}
    extra = {other for name, others in FILE_HOSTS.items() if f"{name}:443" in hosts for other in others}
    named = {*extra, *settings.IZZY_PACKAGE_HOSTS}
    hosts |= {host if ":" in host else f"{host}:443" for host in named}
    folders = {folder for place in places if (folder := _folder(place))}
    return PackageIndex(variables, frozenset(hosts), tuple(sorted(folders)))


def _from_uv_file(file: Path) -> dict[str, str]:
    try:
        found = tomllib.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    options = {**found.get("pip", {}), **found}
    indexes: list[dict[str, Any]] = options.get("index", [])
    variables = {
        "UV_DEFAULT_INDEX": next((entry["url"] for entry in indexes if entry.get("default")), "")
        or options.get("index-url", ""),
        "UV_INDEX": " ".join(
            [
                *(entry["url"] for entry in indexes if not entry.get("default")),
                *options.get("extra-index-url", []),
            ]
        ),
        "UV_FIND_LINKS": ",".join(options.get("find-links", [])),
    }
    return {name: value for name, value in variables.items() if value}


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
    named = [value for name, value in variables.items() if name != "UV_INDEX_STRATEGY"]
    words = " ".join(named).replace(",", " ").split()
    return [word.partition("=")[2] if "=" in word.partition("://")[0] else word for word in words]


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


async def ensure_layer(
    prepared: Prepared, user_id: UUID, requirements: Sequence[str], progress: Progress | None = None
) -> Path:
    """The folder of the installed requirements; installed now where they are not. Raises InstallFailed."""
    layer = layer_folder(prepared, user_id, requirements)
    if mark_used(layer):
        return layer
    try:
        async with _alone(layer):
            if not mark_used(layer):
                await emit(progress, {"status": "installing"})
                staging = store_folder(prepared.identity) / "staging"
                with live_folder(staging, prepared.identity) as stage:
                    await _run_uv(prepared, stage, requirements)
                    await asyncio.to_thread(_put_in_place, stage / "layer", layer)
    except OSError as error:  # no room, no right to write
        raise InstallFailed(
            f"The requirements could not be stored: {error.strerror or error}."
        ) from error
    return layer


@asynccontextmanager
async def _alone(layer: Path) -> AsyncIterator[None]:
    """Of all processes one installs it, the others wait. A lock goes with the process that holds it."""
    layer.parent.mkdir(exist_ok=True)
    layer.parent.chmod(0o711)  # whatever the umask says: the sandbox's user must get through
    descriptor = os.open(layer.parent / f".lock-{layer.name}", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            await asyncio.sleep(LOCK_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _put_in_place(made: Path, layer: Path) -> None:
    if made.is_symlink():
        raise InstallFailed(f"{NOT_INSTALLED}: they are a link to elsewhere.")
    made.mkdir(exist_ok=True)  # nothing to install: all markers said no
    (made / ".lock").unlink(missing_ok=True)  # uv's own
    os.utime(made)
    made.rename(layer)


async def _run_uv(prepared: Prepared, stage: Path, requirements: Sequence[str]) -> None:
    """Raises InstallFailed."""
    index = await asyncio.to_thread(package_index)
    uv = await asyncio.to_thread(readable_uv, prepared)
    size = settings.IZZY_LAYER_MB * 1_000_000
    limits = Limits(
        wall_seconds=INSTALL_SECONDS,
        cpu_seconds=int(INSTALL_SECONDS),
        memory_bytes=2_000_000_000,
        processes=256,
        file_bytes=size,
        files=MOST_FILES,
        transfer_bytes=2 * size,
    )
    hosts = [host.rpartition(":") for host in index.hosts]
    private = [PrivateHost(name, int(port)) for name, _, port in hosts]
    proxy = EgressProxy(index.hosts, transfer_bytes=limits.transfer_bytes, private=private)
    readable = filter(prepared.identity.may_read, index.folders)
    folders = [Binding(folder, str(folder)) for folder in readable]
    (stage / "requirements.txt").write_text("".join(f"{line}\n" for line in requirements))
    (stage / "requirements.txt").chmod(0o644)
    sandbox = BubblewrapSandbox(prepared, limits, None, proxy)
    bindings = [*folders, Binding(uv, UV), Binding(stage, STAGE, writable=True)]
    environment = index.variables | UV_ENVIRONMENT
    try:
        await sandbox.start(bindings, environment, address_space=2**40, open_files=4096)
    except SandboxUnavailable as error:
        raise InstallFailed(f"{NOT_INSTALLED}: {error.message}") from error
    sizes = asyncio.create_task(_end_if_large(sandbox.process, stage))
    try:
        done = await sandbox.run_program([*UV_INSTALL, "--python", str(prepared.interpreter.path)])
    except SandboxGone as error:
        raise InstallFailed(f"{NOT_INSTALLED}: {error.message}") from error
    finally:
        sizes.cancel()
        await shielded(sandbox.close())
    if done.error is not None:
        raise InstallFailed(f"{NOT_INSTALLED}: {done.error.message}")
    if done.exit_code:
        raise InstallFailed(f"{NOT_INSTALLED}:\n{_shown(done.stdout + done.stderr)}")


async def _end_if_large(process: SandboxProcess, stage: Path) -> None:
    while True:
        await asyncio.sleep(SIZE_CHECK_SECONDS)
        size, files = await asyncio.to_thread(_measured, stage)
        if size > 2 * settings.IZZY_LAYER_MB * 1_000_000 or files > 2 * MOST_FILES:
            message = f"they need more than {settings.IZZY_LAYER_MB} MB (IZZY_LAYER_MB)."
            process.end(RunError(ErrorCode.INSTALL_FAILED, message))
            return


def _measured(folder: Path) -> tuple[int, int]:
    """Bytes and files, links not followed. The cache beside the layer counts too, hence twice the limit."""
    size = files = 0
    for place, _, names in os.walk(folder):
        for name in names:
            files += 1
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(place, name)).st_size
    return size, files


def _shown(printed: str) -> str:
    """uv's words, without what is only about this sandbox."""
    text = printed.replace(f"{STAGE}/", "").partition("\nhint:")[0].strip()
    if "no usable wheels" in text or "no wheels" in text:
        text += "\nOnly ready-made packages (wheels) can be installed here: take another version or another package."
    return text[-SAID_CHARS:] or "uv gave no reason."


@cache
def readable_uv(prepared: Prepared) -> Path:
    """uv's program; a copy where the sandbox's user cannot get to it."""
    uv = Path(find_uv_bin()).resolve()
    if prepared.identity.may_read(uv):
        return uv
    found = uv.stat()
    copy = store_folder(prepared.identity) / "inside" / f"uv-{found.st_size}-{found.st_mtime_ns}"
    if not copy.is_file():
        part = copy.with_name(f".{copy.name}-{secrets.token_hex(4)}")
        shutil.copyfile(uv, part)
        part.chmod(0o755)
        part.rename(copy)
    return copy
