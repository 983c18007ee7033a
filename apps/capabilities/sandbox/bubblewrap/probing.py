"""Whether sandboxes can be made here; and where not, which of the known causes it is."""

import os
import subprocess
import threading
import time
from pathlib import Path

from apps.core.health import CheckResult

from ..base import RUN_LIMITS
from .prepared import CannotPrepare, Prepared, command_as, prepare
from .spawning import pipe_with, sandbox_arguments

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
    command, identity = command_as(prepared, wanted)
    try:
        run = subprocess.run(  # noqa: S603  no shell, and nothing of a user
            command,
            pass_fds=given,
            cwd="/",
            env={},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
            **identity,
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
