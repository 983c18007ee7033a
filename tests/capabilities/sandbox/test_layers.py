"""Requirements: installed once, seen by nobody else, with clear words where they cannot be. With the machine's own installing."""

import asyncio
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings as django_settings

from apps.capabilities.sandbox.base import BUILD_LIMITS, InstallFailed, Purpose
from apps.capabilities.sandbox.bubblewrap.backend import BubblewrapBackend
from apps.capabilities.sandbox.bubblewrap.prepared import prepare
from apps.capabilities.sandbox.layers import installing
from apps.capabilities.sandbox.layers.store import layer_folder, sweep, user_forget
from apps.capabilities.sandbox.requirements import PUBLIC_FILES, PUBLIC_INDEX, parse_requirements
from apps.capabilities.sandbox.store import store_folder
from tests.waiting import PATIENCE

from .backend_suite import opened, run_main, spec

VERSION = "import six\ndef run(args): return six.__version__"


@pytest.fixture
def user() -> Iterator[UUID]:
    """Someone without layers."""
    user_id = uuid4()
    yield user_id
    user_forget(user_id)


class Installations:
    """Counts how often uv was started."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number = 0
        real = installing._run_uv

        async def counted(*args: Any) -> None:
            self.number += 1
            await real(*args)

        monkeypatch.setattr(installing, "_run_uv", counted)


@pytest.fixture
def installations(monkeypatch: pytest.MonkeyPatch) -> Installations:
    return Installations(monkeypatch)


async def test_compiled_packages_and_trees_of_packages_install_once(
    bubblewrap: BubblewrapBackend, user: UUID, installations: Installations
) -> None:
    main = "import numpy, requests\ndef run(args): return str(numpy.arange(4).sum()) + requests.__name__"
    told: list[str] = []

    async def listen(event: dict[str, Any]) -> None:
        told.append(event["status"])

    wanted = "numpy\nrequests\n"
    for _ in range(2):
        sandbox = await bubblewrap.create(spec(user_id=user, requirements=wanted), progress=listen)
        outcome = await sandbox.run_capability({"main.py": main}, {})
        await sandbox.close()
        assert outcome.result == "6requests", outcome
    assert installations.number == 1
    assert told == ["preparing", "installing", "running", "preparing", "running"]


async def test_the_second_call_needs_no_index(
    bubblewrap: BubblewrapBackend, user: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await run_main(bubblewrap, VERSION, user_id=user, requirements="six")).ok
    nowhere = installing.PackageIndex(
        {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/", "UV_HTTP_RETRIES": "0"},
        frozenset({"127.0.0.1:9"}),
        (),
    )
    monkeypatch.setattr(installing, "package_index", lambda: nowhere)
    assert (await run_main(bubblewrap, VERSION, user_id=user, requirements=" SIX # again")).ok
    with pytest.raises(InstallFailed):
        await bubblewrap.create(spec(user_id=user, requirements="six<1.17"))


async def test_many_calls_at_once_install_once(
    bubblewrap: BubblewrapBackend, user: UUID, installations: Installations
) -> None:
    calls = [run_main(bubblewrap, VERSION, user_id=user, requirements="six") for _ in range(5)]
    assert [outcome.error for outcome in await asyncio.gather(*calls)] == [None] * 5
    assert installations.number == 1


@pytest.mark.parametrize(
    ("requirement", "words"),
    [
        ("izzy-there-is-no-such-package", "not found"),
        ("six==999.0", "six==999.0"),
        ("docopt==0.6.2", "wheels"),
        ("six==1.16\nsix==1.15", "conflict"),
    ],
)
async def test_what_cannot_be_installed_says_why(
    bubblewrap: BubblewrapBackend, user: UUID, requirement: str, words: str
) -> None:
    with pytest.raises(InstallFailed) as found:
        await bubblewrap.create(spec(user_id=user, requirements=requirement))
    text = found.value.message
    assert words in text or (words == "conflict" and "unsatisfiable" in text), text
    assert "/opt/stage" not in text
    assert not any((store_folder(prepare().identity) / "staging").iterdir())


async def test_a_cancelled_installation_leaves_nothing_and_can_be_made_again(
    bubblewrap: BubblewrapBackend, user: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelled while uv waits for an index that does not answer."""
    asked = asyncio.Event()
    async with await asyncio.start_server(lambda *_: asked.set(), "127.0.0.1", 0) as silent:
        address = f"127.0.0.1:{silent.sockets[0].getsockname()[1]}"
        found = installing.PackageIndex(
            {"UV_DEFAULT_INDEX": f"http://{address}/"}, frozenset({address}), ()
        )
        with monkeypatch.context() as patch:
            patch.setattr(installing, "package_index", lambda: found)
            creating = asyncio.create_task(bubblewrap.create(spec(user_id=user, requirements="six")))
            await asyncio.wait_for(asked.wait(), PATIENCE)
            creating.cancel()
            with pytest.raises(asyncio.CancelledError):
                await creating
    assert not any((store_folder(prepare().identity) / "staging").iterdir())
    assert (await run_main(bubblewrap, VERSION, user_id=user, requirements="six")).ok


