"""Makes sandboxes with bubblewrap on this machine, and installs the packages that a build asks for while it runs. Says whether
they can be made here; and where not, which of the known causes it is."""

import asyncio
import os
import shutil
import subprocess
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from apps.capabilities.egress import EgressProxy
from apps.core.health import CheckResult

from ..base import (
    RUN_LIMITS,
    InstallFailed,
    Progress,
    Purpose,
    SandboxSpec,
    SandboxUnavailable,
    emit,
)
from ..layers.installing import ensure_layer
from ..requirements import parse_requirements
from ..store import live_folder, store_folder
from .prepared import CannotPrepare, Prepared, prepare
from .session import BubblewrapSandbox
from .spawning import LAYER, Binding, pipe_with, sandbox_arguments

ASK_THE_USER = "A tool reaches only the hosts that its version names and the user approved."
ASK_FOR_NETWORK = "Ask for it with request_network(hosts, why)."
MOST_INSTALLS = 30
"""In one sandbox, since each time leaves another layer on the disk."""
PROBE_SECONDS = 20
AGAIN_SECONDS = 10.0
"""A failure is looked into again after so long; a success holds for the life of the process."""
DOCS = "See docs/sandbox.md."

_lock = threading.Lock()
_found: tuple[float, CheckResult] | None = None


def probe() -> CheckResult:
    """Starts a sandbox with the real arguments and a program that does nothing."""
    global _found
    with _lock:
        now = time.monotonic()
        if _found is None or (not _found[1].ok and now - _found[0] > AGAIN_SECONDS):
            _found = (now, look())
        return _found[1]


def look() -> CheckResult:
    """The same without remembering."""
    try:
        prepared = prepare()
    except CannotPrepare as error:
        return CheckResult(False, str(error), error.hint)
    code, printed = _try(prepared)
    if code == 0:
        as_whom = f" as user {prepared.identity.uid}" if prepared.identity.dropped else ""
        return CheckResult(
            True, f"bubblewrap makes sandboxes{as_whom}, with {prepared.interpreter.path}."
        )
    return explain(code, printed)


