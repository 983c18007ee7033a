"""The rehearsed builds: what is asked for, the source, how it is tried, and by which words it is used."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parent / "sources"


@dataclass(frozen=True, slots=True)
class Piece:
    """`wanted` recognises the wish for it, `used` the words that use it, and `arguments` makes the tool's input of them."""

    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    trial: str
    examples: list[dict[str, Any]]
    wanted: re.Pattern[str]
    used: re.Pattern[str]
    arguments: Callable[[re.Match[str]], dict[str, Any]]
    usage: str

    @property
    def source(self) -> str:
        """The text of main.py."""
        return _source(self.name)


@cache
def _source(name: str) -> str:
    return (SOURCES / f"{name}.py").read_text(encoding="utf-8")


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.DOTALL)


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


DICE = Piece(
    name="dice_roller",
    title="dice roller",
    description="Rolls dice given in the usual notation, such as 3d6 or 2d10+4, and tells each die and the total.",
    input_schema=_object(dice={"type": "string", "description": "For example 3d6, d20 or 2d10+4."}),
    trial="import main\nprint(main.run({'dice': '3d6'}))\nprint(main.run({'dice': 'd20+5'}))\nprint(main.run({'dice': 'six'}))",
    examples=[
        {"input": {"dice": "3d6"}, "expect": "3d6: "},
        {"input": {"dice": "five"}, "expect": "are no dice I know"},
    ],
    wanted=_pattern(r"\b(?:dice|die)\b"),
    used=_pattern(r"(?:roll|throw)(?: me)?(?: an?)?\s+(?P<dice>\d{0,6} ?d ?\d{1,6}(?: ?[+-] ?\d{1,6})?)"),
    arguments=lambda match: {"dice": re.sub(r"\s", "", match["dice"])},
    usage="roll 3d6",
)
UNITS = Piece(
    name="unit_converter",
    title="unit converter",
    description="Converts a value between units of length, mass, volume, time, speed and temperature.",
    input_schema=_object(
        **{
            "value": {"type": "number"},
            "from": {"type": "string", "description": "A unit such as km, miles, kg, °F."},
            "to": {"type": "string", "description": "The unit wanted."},
        }
    ),
    trial="import main\nprint(main.run({'value': 5, 'from': 'miles', 'to': 'km'}))\nprint(main.run({'value': 1, 'from': 'x', 'to': 'kg'}))",
    examples=[
        {"input": {"value": 5, "from": "miles", "to": "km"}, "expect": "8.04672 km"},
        {"input": {"value": 100, "from": "celsius", "to": "fahrenheit"}, "expect": "212 °F"},
    ],
    wanted=_pattern(r"\bunits?\b|\bconverter\b"),
    used=_pattern(
        r"(?:convert|what is|how much is)\s+(?P<value>-?\d{1,15}(?:\.\d{1,15})?) ?(?P<source>[\w°/]{1,20})\s+(?:to|in|into)\s+(?P<target>[\w°/]{1,20})"
    ),
    arguments=lambda match: {"value": float(match["value"]), "from": match["source"], "to": match["target"]},
    usage="convert 5 miles to km",
)
TEXT = Piece(
    name="text_statistics",
    title="text statistics",
    description="Counts words, sentences and characters of a text and tells its most frequent longer words.",
    input_schema=_object(text={"type": "string", "description": "The text to count."}),
    trial="import main\nprint(main.run({'text': 'One two three. Four five!'}))\nprint(main.run({'text': ''}))",
    examples=[{"input": {"text": "One two three. Four five!"}, "expect": "5 words, 2 sentences"}],
    wanted=_pattern(r"\b(?:text|word)[ -]?(?:statistics?|stats|counter|count|analy[sz]er)\b"),
    used=_pattern(r"(?:count(?: the)? words (?:of|in)|text statistics (?:of|for)):?\s+(?P<text>.+)"),
    arguments=lambda match: {"text": match["text"]},
    usage="count the words in: A short text. And another!",
)
PIECES = (DICE, UNITS, TEXT)


def piece_named(name: str) -> Piece | None:
    return next((piece for piece in PIECES if piece.name == name), None)
