"""Where there can be no sandbox, the cause is named, and nothing runs without one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings as django_settings

from apps.capabilities.sandbox.base import SandboxSpec, SandboxUnavailable
from apps.capabilities.sandbox.bubblewrap import backend, identity, prepared, spawning
from apps.capabilities.sandbox.bubblewrap.backend import BubblewrapBackend, explain
from apps.capabilities.sandbox.bubblewrap.identity import Identity, find_interpreter
from apps.capabilities.sandbox.bubblewrap.seccomp import AARCH64, X86_64, build_filter
from apps.capabilities.sandbox.running import check_sandbox, current_backend, run_capability
from apps.core.health import State, checks
from tests.waiting import until

TOOL = {"main.py": "def run(args): return 'ran'"}


@pytest.fixture
def looked_anew() -> Iterator[None]:
    """Nothing found out before is remembered, and nothing found out now is afterwards."""
    prepared.prepare.cache_clear()
    backend._found = None
    yield
    prepared.prepare.cache_clear()
    backend._found = None


def kernel(tmp_path: Path, **values: int) -> Path:
    names = {
        "apparmor": "kernel/apparmor_restrict_unprivileged_userns",
        "clone": "kernel/unprivileged_userns_clone",
        "most": "user/max_user_namespaces",
    }
    for name, value in values.items():
        file = tmp_path / names[name]
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{value}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("said", "values", "words"),
    [
        ("bwrap: setting up uid map: Permission denied", {"apparmor": 1}, ("AppArmor", "userns,")),
        (
            "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted",
            {"apparmor": 1},
            ("AppArmor", "bwrap"),
        ),
        ("bwrap: No permissions to create new namespace", {"clone": 0}, ("root alone", "sysctl -w")),
        (
            "bwrap: Creating new namespace failed: No space left",
            {"most": 0},
            ("max_user_namespaces", "sysctl -w"),
        ),
        ("bwrap: Creating new namespace failed: Operation not permitted", {}, ("container", "seccomp")),
        (
            "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
            {},
            ("/proc", "systempaths"),
        ),
        ("bwrap: Unknown option --size", {}, ("too old", "0.8")),
        (
            "bwrap: Can't find source path /data/inside/x/etc: Permission denied",
            {},
            ("user", "IZZY_SANDBOX_DIR"),
        ),
        ("bwrap: something new", {}, ("something new", "docs/sandbox.md")),
    ],
)
def test_each_known_cause_is_named_with_what_to_do(
    tmp_path: Path, said: str, values: dict[str, int], words: tuple[str, str]
) -> None:
    result = explain(1, said, kernel(tmp_path, **values))
    assert not result.ok
    assert words[0] in result.message
    assert words[1] in result.hint


PROBE = """
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "izzysite.settings"
import django
django.setup()
from apps.capabilities.sandbox.bubblewrap.backend import look
found = look()
print(found.ok, found.message, found.hint)
"""


def probed_under(folder: Path, *command: str) -> str:
    """Returns what the probe says in a process whose kernel refuses it something for real. The folder is for its files: they
    belong to another user than those of the tests."""
    environment = {
        **os.environ,
        "IZZY_DATA_DIR": str(django_settings.IZZY_DATA_DIR),
        "IZZY_SANDBOX_DIR": str(folder),
    }
    done = subprocess.run(
        [*command, sys.executable, "-c", PROBE],
        cwd=django_settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.stdout


def test_the_kernels_limit_of_zero_namespaces_is_recognised(
    bubblewrap: BubblewrapBackend, tmp_path: Path
) -> None:
    """In a user namespace of its own, whose limit is its own too."""
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    user = ("--user", "--map-user=1000", "--map-group=1000", "--keep-caps")
    said = probed_under(tmp_path, "unshare", *user, "sh", "-c", script, "sh")
    assert said.startswith("False The kernel allows no user namespaces")


def test_a_missing_bwrap_is_named(
    looked_anew: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = backend.look()
    assert not result.ok
    assert "not installed" in result.message
    assert "apt install bubblewrap" in result.hint


def test_a_broken_bwrap_is_no_sandbox(
    looked_anew: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: it is broken' >&2\nexit 1\n")
    fake.chmod(0o755)
    tmp_path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert not backend.look().ok


async def test_a_sandbox_that_does_not_start_leaves_nothing_and_says_why(
    bubblewrap: BubblewrapBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(spawning, "START", "import sys; sys.exit('a broken interpreter')")
    for hosts in (frozenset[str](), frozenset({"example.org"})):
        with pytest.raises(SandboxUnavailable) as found:
            await bubblewrap.create(SandboxSpec(user_id=uuid4(), hosts=hosts))
        assert "a broken interpreter" in found.value.message
    await until(lambda: len(os.listdir("/proc/self/fd")) <= before + 1)


async def test_without_a_sandbox_nothing_runs(
    looked_anew: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Any
) -> None:
    settings.IZZY_SANDBOX = "auto"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable) as found:
        await run_capability(SandboxSpec(user_id=uuid4()), TOOL, {})
    assert "apt install bubblewrap" in found.value.message
    settings.IZZY_SANDBOX, settings.E2B_API_KEY = "auto", ""
    assert check_sandbox().state == State.NOT_SET_UP
    settings.IZZY_SANDBOX = "bubblewrap"
    assert check_sandbox().state == State.BROKEN
    assert found.value.status == 503


async def test_switched_off_means_off(settings: Any) -> None:
    settings.IZZY_SANDBOX = "none"
    with pytest.raises(SandboxUnavailable) as found:
        await run_capability(SandboxSpec(user_id=uuid4()), TOOL, {})
    assert "IZZY_SANDBOX" in found.value.message
    assert check_sandbox().state == State.NOT_SET_UP


def test_a_key_of_e2b_is_preferred_and_a_name_decides(
    settings: Any, bubblewrap: BubblewrapBackend
) -> None:
    settings.IZZY_SANDBOX, settings.E2B_API_KEY = "auto", "e2b_key"
    assert current_backend().name == "e2b"
    settings.IZZY_SANDBOX = "bubblewrap"
    assert current_backend().name == "bubblewrap"
    settings.IZZY_SANDBOX, settings.E2B_API_KEY = "auto", ""
    assert current_backend().name == "bubblewrap"


async def test_a_run_goes_through_the_chosen_backend(bubblewrap: BubblewrapBackend) -> None:
    outcome = await run_capability(SandboxSpec(user_id=uuid4()), TOOL, {})
    assert outcome.result == "ran"


def test_the_check_is_registered_and_not_essential() -> None:
    found = {check.name: check for check in checks()}
    assert not found["sandbox"].essential


def test_root_gives_its_rights_up(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.IZZY_SANDBOX_UID = 61234
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert identity.sandbox_identity() == Identity(61234, 61234, dropped=True)
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    assert identity.sandbox_identity().uid == 1234
    assert not identity.sandbox_identity().dropped


def test_a_python_that_the_user_cannot_read_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hidden = tmp_path / "hidden"
    (hidden / "lib").mkdir(parents=True)
    (hidden / "python").write_bytes(b"")
    (hidden / "python").chmod(0o755)
    hidden.chmod(0o700)
    monkeypatch.setattr(sys, "_base_executable", str(hidden / "python"))
    monkeypatch.setattr(sys, "base_prefix", str(hidden))
    found = find_interpreter(Identity(61234, 61234, dropped=True))
    assert found is None or found.path.is_relative_to("/usr/bin")


@pytest.mark.parametrize("machine", [X86_64, AARCH64])
def test_the_filter_fits_the_kernels_limits(machine: Any) -> None:
    """Every jump lands within the program, and the last instruction is a verdict."""
    program = build_filter(machine)
    count = len(program) // 8
    assert len(program) % 8 == 0
    assert count < 4096
    for place in range(count):
        code, yes, no = program[place * 8], program[place * 8 + 2], program[place * 8 + 3]
        if code & 0x07 == 0x05:
            assert place + 1 + max(yes, no) < count
    assert program[-8] == 0x06
