"""The conversations of the story: records of their turns, messages and tool calls, as they are after real ones."""

from collections.abc import Iterator, Mapping
from typing import Any

from apps.agent.tools.base import Tier
from apps.core.text import canonical_json
from apps.core.transfer import Row

from .records import MODEL, Story, chapter

FIRST_MINUTE = 60
MINUTES = 4
"""Between two turns of a conversation."""


def conversation_rows(story: Story) -> Iterator[Row]:
    for talk in chapter("conversations")["conversation"]:
        rows = list(_turns(story, talk))
        last = [row for row in rows if row["type"] == "message"][-1]
        yield {
            "type": "conversation",
            "id": str(story.key("conversation", talk["key"])),
            "title": talk["title"],
            "pinned": talk.get("pinned", False),
            "archived": talk.get("archived", False),
            "channel": "chat",
            "last_position": last["position"],
            "tainted": any(turn.get("tool", {}).get("untrusted") for turn in talk["turn"]),
            "created_at": story.stamp(talk["day"], FIRST_MINUTE),
            "updated_at": last["created_at"],
        }
        yield from rows


def _turns(story: Story, talk: Mapping[str, Any]) -> Iterator[Row]:
    position = 0
    for number, turn in enumerate(talk["turn"], start=1):
        at = FIRST_MINUTE + number * MINUTES
        asked, answered = story.stamp(talk["day"], at), story.stamp(talk["day"], at + 1)
        ids = {name: str(story.key(name, talk["key"], number)) for name in ("turn", "call")}
        place = {"conversation": str(story.key("conversation", talk["key"])), "turn": ids["turn"]}
        yield {
            "type": "turn",
            "id": ids["turn"],
            "conversation": place["conversation"],
            "position": number,
            "state": "done",
            "model": MODEL,
            "memories": [_brought(story, note, why) for note, why in turn.get("brought", {}).items()],
            "usage": {"input_tokens": 2400, "output_tokens": len(turn["izzy"]) // 4},
            "created_at": asked,
            "started_at": asked,
            "ended_at": answered,
        }
        tool, used = turn.get("tool"), f"toolu_demo_{talk['key']}_{number}"
        for name, role, kind, blocks, text, stop in _parts(story, turn, used):
            position += 1
            yield {
                "type": "message",
                "id": str(story.key("message", talk["key"], number, name)),
                **place,
                "position": position,
                "role": role,
                "kind": kind,
                "blocks": canonical_json(blocks),
                "text": text,
                "stop_reason": stop,
                "round": {"you": 0, "call": 1, "result": 1}.get(name, 2 if tool else 1),
                "created_at": asked if name == "you" else answered,
            }
        if tool:
            yield _call(tool, ids["call"], place, used, answered)


def _parts(
    story: Story, turn: Mapping[str, Any], used: str
) -> Iterator[tuple[str, str, str, list[dict[str, Any]], str, str]]:
    """Name, role, kind, blocks, text and stop reason of each message of a turn."""
    said, answer = story.text(turn["you"]), story.text(turn["izzy"])
    yield "you", "user", "text", [_words(said)], said, ""
    if tool := turn.get("tool"):
        call = {"type": "tool_use", "id": used, "name": tool["name"], "input": tool["input"]}
        result = {"type": "tool_result", "tool_use_id": used, "content": tool["result"]}
        yield "call", "assistant", "text", [call], "", "tool_use"
        yield "result", "user", "tool_results", [result], "", ""
    yield "izzy", "assistant", "text", [_words(answer)], answer, "end_turn"


def _call(tool: Mapping[str, Any], key: str, place: Row, used: str, at: str) -> Row:
    return {
        "type": "tool_call",
        "id": key,
        **place,
        "round": 1,
        "position": 0,
        "tool_use_id": used,
        "name": tool["name"],
        "tier": Tier.READ_ONLY,
        "input": tool["input"],
        "result": tool["result"],
        "untrusted": tool.get("untrusted", False),
        "duration_ms": 840,
        "created_at": at,
        "started_at": at,
        "finished_at": at,
    }


def _words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _brought(story: Story, note: str, reason: str) -> dict[str, Any]:
    """A note as a turn keeps it that brought it up."""
    entry = next(each for each in chapter("notes")["notes"] if each["key"] == note)
    return {
        "id": str(story.key("note", note)),
        "note_id": f"note-{story.key('note', note)}",
        "text": story.text(entry["text"]),
        "score": 0.82,
        "reason": reason,
        "parts": {},
        "kind": entry.get("kind", "fact"),
        "tags": entry.get("tags", []),
    }
