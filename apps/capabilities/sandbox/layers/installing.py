"""Installing a layer: uv, within a sandbox that reaches the package index and nothing else."""

import asyncio
import contextlib
import fcntl
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from uuid import UUID

from django.conf import settings
from uv import find_uv_bin

from apps.capabilities.egress import EgressProxy
from apps.capabilities.sandbox.base import ErrorCode, InstallFailed, Limits, Progress, RunError
from apps.capabilities.sandbox.bubblewrap.answers import runner_limits
from apps.capabilities.sandbox.bubblewrap.arguments import CERTIFICATES, Binding
from apps.capabilities.sandbox.bubblewrap.prepared import Prepared
from apps.capabilities.sandbox.bubblewrap.process import SandboxProcess
from apps.capabilities.sandbox.output import tell
from apps.capabilities.sandbox.store import live_folder, store_folder
from apps.core.http.addresses import PrivateHost

from .index import package_index
from .store import layer_folder, mark_used

STAGE = "/opt/stage"
UV = "/opt/uv"
INSTALL_SECONDS = 300.0
SIZE_CHECK_SECONDS = 0.5
LOCK_POLL_SECONDS = 0.05
MOST_FILES = 100_000
SAID_CHARS = 2000


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
                await tell(progress, {"status": "installing"})
                await _install(prepared, layer, requirements)
    except OSError as error:  # no room, no right to write
        raise InstallFailed(f"The requirements could not be stored: {error.strerror or error}.") from error
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


async def _install(prepared: Prepared, layer: Path, requirements: Sequence[str]) -> None:
    staging = store_folder(prepared.identity) / "staging"
    with live_folder(staging, prepared.identity) as stage:
        await _run_uv(prepared, stage, requirements)
        await asyncio.to_thread(_put_in_place, stage / "layer", layer)


def _put_in_place(made: Path, layer: Path) -> None:
    if made.is_symlink():
        raise InstallFailed("The requirements could not be installed: they are a link to elsewhere.")
    made.mkdir(exist_ok=True)  # nothing to install: all markers said no
    (made / ".lock").unlink(missing_ok=True)  # uv's own
    os.utime(made)
    made.rename(layer)


async def _run_uv(prepared: Prepared, stage: Path, requirements: Sequence[str]) -> None:
    index = await asyncio.to_thread(package_index)
    private = [PrivateHost(host.rpartition(":")[0], int(host.rpartition(":")[2])) for host in index.hosts]
    limits = _limits()
    proxy = EgressProxy(index.hosts, transfer_bytes=limits.transfer_bytes, private=private)
    folders = [Binding(folder, str(folder)) for folder in index.folders if prepared.identity.may_read(folder)]
    uv = await asyncio.to_thread(readable_uv, prepared)
    bindings = [*folders, Binding(uv, UV), Binding(stage, STAGE, writable=True)]
    process = SandboxProcess(prepared, limits)
    try:
        await process.start(bindings, proxied=True)
    except OSError as error:
        raise InstallFailed(f"The sandbox for installing did not start: {error}") from error
    try:
        if process.listener is not None:
            await proxy.serve(process.listener)
        await _watch_uv(process, prepared, stage, requirements, index.variables)
    finally:
        await asyncio.shield(asyncio.ensure_future(_end(process, proxy)))


async def _end(process: SandboxProcess, proxy: EgressProxy) -> None:
    process.end(RunError(ErrorCode.CANCELLED, "The installation was stopped."))
    await proxy.close()
    await process.wait()
    process.release()


async def _watch_uv(
    process: SandboxProcess,
    prepared: Prepared,
    stage: Path,
    requirements: Sequence[str],
    variables: dict[str, str],
) -> None:
    said = bytearray()
    process.take_output(lambda _, data: said.extend(data[: max(0, 100_000 - len(said))]))
    process.run_for(INSTALL_SECONDS)
    limits = runner_limits(process.limits, process.frame_limit) | {"address_space": 2**40, "open_files": 4096}
    await process.send({"op": "begin", "limits": limits, "env": _environment(variables)})
    (stage / "requirements.txt").write_text("".join(f"{line}\n" for line in requirements))
    (stage / "requirements.txt").chmod(0o644)
    await process.send({"op": "command", "argv": _uv_command(prepared)})
    sizes = asyncio.create_task(_end_if_large(process, stage))
    try:
        answer = await process.answer()
    finally:
        sizes.cancel()
    process.drain()
    if answer is None:
        reason = process.reason.message if process.reason else "the sandbox ended"
        raise InstallFailed(f"The requirements could not be installed: {reason}")
    if answer.get("exit") != 0:
        raise InstallFailed(f"The requirements could not be installed:\n{_shown(said)}")


def _uv_command(prepared: Prepared) -> list[str]:
    return [
        *(UV, "pip", "install", "--no-config", "--quiet", "--no-progress", "--color", "never"),
        *("--python", str(prepared.interpreter.path), "--target", f"{STAGE}/layer"),
        *("--cache-dir", f"{STAGE}/cache", "--only-binary", ":all:", "--compile-bytecode"),
        *("-r", f"{STAGE}/requirements.txt"),
    ]


def _environment(variables: dict[str, str]) -> dict[str, str]:
    return {
        **variables,
        "SSL_CERT_FILE": CERTIFICATES,
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NO_MANAGED_PYTHON": "1",
    }


def _limits() -> Limits:
    size = settings.IZZY_LAYER_MB * 1_000_000
    return Limits(
        wall_seconds=INSTALL_SECONDS,
        cpu_seconds=int(INSTALL_SECONDS),
        memory_bytes=2_000_000_000,
        processes=256,
        file_bytes=size,
        files=MOST_FILES,
        transfer_bytes=2 * size,
    )


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


def _shown(said: bytes | bytearray) -> str:
    """uv's words, without what is only about this sandbox."""
    text = said.decode("utf-8", "replace").replace(f"{STAGE}/", "").partition("\nhint:")[0].strip()
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