async def test_layers_larger_than_allowed_are_refused(
    bubblewrap: BubblewrapBackend, user: UUID, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.IZZY_LAYER_MB = 1
    monkeypatch.setattr(installing, "SIZE_CHECK_SECONDS", 0.01)
    with pytest.raises(InstallFailed):
        await bubblewrap.create(spec(user_id=user, requirements="numpy"))
    assert not layer_folder(prepare(), user, ["numpy"]).exists()


async def test_a_layer_is_read_only_and_other_users_layers_cannot_be_seen(
    bubblewrap: BubblewrapBackend, user: UUID
) -> None:
    main = f"""
import glob, os, six
def run(args):
    try: open(six.__file__, 'a').write('x'); return 'written'
    except OSError: pass
    try: os.unlink(six.__file__); return 'deleted'
    except OSError: pass
    return str([os.path.exists({str(django_settings.IZZY_SANDBOX_DIR)!r}), os.listdir('/opt')])
"""
    outcome = await run_main(bubblewrap, main, user_id=user, requirements="six")
    assert outcome.result == "[False, ['deps', 'izzy']]" or outcome.result == "[False, ['izzy', 'deps']]"
    other = await run_main(bubblewrap, VERSION, user_id=uuid4())
    assert other.error is not None
    assert "ModuleNotFoundError" in other.error.message
    layers = layer_folder(prepare(), user, ["six"])
    assert layers.parent != layer_folder(prepare(), uuid4(), ["six"]).parent


async def test_packages_installed_by_a_build_can_be_imported_at_once(
    bubblewrap: BubblewrapBackend, user: UUID
) -> None:
    views = store_folder(prepare().identity) / "views"
    before = set(views.iterdir())
    wanted = spec(user_id=user, purpose=Purpose.BUILD, limits=BUILD_LIMITS)
    async with opened(bubblewrap, wanted) as sandbox:
        assert not (await sandbox.run_code("import six")).ok
        done = await sandbox.run_command("pip install -q 'six==1.16.0'")
        assert done.ok, done
        assert (await sandbox.run_code("import six; six.__version__")).value == "'1.16.0'"
        assert (await sandbox.run_capability({"main.py": VERSION}, {})).result == "1.16.0"
        for bad in (
            "pip install git+https://x.test/y",
            "pip install -e .",
            "pip uninstall six",
            "pip install ./x",
        ):
            assert not (await sandbox.run_command(bad)).ok
    assert set(views.iterdir()) == before


async def test_unused_layers_are_removed_and_used_ones_stay(
    bubblewrap: BubblewrapBackend, user: UUID
) -> None:
    await run_main(bubblewrap, VERSION, user_id=user, requirements="six")
    layer = layer_folder(prepare(), user, parse_requirements("six"))
    long_ago = time.time() - (django_settings.IZZY_LAYER_DAYS + 1) * 86_400
    os.utime(layer, (long_ago, long_ago))
    await run_main(bubblewrap, VERSION, user_id=user, requirements="six")
    sweep()
    assert layer.is_dir()
    os.utime(layer, (long_ago, long_ago))
    sweep()
    assert not layer.exists()
    assert (await run_main(bubblewrap, VERSION, user_id=user, requirements="six")).ok


async def test_sweeps_of_several_workers_get_in_nobodys_way(
    bubblewrap: BubblewrapBackend, user: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each finds listed what another has just removed."""
    await run_main(bubblewrap, VERSION, user_id=user, requirements="six")
    prepared = prepare()
    layer = layer_folder(prepared, user, parse_requirements("six"))
    gone = [layer.with_name("gone"), store_folder(prepared.identity) / "staging" / "gone"]
    real = Path.iterdir
    monkeypatch.setattr(
        Path,
        "iterdir",
        lambda self: iter([*real(self), *(each for each in gone if each.parent == self)]),
    )
    monkeypatch.setattr(Path, "is_dir", lambda self: self in gone or os.path.isdir(self))
    sweep()
    assert layer.is_dir()


async def test_a_layer_that_a_sweep_removes_in_the_last_moment_is_installed_anew(
    bubblewrap: BubblewrapBackend,
    user: UUID,
    installations: Installations,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await run_main(bubblewrap, VERSION, user_id=user, requirements="six")
    layer = layer_folder(prepare(), user, parse_requirements("six"))
    real = os.utime

    def too_late(path: Any, *args: Any) -> None:
        if path == layer and installations.number == 1 and layer.exists():
            shutil.rmtree(layer)
        real(path, *args)

    monkeypatch.setattr(os, "utime", too_late)
    assert (await run_main(bubblewrap, VERSION, user_id=user, requirements="six")).ok
    assert installations.number == 2


async def test_what_a_user_had_installed_is_counted_when_it_is_removed(
    bubblewrap: BubblewrapBackend, user: UUID
) -> None:
    for wanted in ("six", "six==1.16.0"):
        await run_main(bubblewrap, VERSION, user_id=user, requirements=wanted)
    assert user_forget(user) == 2
    assert user_forget(user) == 0


async def test_a_full_disk_is_told_as_such(
    bubblewrap: BubblewrapBackend, user: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(made: Path, layer: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(installing, "_put_in_place", full)
    with pytest.raises(InstallFailed, match="could not be stored: No space left on device"):
        await bubblewrap.create(spec(user_id=user, requirements="six"))


def test_folders_of_processes_that_are_gone_are_removed(bubblewrap: BubblewrapBackend) -> None:
    staging = store_folder(prepare().identity) / "staging"
    left, new = staging / "left", staging / "new"
    for folder in (left, new):
        (folder / "layer").mkdir(parents=True)
    os.utime(left, (time.time() - 3600,) * 2)
    sweep()
    assert not left.exists()
    assert new.exists()
    shutil.rmtree(new)


async def test_a_strict_umask_of_the_server_changes_nothing(
    bubblewrap: BubblewrapBackend, user: UUID
) -> None:
    kept = os.umask(0o077)
    try:
        assert (await run_main(bubblewrap, VERSION, user_id=user, requirements="six")).ok
        wanted = spec(user_id=user, requirements="six", purpose=Purpose.BUILD, limits=BUILD_LIMITS)
        async with opened(bubblewrap, wanted) as sandbox:
            assert (await sandbox.run_code("import six")).ok
    finally:
        os.umask(kept)


async def test_files_of_earlier_versions_are_removed_and_present_ones_stay(
    bubblewrap: BubblewrapBackend,
) -> None:
    inside = prepare().inside
    old, new = inside.parent / "old", inside.parent / "new"
    long_ago = time.time() - (django_settings.IZZY_LAYER_DAYS + 1) * 86_400
    for folder in (old, new):
        folder.mkdir()
    for folder in (old, inside):
        os.utime(folder, (long_ago, long_ago))
    sweep()
    assert not old.exists()
    assert new.exists()
    assert (await run_main(bubblewrap, "def run(args): return 'still there'")).ok


@pytest.fixture
def _no_configuration(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in installing.UV_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(installing, "UV_FILES", ())
    monkeypatch.setattr(installing, "_from_pip", dict)
    installing.package_index.cache_clear()
    yield
    installing.package_index.cache_clear()


@pytest.mark.usefixtures("_no_configuration")
class TestIndex:
    def test_without_a_configuration_it_is_pypi(self) -> None:
        assert installing.package_index().hosts == {
            f"{PUBLIC_INDEX}:443",
            f"{PUBLIC_FILES}:443",
        }

    def test_a_configured_index_takes_its_place(
        self, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        monkeypatch.setenv("UV_DEFAULT_INDEX", "http://user:key@packages.lan:8080/simple")
        settings.IZZY_PACKAGE_HOSTS = ["files.lan"]
        assert installing.package_index().hosts == {"packages.lan:8080", "files.lan:443"}

    def test_folders_of_wheels_are_read_too(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "simple").mkdir()
        monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
        monkeypatch.setenv("UV_INDEX", f"file://{tmp_path}/simple")
        found = installing.package_index()
        assert found.folders == (tmp_path,)
        assert f"{PUBLIC_INDEX}:443" in found.hosts

    def test_a_file_of_uv_is_read(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        file = tmp_path / "uv.toml"
        file.write_text('[[index]]\nname = "own"\nurl = "https://own.test/simple"\ndefault = true\n')
        monkeypatch.setattr(installing, "UV_FILES", (str(file),))
        assert installing.package_index().hosts == {"own.test:443"}
