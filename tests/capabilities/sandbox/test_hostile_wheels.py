"""Packages made to get out of their folder, to run before the tool does, or to stand in place of what serves it."""

import stat
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from apps.capabilities.sandbox.base import BUILD_LIMITS, InstallFailed, Purpose
from apps.capabilities.sandbox.bubblewrap import backend
from apps.capabilities.sandbox.bubblewrap.backend import BubblewrapBackend
from apps.capabilities.sandbox.bubblewrap.prepared import prepare
from apps.capabilities.sandbox.layers import installing
from apps.capabilities.sandbox.layers.store import layer_folder, user_forget
from apps.capabilities.sandbox.store import store_folder

from .backend_suite import opened, run_main, spec

MAIN = "import json, sys, os\ndef run(args): return json.dumps([json.__file__, os.path.exists('/tmp/ran'), 'q' in sys.modules])"


@pytest.fixture
def user() -> Iterator[UUID]:
    user_id = uuid4()
    yield user_id
    user_forget(user_id)


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder whose wheels are all that can be installed; the sandbox's user can read it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        found = installing.PackageIndex(
            {"UV_FIND_LINKS": name, "UV_OFFLINE": "1"}, frozenset(), (folder,)
        )
        monkeypatch.setattr(installing, "package_index", lambda: found)
        yield folder


def put(
    shelf: Path, files: dict[str, str], *, version: str = "1.0", links: tuple[str, ...] = ()
) -> None:
    """A wheel `evil` with these files; those in `links` are symbolic links to where their text says."""
    info = f"evil-{version}.dist-info"
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: evil\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    place = shelf / f"evil-{version}-py3-none-any.whl"
    with zipfile.ZipFile(place, "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (stat.S_IFLNK | 0o777 if name in links else stat.S_IFREG | 0o644) << 16
            wheel.writestr(entry, text)
    place.chmod(0o644)


@pytest.mark.parametrize(
    "name",
    [
        "../outside.py",
        "../../../../../../../../tmp/outside.py",
        "/tmp/outside.py",
        "/opt/stage/outside.py",
        "evil/../../outside.py",
        "evil-1.0.data/data/../../outside.py",
        "evil-1.0.data/data//opt/stage/outside.py",
        "evil-1.0.data/purelib/../outside.py",
        "evil-1.0.data/scripts/../../outside.py",
        "evil-1.0.dist-info/../../outside.py",
    ],
)
async def test_no_file_of_a_wheel_lands_outside_of_its_layer(
    bubblewrap: BubblewrapBackend, user: UUID, shelf: Path, name: str
) -> None:
    put(shelf, {"evil/__init__.py": "", name: "x = 1\n"})
    with suppress(InstallFailed):
        outcome = await run_main(bubblewrap, MAIN, user_id=user, requirements="evil")
        assert outcome.ok, outcome
    found = store_folder(prepare().identity).rglob("outside.py")
    layer = layer_folder(prepare(), user, ["evil"])
    assert not [place for place in found if layer not in place.parents]
    assert not any((store_folder(prepare().identity) / "staging").iterdir())


async def test_a_package_does_not_stand_in_for_what_serves_the_tool(
    bubblewrap: BubblewrapBackend, user: UUID, shelf: Path
) -> None:
    evil = "import sys; sys.modules['q'] = sys; open('/tmp/ran', 'w')\ndef run(args): return 'evil'\nraise SystemExit\n"
    names = (
        *("json.py", "main.py", "os.py", "inside/__init__.py", "inside/tool.py", "sitecustomize.py"),
        *(
            "usercustomize.py",
            "encodings/__init__.py",
            "evil-1.0.data/scripts/pip9",
            "bin/python",
            "bin/sh",
        ),
    )
    loaded = "import sys; sys.modules['q'] = sys; open('/tmp/ran', 'w')\n/opt/izzy\n"
    put(shelf, {"evil/__init__.py": "", "evil.pth": loaded, **dict.fromkeys(names, evil)})
    outcome = await run_main(bubblewrap, MAIN, user_id=user, requirements="evil")
    assert outcome.result is not None, outcome
    assert "/opt/deps" not in outcome.result
    assert outcome.result.endswith(", false, false]")
    wanted = spec(user_id=user, requirements="evil", purpose=Purpose.BUILD, limits=BUILD_LIMITS)
    async with opened(bubblewrap, wanted) as sandbox:
        assert (await sandbox.run_capability({"main.py": MAIN}, {})).result == outcome.result
        assert (
            await sandbox.run_code("import json; json.__file__.startswith('/opt/deps')")
        ).value == "False"
        done = await sandbox.run_command("command -v python pip sh")
        assert "/opt/deps" not in done.stdout


async def test_links_of_a_wheel_are_no_links(
    bubblewrap: BubblewrapBackend, user: UUID, shelf: Path, tmp_path: Path
) -> None:
    put(
        shelf,
        {"evil/__init__.py": "", "evil/file": "/etc/shadow", "there": str(tmp_path)},
        links=("evil/file", "there"),
    )
    await run_main(bubblewrap, MAIN, user_id=user, requirements="evil")
    layer = layer_folder(prepare(), user, ["evil"])
    assert (layer / "there").read_text() == str(tmp_path)
    assert not [place for place in layer.rglob("*") if place.is_symlink()]


def test_a_folder_takes_the_place_of_a_file_or_a_link_and_the_other_way_round(tmp_path: Path) -> None:
    """Packages of a build come to the ones before: nothing is written through a link."""
    view, newer, elsewhere = (tmp_path / name for name in ("view", "newer", "elsewhere"))
    for folder in (view / "b", newer / "a", newer / "c", elsewhere):
        folder.mkdir(parents=True)
    (view / "a").write_text("a module")
    (view / "b" / "old.py").write_text("of a package")
    (view / "c").symlink_to(elsewhere)
    (newer / "a" / "new.py").write_text("of a package")
    (newer / "b").write_text("a module")
    (newer / "c" / "new.py").write_text("of a package")
    backend._link_tree(newer, view)
    assert sorted(str(place.relative_to(view)) for place in view.rglob("*") if place.is_file()) == [
        "a/new.py",
        "b",
        "c/new.py",
    ]
    assert not list(elsewhere.iterdir())


async def test_a_build_installs_so_often_and_asks_for_no_secret(
    bubblewrap: BubblewrapBackend, user: UUID, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "MOST_INSTALLS", 1)
    put(shelf, {"evil/__init__.py": ""})
    wanted = spec(
        user_id=user, purpose=Purpose.BUILD, limits=BUILD_LIMITS, secrets=["Kx9_Secret.Value77"]
    )
    async with opened(bubblewrap, wanted) as sandbox:
        for line in ("kx9-secret-value77", "six==Kx9SecretValue77"):
            done = await sandbox.run_command(f"pip install {line}")
            assert not done.ok
            assert "secret or a key" in done.stderr
        for _ in range(2):
            assert (await sandbox.run_command("pip install evil")).ok
        done = await sandbox.run_command("pip install 'evil<3'")
        assert not done.ok
        assert "1 times" in done.stderr
