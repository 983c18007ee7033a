"""The benchmarks of decay and recall run through the real paths and leave nothing behind."""

import pytest
from django.core.management import CommandError
from django.db import connection

from apps.memory.models import Memory
from benchmarks._surfacing_texts import known_notes, messages
from tests.benchmarking import benchmark

pytestmark = pytest.mark.django_db(transaction=True)


def test_decay_is_measured_alone_and_beside_others() -> None:
    if connection.vendor != "sqlite":
        with pytest.raises(CommandError, match="without DATABASE_URL"):
            benchmark("decay", "--own", "40", "--others", "60")
        return
    figures = benchmark("decay", "--own", "40", "--others", "60")
    rows = {row["what"]: row for row in figures["sections"][0]["rows"]}
    for name in ("decay step of a chat turn", "search", "recall_memory, 3 keywords"):
        assert rows[name]["alone"] > 0
        assert rows[name]["beside 60"] > 0
        assert rows[name]["ratio"] == pytest.approx(rows[name]["beside 60"] / rows[name]["alone"])
    assert len(figures["aims"]) == len(rows)
    assert not Memory.everything.exists()


def test_what_comes_up_unasked_is_measured_beside_a_plain_threshold() -> None:
    figures = benchmark("surfacing", "--half", "tuning", "--limit", "1", "--list")
    tables = {section["title"]: section["rows"] for section in figures["sections"]}
    own, plain = (
        {row["messages"]: row for row in tables[f"tuning, {how}: English"]}
        for how in ("occasions by rule", "plain threshold")
    )
    assert {"direct", "paraphrased", "oblique", "follow-up", "idle", "all"} <= own.keys()
    assert own["all"]["number"] == plain["all"]["number"] == 25
    assert own["direct"]["came up %"] == 100
    assert own["all"]["came up %"] > plain["all"]["came up %"]
    assert {"tuning, occasions a model's: de", "tuning, occasions by rule: fr"} <= tables.keys()
    assert figures["aims"][
        "tuning, occasions by rule: at least 97 % of what direct messages want comes up"
    ]
    assert any("missed" in note for note in figures["notes"])
    assert not Memory.everything.exists()


def test_every_message_names_notes_that_there_are() -> None:
    known = {note.key for note in known_notes()}
    said = messages()
    assert all(one.wanted | one.fitting <= known for one in said)
    assert all(len(one.talk) % 2 == 1 for one in said)
    assert len({one.talk for one in said}) == len(said)
    assert len(known) >= 60
    assert sum(one.held_back for one in said) == len(said) / 2


def test_recall_is_measured_by_size_and_by_distance() -> None:
    figures = benchmark("recall", "--sizes", "30", "--edges", "100")
    scores, links = (section["rows"] for section in figures["sections"])
    assert [row["keywords"] for row in scores] == ["1", "3", "3, recall_memory"]
    assert all(row["p50"] > 0 and row["bare pass"] > 0 for row in scores)
    assert [row["links away"] for row in links] == [1, 2, 3, 5]
    assert [row["notes seen"] for row in links] == sorted(row["notes seen"] for row in links)
    assert not Memory.everything.exists()
