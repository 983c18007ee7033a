"""Tools that the offline model knows by heart: it has them built, builds them like any builder (writes, tries and hands them
in, one step in each round), and uses them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.agent.offline.dialogue import Blocks, Dialogue, call, calls_of, content_of, say
from apps.agent.offline.intents import MAX_CHARS, OPENING

SOURCES = Path(__file__).parent / "sources"


@dataclass(frozen=True, slots=True)
class RehearsedTool:
    """`wanted` recognises the request for it, `used` the words that use it, and `arguments` makes the tool's input of them."""

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
        return (SOURCES / f"{self.name}.py").read_text(encoding="utf-8")


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.DOTALL)


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


DICE = RehearsedTool(
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
    used=_pattern(
        r"(?:roll|throw)(?: me)?(?: an?)?\s+(?P<dice>\d{0,6} ?d ?\d{1,6}(?: ?[+-] ?\d{1,6})?)"
    ),
    arguments=lambda match: {"dice": re.sub(r"\s", "", match["dice"])},
    usage="roll 3d6",
)
UNITS = RehearsedTool(
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
    arguments=lambda match: {
        "value": float(match["value"]),
        "from": match["source"],
        "to": match["target"],
    },
    usage="convert 5 miles to km",
)
TEXT = RehearsedTool(
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


def piece_named(name: str) -> RehearsedTool | None:
    return next((piece for piece in PIECES if piece.name == name), None)


NAME = re.compile(r"^Name: (\w+)$", re.MULTILINE)
CHANGES = (
    "Offline I only build what I know by heart and cannot change it. Connect a language model for that."
)
UNKNOWN = "Offline I only build what I know by heart, and {name} is not among it. Connect a language model for that."
FAILED = "The {step} did not work: {reason}"
STEPS = ("write_file", "run_code", "register_capability")
TRIES = 3


def build(request: dict[str, Any]) -> Blocks:
    """The next step of the build."""
    messages = request["messages"]
    brief = "\n".join(block["text"] for block in content_of(messages[0]) if block["type"] == "text")
    name = match[1] if (match := NAME.search(brief)) else ""
    piece = piece_named(name)
    if "What to do differently:" in brief or "It failed on this input" in brief:
        return say(CHANGES)
    if piece is None:
        return say(UNKNOWN.format(name=name or "this"))
    done = calls_of(messages)
    reached = {call.name for call in done if not call.is_error}
    step = next((name for name in STEPS if name not in reached), STEPS[-1])
    failed = [call for call in done if call.name == step and call.is_error]
    if len(failed) >= TRIES:
        return say(FAILED.format(step=step.replace("_", " "), reason=failed[-1].result))
    if step == "write_file":
        return [
            *say(f"I write the {piece.title} first."),
            call("report_progress", {"text": f"Writing the {piece.title}"}),
            call("write_file", {"path": "main.py", "content": piece.source}),
        ]
    if step == "run_code":
        return [*say("Now I try it on good and bad input."), call("run_code", {"code": piece.trial})]
    fields = {
        "description": piece.description,
        "input_schema": piece.input_schema,
        "examples": piece.examples,
    }
    return [*say("It works, so I hand it in."), call("register_capability", fields)]


BUILD = re.compile(
    r"(?:build|make|create|write|program|code)(?: me| us)?\s+(?:an?|the|my|another)\s+(?P<what>.{3,200})",
    re.IGNORECASE,
)
USE = re.compile(r"use (?P<name>\w+) for what i asked", re.IGNORECASE)
NOTICE = "<notice>"
BUILDING = (
    "I am building it. You can watch it on the card above; when it is ready, say for example *{usage}*."
)
READY = "There is a {title} already. Say for example *{usage}*."
CANNOT = (
    "Offline I only know a few tools by heart: {titles}. Say for example *build me a dice roller*, or connect a language model to "
    "have anything else built."
)
MISSING = (
    "I have no {title} yet. If it is being built, its card says when it is ready; if not, say *build me a {title}* and I "
    "will make one."
)
SWITCHED_OFF = (
    "Capabilities are turned off in your preferences, so I can neither build nor use tools here."
)
GO_ON = "The tool is ready. Say for example *{usage}*."


def requested_tool(words: str) -> str:
    """The tool that the words ask to have built; "" where they ask for none."""
    match = BUILD.fullmatch(plain(words).rstrip(".!?"))
    what = match["what"] if match else ""
    is_tool = re.search(
        r"\b(?:tool|roller|converter|statistics|counter|app|program|script|calculator|capability)\b",
        what,
        re.IGNORECASE,
    )
    return what if is_tool or _wanted(what) else ""


def usage_of(words: str) -> RehearsedTool | None:
    """The rehearsed tool that these words use."""
    text = plain(words)
    return next((piece for piece in PIECES if piece.used.fullmatch(text)), None)


def plain(words: str) -> str:
    """The words without politeness around them."""
    text = words.strip()[:MAX_CHARS]
    return (OPENING.sub("", text, count=1).strip() or text).rstrip("?! ")


def have_built(dialogue: Dialogue, what: str) -> Blocks:
    """Asks for the build, then says what comes."""
    piece = _wanted(what)
    if piece is None:
        return say(CANNOT.format(titles=", ".join(f"a {piece.title}" for piece in PIECES)))
    latest = dialogue.latest
    if latest is not None:
        there = latest.value("status") == "active"
        return say((READY if there else BUILDING).format(title=piece.title, usage=piece.usage))
    if "request_capability" not in dialogue.tools:
        return say(SWITCHED_OFF)
    fields = {"name": piece.name, "description": piece.description, "input_schema": piece.input_schema}
    return [call("request_capability", fields)]


def use_piece(dialogue: Dialogue, piece: RehearsedTool) -> Blocks:
    """Runs the tool, then tells its result."""
    latest = dialogue.latest
    if latest is not None:
        return say(latest.text)
    match = piece.used.fullmatch(plain(dialogue.words))
    if match is None or f"cap_{piece.name}" not in dialogue.tools:
        return say(MISSING.format(title=piece.title))
    return [call(f"cap_{piece.name}", piece.arguments(match))]


def named(words: str) -> RehearsedTool | None:
    """The rehearsed tool that is to be used for what was asked before."""
    match = USE.fullmatch(plain(words).rstrip("."))
    return piece_named(match["name"].lower()) if match else None


def go_on(words: str) -> Blocks:
    """Answers a notice of Izzy's own: the tool it names is ready."""
    piece = next((piece for piece in PIECES if f"cap_{piece.name}" in words), None)
    return say(GO_ON.format(usage=piece.usage) if piece else "The tool is ready.")


def _wanted(what: str) -> RehearsedTool | None:
    return next((piece for piece in PIECES if piece.wanted.search(what)), None)