def _try(prepared: Prepared) -> tuple[int, str]:
    arguments = sandbox_arguments(prepared, RUN_LIMITS, [], proxied=False)
    given = [pipe_with("\0".join(arguments).encode() + b"\0"), pipe_with(prepared.filter)]
    wanted = [prepared.bwrap, "--args", str(given[0]), "--seccomp", str(given[1]), "/usr/bin/true"]
    try:
        run = subprocess.run(  # noqa: S603  no shell, and nothing of a user
            [*prepared.as_user, *wanted],
            pass_fds=given,
            cwd="/",
            env={},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
            **prepared.popen,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return -1, str(error)
    finally:
        for descriptor in given:
            os.close(descriptor)
    return run.returncode, run.stderr.decode("utf-8", "replace").strip()


def _setting(file: Path) -> int:
    """-1 where this kernel does not know it."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return -1


def explain(code: int, printed: str, kernel: Path = Path("/proc/sys")) -> CheckResult:
    """From what bwrap printed and how the kernel is set."""
    if "Unknown option" in printed:
        return CheckResult(
            False, f"bubblewrap is too old ({printed}).", "Install bubblewrap 0.8 or newer."
        )
    if "source path" in printed:
        message = f"The user as whom tools run cannot read what a sandbox needs ({printed[:200]})."
        return CheckResult(False, message, "Set IZZY_SANDBOX_DIR to a folder that this user can enter.")
    if _setting(kernel / "user/max_user_namespaces") == 0:
        hint = "Allow them: sysctl -w user.max_user_namespaces=15000."
        return CheckResult(
            False, "The kernel allows no user namespaces (user.max_user_namespaces=0).", hint
        )
    if _setting(kernel / "kernel/unprivileged_userns_clone") == 0:
        hint = "Allow them: sysctl -w kernel.unprivileged_userns_clone=1."
        message = "The kernel allows user namespaces to root alone (kernel.unprivileged_userns_clone=0)."
        return CheckResult(False, message, hint)
    if _setting(kernel / "kernel/apparmor_restrict_unprivileged_userns") == 1:
        message = (
            "AppArmor keeps bubblewrap from making sandboxes (Ubuntu's restriction of user namespaces)."
        )
        hint = f"Give /usr/bin/bwrap an AppArmor profile with `userns,`. {DOCS}"
        return CheckResult(False, message, hint)
    if "proc" in printed and ("mount" in printed.lower() or "permitted" in printed):
        message = "The container hides parts of /proc, so that no sandbox can have its own."
        hint = f"Start it with --security-opt systempaths=unconfined. {DOCS}"
        return CheckResult(False, message, hint)
    if any(
        word in printed
        for word in ("namespace", "Operation not permitted", "Permission denied", "uid map")
    ):
        message = "The container does not allow user namespaces (its seccomp or AppArmor profile)."
        hint = f"Start it with the seccomp profile of docs/sandbox.md, or set E2B_API_KEY. bwrap said: {printed[:200]}"
        return CheckResult(False, message, hint)
    return CheckResult(False, f"bubblewrap fails ({code}): {printed[:300] or 'it said nothing'}.", DOCS)


class BubblewrapBackend:
    name = "bubblewrap"

    probe = staticmethod(probe)

    async def create(self, spec: SandboxSpec, *, progress: Progress | None = None) -> BubblewrapSandbox:
        await emit(progress, {"status": "preparing"})
        try:
            prepared = prepare()
        except CannotPrepare as error:
            raise SandboxUnavailable(f"{error} {error.hint}", hint=error.hint) from error
        requirements, layer = [], None
        if spec.requirements:
            requirements = parse_requirements(spec.requirements, spec.secrets)
        if requirements:
            layer = await ensure_layer(prepared, spec.user_id, requirements, progress)
        limit = spec.limits.transfer_bytes
        if spec.purpose is not Purpose.BUILD:
            proxy = (
                EgressProxy(spec.hosts, transfer_bytes=limit, ask=ASK_THE_USER) if spec.hosts else None
            )
            sandbox = BubblewrapSandbox(prepared, spec.limits, progress, proxy)
            await sandbox.start([Binding(layer, LAYER)] if layer else [], spec.env)
            return sandbox
        # A build always has a proxy, over which pip asks for packages, and a folder that they appear in.
        views = store_folder(prepared.identity) / "views"
        with ExitStack() as held:
            view = held.enter_context(live_folder(views, prepared.identity, writable=False))
            installed = BuildRequirements(prepared, spec, view, requirements, progress)
            if layer is not None:
                await asyncio.to_thread(_link_tree, layer, view)
            proxy = EgressProxy(
                spec.hosts, transfer_bytes=limit, ask=ASK_FOR_NETWORK, install=installed.install
            )
            sandbox = BubblewrapSandbox(prepared, spec.limits, progress, proxy)
            await sandbox.start([Binding(view, LAYER)], spec.env)
            sandbox.held = held.pop_all()
        return sandbox


@dataclass(eq=False)
class BuildRequirements:
    """One build's packages; a further one is resolved together with them. One installation at a time."""

    prepared: Prepared
    spec: SandboxSpec
    view: Path  # the folder that its sandbox sees
    requirements: list[str]
    progress: Progress | None
    installs: int = 0
    alone: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def install(self, text: str) -> str:
        """Raises InvalidInput and InstallFailed."""
        async with self.alone:
            wanted = parse_requirements("\n".join([*self.requirements, text]), self.spec.secrets)
            if wanted == self.requirements:
                return f"Installed: {', '.join(wanted)}"
            if self.installs >= MOST_INSTALLS:
                raise InstallFailed(
                    f"Packages were installed {MOST_INSTALLS} times, more is not allowed."
                )
            self.installs += 1
            layer = await ensure_layer(self.prepared, self.spec.user_id, wanted, self.progress)
            try:
                await asyncio.to_thread(_link_tree, layer, self.view)
            except OSError as error:
                raise InstallFailed(
                    f"The packages could not be shown: {error.strerror or error}."
                ) from error
            self.requirements = wanted
        return f"Installed: {', '.join(wanted)}"


def _link_tree(layer: Path, view: Path) -> None:
    """Hard links cost no room; what has another version is replaced."""
    for place, folders, names in os.walk(layer):
        target = view / Path(place).relative_to(layer)
        for name in folders:
            _clear(target / name, keep_folder=True)
            (target / name).mkdir(exist_ok=True)
        for name in names:
            _clear(target / name)
            source = Path(place) / name
            try:
                os.link(source, target / name, follow_symlinks=False)
            except OSError:  # a file system without links
                shutil.copy2(source, target / name, follow_symlinks=False)


def _clear(place: Path, *, keep_folder: bool = False) -> None:
    """Of two versions of a package the one may have a file or a link where the other has a folder."""
    if place.is_symlink() or not place.is_dir():
        place.unlink(missing_ok=True)
    elif not keep_folder:
        shutil.rmtree(place)
