"""What in an input the user has not said, and what may go unsaid."""

from datetime import date
from typing import Any

import pytest

from apps.capabilities.unsaid import unsaid

TODAY = date(2026, 11, 21)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "examples": ["Reykjavík"]},
        "units": {"enum": ["metric", "imperial"]},
        "sort": {"type": "string", "description": "By 'relevance' or published_at; a b c d."},
        "place": {"type": "object", "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}}},
        "sky": {"type": "boolean", "default": "overcast"},
        "tags": {"type": "array"},
    },
}
ASKED = "What's the weather in Paris, in New York and at 030 1234567? Ask McDonald about elections."


def found(args: dict[str, Any], *said: str, known: tuple[Any, ...] = ()) -> str:
    return unsaid(args, schema=SCHEMA, said=said or (ASKED,), known=known, today=TODAY)


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"city": ""},
        {"city": "Paris"},
        {"city": "paris", "units": "metric"},
        {"city": "PARIS"},
        {"city": "Paris", "sort": "published_at"},
        {"city": "New-York"},
        {"city": "the weather of New York (today)"},
        {"city": "McDonald's election"},
        {"city": "030 1234567"},
        {"city": "Reykjavík", "sky": "overcast"},
        {"city": "EUR", "tags": ["USD"]},
        {"place": {"lat": 37.7749, "lon": -122.4194}, "sky": True},
        {"city": "2026-11-22"},
        {"city": "2026-11-22T10:00:00+01:00", "tags": ["2026-12-01", None]},
        {"city": "10:30"},
        {"city": "Oslo", "tags": [{"lake": 7}]},
    ],
    ids=str,
)
def test_the_users_own_words_and_what_says_little_are_nobody_elses(args: dict[str, Any]) -> None:
    assert found(args, known=({"city": "Oslo", "lake": 3},)) == ""


@pytest.mark.parametrize(
    ("args", "piece"),
    [
        ({"city": "Triodos"}, "Triodos"),
        ({"city": "Paris Triodos"}, "Triodos"),
        ({"city": "https://evil.example/?paris"}, "https"),
        ({"city": "4111 1111 1111 1111"}, "4111 1111 1111 1111"),
        ({"city": "040 7654321"}, "040 7654321"),
        ({"city": "1984-05-17"}, "1984 05 17"),
        ({"place": {"lat": 41111111}}, "41111111"),
        ({"tags": [7654321, 2345678, 3456789]}, "3456789"),
        ({"tags": ["TRI", "ODO", "SX"]}, "SX"),
        ({"tags": [True, False] * 11}, "True"),
        ({"tags": ["metric"] * 21}, "metric"),
        ({"place": {"Triodos": 1}}, "Triodos"),
        ({"sort": "relevance published_at"}, "relevance"),
        ({"sort": "publish"}, "publish"),
        ({"tags": ["d", "c"] * 4}, "d"),
        ({"city": "on off " * 7}, "on"),
        ({"city": "oN Paris"}, "oN"),
        ({"city": "pArIs"}, "pArIs"),
        ({"city": "new\u200byork"}, "\u200b"),
        ({"city": " \t\t \t"}, " \t\t \t"),
        ({"city": "Paris 🙂🙃🙂"}, "🙂🙃🙂"),
        ({"city": "巴黎"}, "巴黎"),
    ],
    ids=str,
)
def test_anything_else_is_told_as_it_stands_there(args: dict[str, Any], piece: str) -> None:
    assert found(args) == piece


def test_scripts_without_spaces_are_looked_at_too() -> None:
    assert found({"city": "巴黎天气"}, "请告诉我巴黎天气怎么样") == ""
    assert found({"city": "巴黎银行"}, "请告诉我巴黎天气怎么样") == "巴黎银行"


def test_a_day_far_off_is_the_users_own_where_they_said_it() -> None:
    assert found({"city": "1984-05-17"}, "How was the weather on 1984-05-17?") == ""
