"""The story as records of an export, dated back from today, so that it is taken in as the user's own export is."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

from apps.core.transfer import Row, derived_id
from apps.memory.models import Action, FileAction, Kind, Origin, Proposal, Status, Trust
from apps.memory.models import Tier as NoteTier
from apps.memory.notes.fields import TIER_DEFAULTS

STORY = Path(__file__).parent / "story"
CYCLE = 260
"""Chat turns of that year: the clock by which the notes have faded."""
TURNS_PER_DAY = CYCLE / 365
MODEL = "claude-sonnet-5-5"
_MONTH = re.compile(r"\{month:(-?\d+)\}")


@cache
def chapter(name: str) -> dict[str, Any]:
    """A file of the story."""
    return tomllib.loads((STORY / f"{name}.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Story:
    """The story of one user, as it stands on the day of `now`; ids are the same whenever it is made."""

    user_id: UUID
    now: datetime

    def key(self, *parts: object) -> UUID:
        return derived_id(self.user_id, "demo", *map(str, parts))

    def at(self, day: float, minute: int = 0) -> datetime:
        """A time of that day, none ahead of now; `minute` counts from 7:00 UTC."""
        begin = self.now.astimezone(UTC).replace(hour=7, minute=0, second=0, microsecond=0)
        return min(begin + timedelta(days=day, minutes=minute), self.now)

    def text(self, words: str) -> str:
        """The words with the months that they name."""
        return _MONTH.sub(lambda found: f"{self.at(int(found[1])):%B}", words.strip())

    def stamp(self, day: float, minute: int = 0) -> str:
        return self.at(day, minute).isoformat()

    def message(self, name: str) -> tuple[UUID, UUID]:
        """The conversation and the user's message of `greenhouse.2`."""
        talk, _, turn = name.partition(".")
        return self.key("conversation", talk), self.key("message", talk, turn, "you")


def note_rows(story: Story) -> Iterator[Row]:
    yield {"type": "decay", "cycle": CYCLE}
    uses = _uses()
    for place, entry in enumerate(chapter("notes")["notes"]):
        yield _note(story, entry, place, uses.get(entry["key"], []))
        yield from _revisions(story, entry, place)
    for source, relation, target in chapter("notes")["links"]:
        yield {
            "type": "edge",
            "id": str(story.key("edge", source, target)),
            "source": str(story.key("note", source)),
            "target": str(story.key("note", target)),
            "relation": relation,
            "created_at": story.stamp(max(_day(source), _day(target)), 50),
        }


def _day(note: str) -> int:
    return int(next(each["day"] for each in chapter("notes")["notes"] if each["key"] == note))


def _uses() -> dict[str, list[int]]:
    """By note the days on which it was brought up, oldest first."""
    days: dict[str, list[int]] = {}
    for talk in chapter("conversations")["conversation"]:
        for turn in talk["turn"]:
            for note in turn.get("brought", {}):
                days.setdefault(note, []).append(talk["day"])
    return days


def _note(story: Story, entry: Mapping[str, Any], place: int, used: list[int]) -> Row:
    minute = place * 7 % 660
    until, proposes = entry.get("until"), entry.get("proposes", {})
    changed = max([entry["day"], *(each["day"] for each in entry.get("was", ()))])
    review = entry.get("review", "")
    source = story.message(entry["from"]) if "from" in entry else None
    tier = NoteTier(entry.get("tier", NoteTier.LONG_TERM))
    priority, rate = TIER_DEFAULTS[tier]
    row = {
        "type": "note",
        "id": str(story.key("note", entry["key"])),
        "content": story.text(entry["text"]),
        "tier": tier,
        "kind": entry.get("kind", Kind.FACT),
        "importance": entry.get("importance", 3),
        "priority": priority,
        "decay_rate": rate,
        "turns": round(-max([changed, *used]) * TURNS_PER_DAY),
        "tags": entry.get("tags", []),
        "category": entry.get("category", ""),
        "occasions": [story.text(each) for each in entry.get("occasions", ())],
        "occasions_by": "model" if "occasions" in entry else "",
        "occasions_open": False,
        "status": Status.SUPERSEDED if until else entry.get("status", Status.ACTIVE),
        "review_reason": review,
        "proposed_action": proposes.get("action", Proposal.ADD) if review else "",
        "origin": entry.get("origin", Origin.EXTRACTION),
        "trust": entry.get("trust", Trust.USER),
        "source_conversation": str(source[0]) if source else None,
        "source_message": str(source[1]) if source else None,
        "created_at": story.stamp(entry["day"], minute),
        "updated_at": story.stamp(
            until["day"] if until else changed, minute + 5 * (changed != entry["day"])
        ),
        "last_accessed": story.stamp(used[-1], 30) if used else None,
        "access_count": len(used) * 3,
        "use_count": len(used),
    }
    if "valid_from" in entry:
        row["valid_from"] = story.stamp(entry["valid_from"])
    if until:
        row |= {
            "superseded_by": str(story.key("note", until["note"])),
            "valid_to": story.stamp(until["day"]),
        }
    elif "valid_to" in entry:
        row["valid_to"] = story.stamp(entry["valid_to"])
    if "note" in proposes:
        row["proposed_target"] = str(story.key("note", proposes["note"]))
    return row


