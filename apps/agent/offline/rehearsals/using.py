"""The offline model in the chat: has a rehearsed tool built, and uses the tools that came of it."""

import re

from apps.agent.offline.dialogue import Dialogue
from apps.agent.offline.intents import MAX_CHARS, OPENING
from apps.agent.offline.rehearsals.pieces import PIECES, Piece, piece_named
from apps.agent.offline.speech import Blocks, call, say

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
SWITCHED_OFF = "Capabilities are turned off in your preferences, so I can neither build nor use tools here."
GO_ON = "The tool is ready. Say for example *{usage}*."


def wish(words: str) -> str:
    """The tool that the words ask to have built; "" where they ask for none."""
    match = BUILD.fullmatch(plain(words).rstrip(".!?"))
    what = match["what"] if match else ""
    is_tool = re.search(
        r"\b(?:tool|roller|converter|statistics|counter|app|program|script|calculator|capability)\b",
        what,
        re.IGNORECASE,
    )
    return what if is_tool or _wanted(what) else ""


def usage_of(words: str) -> Piece | None:
    """The rehearsed tool that these words use."""
    said = plain(words)
    return next((piece for piece in PIECES if piece.used.fullmatch(said)), None)


def plain(words: str) -> str:
    """The words without politeness around them."""
    said = words.strip()[:MAX_CHARS]
    return (OPENING.sub("", said, count=1).strip() or said).rstrip("?! ")


def have_built(dialogue: Dialogue, what: str) -> Blocks:
    """Asks for the build, then says what comes."""
    piece = _wanted(what)
    if piece is None:
        return say(CANNOT.format(titles=", ".join(f"a {piece.title}" for piece in PIECES)))
    latest = dialogue.latest
    if latest is not None:
        found = latest.json()
        there = isinstance(found, dict) and found.get("status") == "active"
        return say((READY if there else BUILDING).format(title=piece.title, usage=piece.usage))
    if "request_capability" not in dialogue.tools:
        return say(SWITCHED_OFF)
    fields = {"name": piece.name, "description": piece.description, "input_schema": piece.input_schema}
    return [call("request_capability", fields)]


def use_piece(dialogue: Dialogue, piece: Piece) -> Blocks:
    """Runs the tool, then tells its result."""
    latest = dialogue.latest
    if latest is not None:
        return say(result_of(latest.result))
    match = piece.used.fullmatch(plain(dialogue.words))
    if match is None or f"cap_{piece.name}" not in dialogue.tools:
        return say(MISSING.format(title=piece.title))
    return [call(f"cap_{piece.name}", piece.arguments(match))]


def named(words: str) -> Piece | None:
    """The rehearsed tool that is to be used for what was asked before."""
    match = USE.fullmatch(plain(words).rstrip("."))
    return piece_named(match["name"].lower()) if match else None


def hint(piece: Piece) -> Blocks:
    """How to use a tool: offline, what was asked before is not looked at again."""
    return say(GO_ON.format(usage=piece.usage))


def go_on(words: str) -> Blocks:
    """Answers a notice of Izzy's own: the tool it names is ready."""
    piece = next((piece for piece in PIECES if f"cap_{piece.name}" in words), None)
    return say(GO_ON.format(usage=piece.usage) if piece else "The tool is ready.")


def result_of(text: str) -> str:
    """The tool's own words, without the line that marks them as others'."""
    return re.sub(r"\A\[[^\]\n]*\]\n", "", text)


def _wanted(what: str) -> Piece | None:
    return next((piece for piece in PIECES if piece.wanted.search(what)), None)
