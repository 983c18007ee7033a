"""Frames as the server sends them, recorded once: what the page is fed with where no real server is wanted."""

from typing import Any

CONVERSATION = "0199a000-0000-7000-8000-000000000001"
NOTE = "0199a000-0000-7000-8000-0000000000aa"
Frame = dict[str, Any]


class Recording:
    """Numbers the frames of one conversation as the server would."""

    def __init__(self, conversation: str = CONVERSATION) -> None:
        self.conversation = conversation
        self.seq = 0
        self.turns = 0

    def event(self, kind: str, turn: str | None, **fields: Any) -> Frame:
        self.seq += 1
        return {"type": kind, "conversation": self.conversation, "turn": turn, "seq": self.seq, **fields}

    def queued(self, text: str, client_id: str = "", replaces: tuple[str, ...] = ()) -> Frame:
        self.turns += 1
        turn = f"turn-{self.turns}"
        fields = {
            "client_id": client_id,
            "message": {"id": f"message-{self.turns}", "role": "user", "text": text},
            "title": "Food",
        }
        return self.event("turn_queued", turn, **fields, replaces=list(replaces))

    def html(self, turn: str, block: int, html: str) -> Frame:
        return {
            "type": "html",
            "conversation": self.conversation,
            "turn": turn,
            "seq": self.seq,
            "block": block,
            "html": html,
        }


def memory_item(text: str, note: str = NOTE, handle: str = "n1") -> Frame:
    return {
        "id": note,
        "note_id": f"note-{note}",
        "handle": handle,
        "text": text,
        "score": 0.71,
        "reason": "Has the word ‘paella’.",
        "parts": {"meaning": 0.7, "words": 0.2},
        "kind": "fact",
        "tags": [],
        "importance": 3,
        "created_at": "2026-11-20T10:00:00Z",
    }


def tool_round(
    record: Recording,
    turn: str,
    call: str,
    name: str,
    given: Frame,
    result: str,
    *,
    error: bool = False,
    ms: int = 12,
) -> list[Frame]:
    return [
        record.event("tool_start", turn, id=call, name=name, input=given),
        record.event(
            "tool_result", turn, id=call, name=name, result=result, is_error=error, duration_ms=ms
        ),
    ]


def streamed(record: Recording, turn: str, pieces: list[tuple[str, int, str]]) -> list[Frame]:
    """Each piece is (text, block, html): the delta, then what the server renders of it."""
    frames = []
    for text, block, html in pieces:
        frames.append(record.event("text_delta", turn, text=text))
        frames.append(record.html(turn, block, html))
    return frames


def finished(record: Recording, turn: str, text: str, **fields: Any) -> Frame:
    usage = {
        "input_tokens": 1240,
        "output_tokens": 86,
        "cache_read_tokens": 9100,
        "cache_write_tokens": 0,
        "cost_usd": 0.0061,
        "calls": 2,
    }
    base: Frame = {
        "text": text,
        "build_id": None,
        "pending_question": None,
        "pending_approval": None,
        "tool_calls": [],
        "usage": usage,
        "notice": None,
        "messages": [f"answer-{turn}"],
    }
    return record.event("response", turn, **(base | fields))
