"""The files that run Izzy in containers say what is there: commands, files, settings, and a filter that sandboxes can live with."""

import fnmatch
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.core.management import get_commands

from apps.capabilities.sandbox.bubblewrap.seccomp import MACHINES
from scripts import runtime_lock
from scripts.start_as_composed import (
    ComposeError,
    image_environment,
    image_files,
    interpolated,
    services,
)
from tests.site.test_documented import settings_read

ROOT = Path(settings.BASE_DIR)
COMPOSE = (ROOT / "compose.yaml").read_text()
DOCKERFILE = (ROOT / "Dockerfile").read_text()
EXAMPLE = (ROOT / "deploy" / "compose.env.example").read_text()
VALUES = {"POSTGRES_PASSWORD": "p", "IZZY_SECRET_KEY": "s", "IZZY_SECRETS_KEY": "k"}
IMAGES = {"POSTGRES_USER", "POSTGRES_PASSWORD", "POSTGRES_DB", "POSTGRES_INITDB_ARGS", "IZZY_DOMAIN"}
"""Variables of the other services' images, and Caddy's."""
OTHERS = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
"""Those that a library of ours reads by itself."""


def test_each_service_of_ours_runs_a_command_that_exists() -> None:
    ours = [each for each in services(VALUES).values() if each.image == "izzy:latest"]
    assert {each.name for each in ours} == {"prepare", "web", "worker"}
    assert {each.command[0] for each in ours} <= set(get_commands())


def test_web_processes_and_workers_are_as_many_as_asked_for() -> None:
    found = services({**VALUES, "IZZY_WEBS": "5", "IZZY_WORKERS": "3"})
    assert (found["web"].replicas, found["worker"].replicas) == (5, 3)
    assert services(VALUES)["web"].replicas == 2


@pytest.mark.parametrize("missing", sorted(VALUES))
def test_without_its_secrets_nothing_starts(missing: str) -> None:
    with pytest.raises(ComposeError, match=f"{missing}: set {missing} in .env"):
        services({name: value for name, value in VALUES.items() if name != missing})


def test_values_may_stand_in_one_anothers_place() -> None:
    assert interpolated("${A:-x${B:-y}}$$", {}) == "xy$"
    assert interpolated("${A:-x${B:-y}}", {"B": "z"}) == "xz"
    assert interpolated("${A:-x${B:-y}}", {"A": "a"}) == "a"


def test_the_database_is_brought_up_to_date_once_and_before_all_else() -> None:
    found = services(VALUES)
    assert found["prepare"].replicas == 1
    for name in ("web", "worker"):
        assert found[name].waits_for["prepare"] == "service_completed_successfully"
    assert found["prepare"].waits_for == {"db": "service_healthy"}


def test_what_is_given_to_izzy_are_settings_of_izzys() -> None:
    for each in services(VALUES).values():
        known = settings_read() | OTHERS if each.image == "izzy:latest" else IMAGES
        assert set(each.environment) <= known, each.name
    others = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "MALLOC_ARENA_MAX"}
    assert set(image_environment()) <= settings_read() | others


def test_no_key_stands_in_a_file_and_the_example_names_every_value() -> None:
    asked = set(re.findall(r"\$\{([A-Z0-9_]+)", COMPOSE))
    named = dict(re.findall(r"^([A-Z0-9_]+)=(.*)$", EXAMPLE, re.MULTILINE))
    assert set(named) == asked - {"IZZY_PUBLIC_URL"}
    assert [name for name in VALUES if named[name]] == []


def test_izzys_containers_have_no_capability_and_cannot_gain_one() -> None:
    for name in ("prepare", "web", "worker"):
        service = yaml.safe_load(COMPOSE)["services"][name]
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]
        assert "seccomp:./deploy/seccomp.json" in service["security_opt"]
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER \d+:\d+$", last, re.MULTILINE)
    installed = re.findall(r"apt-get install .*? ([a-z][\w -]+?) \\", last)
    assert installed == ["bubblewrap"]


