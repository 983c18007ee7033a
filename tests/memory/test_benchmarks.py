"""The benchmarks of decay and recall run through the real paths and leave nothing behind."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from apps.memory.models import Memory

pytestmark = pytest.mark.django_db(transaction=True)


def benchmark(*args: str) -> dict[str, Any]:
    out = StringIO()
    call_command("benchmark", *args, "--json", "-", stdout=out)
    figures: dict[str, Any] = json.loads(out.getvalue())
    return figures


def test_decay_is_measured_alone_and_beside_others() -> None:
    figures = benchmark("decay", "--own", "40", "--others", "60")
    rows = {row["what"]: row for row in figures["sections"][0]["rows"]}
    for name in ("decay step of a chat turn", "search", "recall_memory, 3 keywords"):
        assert rows[name]["alone"] > 0
        assert rows[name]["beside 60"] > 0
        assert rows[name]["ratio"] == pytest.approx(rows[name]["beside 60"] / rows[name]["alone"])
    assert len(figures["aims"]) == len(rows)
    assert not Memory.everything.exists()


def test_recall_is_measured_by_size_and_by_distance() -> None:
    figures = benchmark("recall", "--sizes", "30", "--edges", "100")
    scores, links = (section["rows"] for section in figures["sections"])
    assert [row["keywords"] for row in scores] == ["1", "3", "3, recall_memory"]
    assert all(row["p50"] > 0 and row["bare pass"] > 0 for row in scores)
    assert [row["links away"] for row in links] == [1, 2, 3, 5]
    assert [row["notes seen"] for row in links] == sorted(row["notes seen"] for row in links)
    assert not Memory.everything.exists()
