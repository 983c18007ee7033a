"""A stand-in for the gate and the extractor: answers by rules over the passage it was sent, like an obedient model.

    peer.fallback = CaptureModel(Rule("moved to Linz", "The user lives in Linz.", replaces="Graz"))

The gate says yes where a rule fits a segment that was not read before. The extractor writes an item for each segment a
rule fits; `replaces` is looked for in the notes it was shown, and makes the item a supersession of that note.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from tests.peers.anthropic_replies import Reply, reply, tool

_SEGMENT = re.compile(r"^\[(\d+)\] \(([^)]*)\)\n((?:    .*(?:\n|$))+)", re.MULTILINE)
_NOTE = re.compile(r"^(note-[0-9a-f-]{36}) \([^)]*\): (.*)$", re.MULTILINE)


@dataclass
class Rule:
    """`pattern` is looked for in the segments; `cites` overrides the segments it is found in."""

    pattern: str
    content: str
    replaces: str = ""
    updates: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    cites: list[int] | None = None


@dataclass
class Seen:
    """A segment as the model was sent it."""

    number: int
    marks: str
    text: str


class CaptureModel:
    """An `Answer` of the loopback server. `gates` and `extractions` are the texts it was sent, in order."""

    def __init__(self, *rules: Rule) -> None:
        self.rules = rules
        self.gates: list[str] = []
        self.extractions: list[str] = []

    def __call__(self, request: dict[str, Any]) -> Reply:
        names = [offered["name"] for offered in request.get("tools", [])]
        text = words_of(request)
        if names == ["judge"]:
            self.gates.append(text)
            worth = any(
                self._fits(rule, seen) for rule in self.rules for seen in segments(text) if _fresh(seen)
            )
            return reply(tool("judge", {"worth_remembering": worth, "reason": "as the rules say"}))
        if names == ["save_items"]:
            self.extractions.append(text)
            return reply(tool("save_items", {"items": list(self._items(text))}))
        return reply("A title")

    def _fits(self, rule: Rule, seen: Seen) -> bool:
        return re.search(rule.pattern, seen.text, re.IGNORECASE) is not None

    def _items(self, text: str) -> Any:
        for rule in self.rules:
            found = [seen.number for seen in segments(text) if self._fits(rule, seen)]
            if not found:
                continue
            item = {
                "action": "add",
                "content": rule.content,
                "kind": "fact",
                "importance": 3,
                "sensitive": False,
            }
            for action, wanted in (("supersede", rule.replaces), ("update", rule.updates)):
                target = next(
                    (key for key, note in _NOTE.findall(text) if wanted and wanted in note), None
                )
                if target:
                    item |= {"action": action, "target": target}
            yield item | {"evidence": rule.cites or found} | rule.values


def _fresh(seen: Seen) -> bool:
    return "read before" not in seen.marks


def words_of(request: dict[str, Any]) -> str:
    """The text of a request's only message."""
    content = request["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def segments(text: str) -> list[Seen]:
    """The numbered segments of a passage."""
    return [Seen(int(number), marks, body.strip()) for number, marks, body in _SEGMENT.findall(text)]
