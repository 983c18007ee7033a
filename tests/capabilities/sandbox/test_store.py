"""Where sandboxes keep their files when nobody says where: a folder whose path tells nothing, remembered by the data directory."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.capabilities.sandbox import store
from apps.capabilities.sandbox.bubblewrap.identity import Identity

ORDINARY = Identity(os.geteuid(), os.getegid(), dropped=False)


@pytest.fixture
def shared(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    settings.IZZY_SANDBOX_DIR = ""
    settings.IZZY_DATA_DIR = tmp_path / "alice" / "data"
    folder = tmp_path / "shared"
    folder.mkdir()
    monkeypatch.setattr(store, "SHARED_FOLDERS", (tmp_path / "missing", folder))
    yield folder
    store.store_folder.cache_clear()


def placed() -> Path:
    store.store_folder.cache_clear()
    return store.store_folder(ORDINARY)


def test_its_path_names_neither_user_nor_data_and_it_is_found_again(shared: Path) -> None:
    place = placed()
    assert place.parent == shared
    assert (place / "layers").is_dir()
    assert place.stat().st_mode & 0o077 == 0
    assert placed() == place


def test_what_lay_in_the_data_directory_is_given_up(shared: Path, settings: Any) -> None:
    old = settings.IZZY_DATA_DIR / "sandbox" / "layers"
    old.mkdir(parents=True)
    place = placed()
    assert old.resolve() == place / "layers"


@pytest.mark.parametrize("fault", ["gone", "open to others", "unused for long", "a link"])
def test_a_folder_that_is_not_surely_ours_and_whole_is_replaced(
    shared: Path, tmp_path: Path, fault: str
) -> None:
    place = placed()
    (place / "layers" / "rest").mkdir()
    if fault == "open to others":
        place.chmod(0o777)
    elif fault == "unused for long":
        os.utime(place, (1_000_000, 1_000_000))
    else:
        place.rename(tmp_path / "moved")
        if fault == "a link":
            place.symlink_to(tmp_path / "moved")
    found = placed()
    assert found != place
    assert not (found / "layers" / "rest").exists()


def test_where_no_shared_folder_will_do_it_lies_in_the_data_directory(
    shared: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "SHARED_FOLDERS", ())
    assert placed() == settings.IZZY_DATA_DIR / "sandbox"