def _revisions(story: Story, entry: Mapping[str, Any], place: int) -> Iterator[Row]:
    """The note's earlier text, and that it was replaced or put away."""
    minute = place * 7 % 660
    former = [dict(each, action=Action.UPDATED) for each in entry.get("was", ())]
    until = entry.get("until")
    if until:
        change = {"by": str(story.key("note", until["note"])), "made": True}
        former.append({"day": until["day"], "action": Action.SUPERSEDED, "change": change})
    elif entry.get("status") == Status.ARCHIVED:
        former.append({"day": entry["day"] + 60, "action": Action.ARCHIVED, "actor": Origin.USER})
    tier = NoteTier(entry.get("tier", NoteTier.LONG_TERM))
    priority, rate = TIER_DEFAULTS[tier]
    for version, was in enumerate(former, start=1):
        days = was["day"] - entry["day"]
        state = {
            "tier": tier,
            "kind": entry.get("kind", Kind.FACT),
            "importance": entry.get("importance", 3),
            "tags": entry.get("tags", []),
            "category": entry.get("category", ""),
            "status": Status.ACTIVE,
            "priority": max(0.0, priority - rate * days * TURNS_PER_DAY),
            "decay_rate": rate,
            "trust": entry.get("trust", Trust.USER),
            "occasions": [],
            "occasions_by": "",
            "valid_from": story.stamp(entry["valid_from"]) if "valid_from" in entry else None,
            "valid_to": None,
            "superseded_by": None,
            **({"change": was["change"]} if "change" in was else {}),
        }
        yield {
            "type": "revision",
            "note": str(story.key("note", entry["key"])),
            "version": version,
            "content": story.text(was.get("text", entry["text"])),
            "state": state,
            "action": was["action"],
            "actor": was.get("actor", Origin.EXTRACTION),
            "reason": was.get("reason", ""),
            "created_at": story.stamp(was["day"], minute + 5),
        }


def use_rows(story: Story) -> Iterator[Row]:
    for talk in chapter("conversations")["conversation"]:
        for number, turn in enumerate(talk["turn"], start=1):
            conversation, message = story.message(f"{talk['key']}.{number}")
            for note, reason in turn.get("brought", {}).items():
                yield {
                    "type": "use",
                    "id": str(story.key("use", talk["key"], number, note)),
                    "note": str(story.key("note", note)),
                    "used_in": "surfaced",
                    "question": story.text(turn["you"]),
                    "reason": reason,
                    "conversation": str(conversation),
                    "message": str(message),
                    "created_at": story.stamp(talk["day"], 60 + number * 4),
                }


def file_rows(story: Story) -> Iterator[Row]:
    for entry in chapter("files")["file"]:
        was, trust = entry.get("was"), entry.get("trust", Trust.USER)
        origin = entry.get("origin", Origin.USER)
        yield {
            "type": "file",
            "id": str(story.key("file", entry["key"])),
            "path": entry["path"],
            "content": story.text(entry["text"]) + "\n",
            "origin": origin,
            "trust": trust,
            "created_at": story.stamp(entry["day"], 200),
            "updated_at": story.stamp(was["day"] if was else entry["day"], 200),
        }
        if was:
            yield {
                "type": "file_revision",
                "file": str(story.key("file", entry["key"])),
                "version": 1,
                "path": entry["path"],
                "content": story.text(was["text"]) + "\n",
                "trust": trust,
                "action": FileAction.EDITED,
                "actor": origin,
                "reason": was["reason"],
                "created_at": story.stamp(was["day"], 200),
            }


def capability_rows(story: Story) -> Iterator[Row]:
    for entry in chapter("capabilities")["capability"]:
        runs, key = entry["runs"], str(story.key("capability", entry["key"]))
        made, example = story.stamp(entry["day"], 20), {"input": entry["example"]}
        yield {
            "type": "capability",
            "id": key,
            **{name: entry[name] for name in ("name", "description", "input_schema")},
            "runs": len(runs),
            "successes": sum("result" in run for run in runs),
            "last_run_at": story.stamp(runs[-1]["day"], 70),
            "created_at": made,
            "updated_at": made,
        }
        yield {
            "type": "capability_version",
            "id": str(story.key("version", entry["key"])),
            "capability": key,
            "number": 1,
            "current": True,
            **{name: entry[name] for name in ("description", "input_schema", "tags")},
            "examples": [example],
            "files": {"main.py": (STORY / f"{entry['file']}.py").read_text(encoding="utf-8")},
            "origin": "user",
            "quotes_others": False,
            "tested_at": made,
            "created_at": made,
        }
