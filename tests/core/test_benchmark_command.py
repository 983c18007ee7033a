"""`manage.py benchmark NAME`."""

import json
import sys
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.core.management.commands import benchmark
from benchmarks.report import Report

Module = ModuleType


def run(options: dict[str, Any]) -> Report:
    report = Report("sums", settings={"n": options["n"]})
    table = report.section("Sums", ["way", "ms", "rows"])
    table.add("loop", 12.345, options["n"])
    table.add("formula", None, 1)
    report.aims["the formula is faster"] = True
    report.aims["the loop is faster"] = False
    report.notes.append("both in one run")
    return report


@pytest.fixture
def sums(monkeypatch: pytest.MonkeyPatch) -> Module:
    """A benchmark called `sums`, as if its module lay in benchmarks/."""
    module = Module("benchmarks.sums", "Adds numbers up.\n\nMore about it.")
    module.add_arguments = lambda parser: parser.add_argument("--n", type=int, default=1000)  # type: ignore[attr-defined]
    module.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "benchmarks.sums", module)
    monkeypatch.setattr(benchmark, "benchmark_names", lambda: ["sums"])
    return module


def output(*arguments: str) -> str:
    out = StringIO()
    call_command("benchmark", *arguments, stdout=out)
    return out.getvalue()


def test_the_table_and_the_figures_are_printed(sums: Module) -> None:
    printed = output("sums", "--n", "2000")
    for expected in (
        "Sums",
        "12.35",
        "2,000",
        "–",
        "met     the formula is faster",
        "not met the loop is faster",
        "both in one run",
    ):
        assert expected in printed
    figures = json.loads(printed[printed.index("{") :])
    assert figures["settings"] == {"n": 2000}
    assert figures["sections"][0]["rows"][0] == {"way": "loop", "ms": 12.345, "rows": 2000}
    assert figures["aims"] == {"the formula is faster": True, "the loop is faster": False}


def test_the_figures_alone_can_be_printed(sums: Module) -> None:
    assert json.loads(output("sums", "--json", "-"))["name"] == "sums"


def test_the_figures_can_be_written_to_a_file(sums: Module, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    printed = output("sums", "--json", str(file))
    assert str(file) in printed
    assert json.loads(file.read_text())["name"] == "sums"


def test_an_unknown_name_is_refused(sums: Module) -> None:
    with pytest.raises(CommandError, match="invalid choice"):
        output("products")


def test_a_module_that_does_not_keep_the_contract_is_named(sums: Module) -> None:
    del sums.run
    with pytest.raises(CommandError, match=r"benchmarks/sums.py has no run"):
        output("sums")


def test_a_row_must_fit_its_table() -> None:
    table = Report("x").section("x", ["a", "b"])
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        table.add(1)


def test_what_only_supports_benchmarks_is_none() -> None:
    assert "report" not in benchmark.benchmark_names()


def test_a_file_that_cannot_be_written_is_told_before_anything_is_measured(
    sums: Module, tmp_path: Path
) -> None:
    measured: list[dict[str, Any]] = []
    sums.run = measured.append  # type: ignore[attr-defined]
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("benchmark", "sums", "--json", str(tmp_path / "missing" / "figures.json"))
    assert measured == []
