"""Counting: what processes count, and what is left when one of them has ended, cannot write, or meets too many names."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from apps.core.metrics import base, processes
from apps.core.metrics.base import MAX_VALUES, OTHER, Figure, counter, gauge, histogram
from apps.core.metrics.exposition import metrics_text

HELPER = """
import os, signal, sys
import django
django.setup()
from apps.core.metrics.base import counter, gauge
from apps.core.metrics.processes import metrics_open
counted, held = counter("izzy_counted_total", "Counted."), gauge("izzy_held", "Held.")
metrics_open()
counted.add(amount=3)
held.set(5)
print("counted", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data directory of its own, no figures but those of the test, and no count when it is over."""
    settings.IZZY_DATA_DIR = tmp_path
    monkeypatch.setattr(base, "figures", {})
    monkeypatch.setattr(base, "queues", {})
    monkeypatch.setattr("apps.core.metrics.exposition.queues", {})
    processes.metrics_close()
    yield tmp_path
    processes.metrics_close()
    os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)


def shown() -> dict[str, float]:
    """The figures as a scraper reads them: by name with labels."""
    lines = metrics_text()[0].decode().splitlines()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))
    }


@pytest.fixture
def other(place: Path) -> Iterator["subprocess.Popen[Any]"]:
    """Another process of the same machine, which has counted 3 and holds 5."""
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "izzysite.settings",
        "IZZY_DATA_DIR": str(place),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", HELPER],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"counted\n"
    yield process
    process.kill()
    process.communicate()


def test_nothing_is_counted_before_the_figures_are_opened() -> None:
    counted = counter("izzy_counted_total", "Counted.")
    counted.add()
    processes.metrics_open()
    assert "izzy_counted_total" not in shown()
    counted.add()
    assert shown()["izzy_counted_total"] == 1


def test_one_process_shows_what_all_have_counted(other: "subprocess.Popen[Any]") -> None:
    processes.metrics_open()
    counter("izzy_counted_total", "Counted.").add(amount=4)
    gauge("izzy_held", "Held.").set(2)
    assert shown()["izzy_counted_total"] == 7
    assert shown()["izzy_held"] == 7


def test_what_a_killed_process_has_counted_stays_and_what_it_held_is_gone(
    other: "subprocess.Popen[Any]",
) -> None:
    processes.metrics_open()
    gauge("izzy_held", "Held.").set(2)
    other.kill()
    other.wait()
    assert shown()["izzy_counted_total"] == 3
    assert shown()["izzy_held"] == 2


def test_when_all_have_ended_the_next_begins_anew(other: "subprocess.Popen[Any]") -> None:
    other.kill()
    other.wait()
    processes.metrics_open()
    counter("izzy_counted_total", "Counted.").add()
    assert shown()["izzy_counted_total"] == 1


def test_a_histogram_counts_by_its_bounds() -> None:
    processes.metrics_open()
    seconds = histogram("izzy_some_seconds", "Some.", "kind", buckets=(0.1, 1.0))
    for value in (0.05, 0.5, 5.0):
        seconds.observe(value, "a")
    found = shown()
    assert [
        found[f'izzy_some_seconds_bucket{{kind="a",le="{le}"}}'] for le in ("0.1", "1.0", "+Inf")
    ] == [
        1,
        2,
        3,
    ]
    assert found['izzy_some_seconds_sum{kind="a"}'] == 5.55


def test_names_beyond_the_limit_count_as_others() -> None:
    processes.metrics_open()
    counted = counter("izzy_counted_total", "Counted.", "name")
    for number in range(MAX_VALUES + 10):
        counted.add(f"name {number}")
    found = {name: value for name, value in shown().items() if name.startswith("izzy_counted")}
    assert len(found) == MAX_VALUES + 1
    assert found[f'izzy_counted_total{{name="{OTHER}"}}'] == 10


def test_a_folder_that_cannot_be_written_leaves_each_process_its_own_figures(place: Path) -> None:
    (place / "metrics").write_text("in the way")
    processes.metrics_open()
    counter("izzy_counted_total", "Counted.").add()
    assert not processes.is_shared()
    assert shown()["izzy_counted_total"] == 1


def test_a_full_disk_costs_the_figure_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    processes.metrics_open()
    early = counter("izzy_early_total", "Early.")
    early.add()

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    late = histogram("izzy_late_seconds", "Late.")
    late.observe(1.0)
    early.add()
    assert shown()["izzy_early_total"] == 2
    monkeypatch.undo()
    late.observe(1.0)


def test_room_is_taken_before_it_is_written(place: Path) -> None:
    processes.metrics_open()
    long = counter("izzy_long_total", "Long.", "name")
    for number in range(150):
        long.add(f"{number}" + "x" * 1000)
    (file,) = processes.folder().glob("counter_*.db")
    status = file.stat()
    assert status.st_size > 1 << 16
    assert status.st_blocks * 512 >= status.st_size


def test_a_count_with_other_labels_than_declared_is_a_mistake() -> None:
    processes.metrics_open()
    with pytest.raises(TypeError, match="labels"):
        Figure("izzy_counted_total", "counter", "Counted.", ("name",)).add()