def test_what_the_image_copies_is_there_and_gets_through_the_ignore_file() -> None:
    allowed = [
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")
    ]
    lines = re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE)
    sources = [source for line in lines for source in line.split()[:-1]]
    assert len(sources) > 8
    for source in sources:
        assert (ROOT / source).exists(), source
        assert any(fnmatch.fnmatch(source, pattern) for pattern in allowed), source
    assert not [name for name in allowed if name.startswith((".env", "data", ".git"))]


def test_the_image_holds_what_runs_and_no_tests_data_or_keys(tmp_path: Path) -> None:
    held = {file.name for file in image_files(tmp_path).iterdir()}
    assert {"manage.py", "apps", "izzysite", "static", "templates"} <= held
    assert not held & {"tests", "data", ".env", ".venv", ".git"}


@pytest.mark.skipif(shutil.which("caddy") is None, reason="Caddy is not installed")
@pytest.mark.parametrize("upstreams", ["", "to 127.0.0.1:8001 127.0.0.1:8002"])
def test_caddy_takes_its_file(tmp_path: Path, upstreams: str) -> None:
    given = {"IZZY_UPSTREAMS": upstreams} if upstreams else {}
    environment = os.environ | {"XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    command = ["caddy", "validate", "--config", "deploy/Caddyfile", "--adapter", "caddyfile"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment | given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


NEW = {
    name: 425 + number
    for number, name in enumerate(("io_uring_setup", "io_uring_enter", "io_uring_register"))
}
NEW |= {
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
}
NEW |= {"process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443}
"""Numbers of system calls that are the same on all machines."""
UNDER_THE_FILTER = """
import ctypes, json, os, struct, sys
audit, denied, command = json.loads(sys.argv[1])
program = [(0x20, 0, 0, 4), (0x15, 1, 0, audit), (0x06, 0, 0, 0), (0x20, 0, 0, 0)]
for number in denied:
    program += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050001)]
program.append((0x06, 0, 0, 0x7FFF0000))
code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *each) for each in program))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(len(program), ctypes.addressof(code)))) == 0, ctypes.get_errno()
assert libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) != 0
assert libc.syscall(425, 1, 0) == -1 and ctypes.get_errno() == 1
os.execvp(command[0], command)
"""


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_bubblewrap_makes_its_namespaces_under_the_containers_filter() -> None:
    profile = json.loads((ROOT / "deploy" / "seccomp.json").read_text())
    assert profile["defaultAction"] == "SCMP_ACT_ALLOW"
    (rule,) = profile["syscalls"]
    machine = MACHINES[platform.machine()]
    numbers = machine.numbers | NEW
    denied = [numbers[name] for name in rule["names"] if name in numbers]
    assert len(denied) > 25
    bwrap = [
        "bwrap",
        "--unshare-all",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",
        "true",
    ]
    nobody: dict[str, Any] = (
        {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    )
    # The system's Python, which an unprivileged user reads.
    python = "/usr/bin/python3" if nobody else sys.executable
    done = subprocess.run(
        [python, "-I", "-c", UNDER_THE_FILTER, json.dumps([machine.audit, denied, bwrap])],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        **nobody,
    )
    assert done.returncode == 0, done.stderr


LOCK = """a==1.0 ; python_version > '3' \\
    --hash=sha256:01
    --hash=sha256:02
b-b==2 \\
    --hash=sha256:03
c==3
"""


def test_the_smaller_lock_keeps_versions_markers_and_hashes(tmp_path: Path) -> None:
    lock, names = tmp_path / "lock", tmp_path / "names"
    lock.write_text(LOCK)
    names.write_text("a==1.0 ; python_version > '3'\n    # via izzy\n")
    assert runtime_lock.main(str(lock), str(names)) == LOCK.partition("b-b")[0].rstrip()
    names.write_text("B_b==2\n")
    assert "sha256:03" in runtime_lock.main(str(lock), str(names))


@pytest.mark.parametrize("asked", ["d==1", "a==1.1", "c==3", ""])
def test_what_the_lock_does_not_hold_with_a_hash_is_not_installed(tmp_path: Path, asked: str) -> None:
    lock, names = tmp_path / "lock", tmp_path / "names"
    lock.write_text(LOCK)
    names.write_text(asked)
    with pytest.raises(SystemExit, match="lacks"):
        runtime_lock.main(str(lock), str(names))
