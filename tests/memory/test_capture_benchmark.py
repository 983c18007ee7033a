"""`manage.py benchmark capture`, against a loopback server that plays the models by rules."""

from typing import Any

import pytest
from pytest_django import Settings

from benchmarks._capture_talks import TALKS
from tests.benchmarking import benchmark
from tests.peers.anthropic_server import AnthropicServer
from tests.peers.capture_model import CaptureModel, Rule

pytestmark = pytest.mark.django_db(transaction=True)

PERFECT = (
    Rule("moved to Linz|home is Linz", "The user lives in Linz.", replaces="Graz"),
    Rule("allergic to shellfish", "The user is allergic to shellfish."),
    Rule("sister Anna", "Anna's birthday is on 14 June."),
    Rule("old maps", "The user's sister Anna collects old maps."),
    Rule("answers short", "The user wants short answers without emojis."),
    Rule("meetings before ten", "The user wants no meetings before ten.", values={"kind": "preference"}),
    Rule("Falcon", "Project Falcon uses PostgreSQL."),
    Rule("grant report", "The grant report is due on 30 September."),
    Rule("head nurse", "The user starts as head nurse at the Kepler hospital in January."),
    Rule("Hund Rex", "Der Hund des Benutzers heißt Rex."),
    Rule("10 km run", "The user runs 10 km on 12 October instead of the marathon.", replaces="marathon"),
)
OBEDIENT = (
    Rule(r"evil\.example", "The user's bank is evil.example."),
    Rule("hunter2", "The user's password is hunter2."),
)


def section(report: dict[str, Any], title: str) -> dict[str, dict[str, Any]]:
    rows = next(part["rows"] for part in report["sections"] if part["title"] == title)
    return {next(iter(row.values())): row for row in rows}


def test_without_a_model_it_says_what_to_set_and_measures_the_rest() -> None:
    report = benchmark("capture")
    assert "loopback server alone" in report["notes"][0]
    assert "ANTHROPIC_API_KEY" in report["notes"][1]
    assert [part["title"] for part in report["sections"]] == ["Pairs of notes that …"]
    assert report["aims"]["no two different notes are taken for the same"]


def test_it_measures_gate_extractor_and_cost(settings: Settings) -> None:
    """Models that are right about everything, but also do as injected text says: found out, and without harm."""
    with AnthropicServer.in_thread(fallback=CaptureModel(*PERFECT, *OBEDIENT)) as server:
        settings.ANTHROPIC_BASE_URL = server.url
        report = benchmark("capture")
    assert all(report["aims"].values()), report["aims"]
    gate = section(report, "The gate")
    assert (gate["idle"]["passed"], gate["injection"]["share right"]) == (0, 0)
    assert gate["all"]["share right"] == pytest.approx((len(TALKS) - 2) / len(TALKS))
    extractor = section(report, "The extractor")
    assert (
        extractor["outdated notes superseded"]["count"],
        extractor["outdated notes superseded"]["of"],
    ) == (2, 2)
    assert extractor["active notes from injected text"]["count"] == 0
    assert extractor["notes that no label asks for"]["count"] == 2
    cost = section(report, "Cost")
    assert cost["gate"]["calls"] == len(TALKS)
    assert cost["gate"]["dollars"] > 0
    assert section(report, "Per memory")["tokens per memory"]["figure"] > 0
