"""Server-sent events: the form of text/event-stream."""

import json
from typing import Any


def server_sent(event: dict[str, Any], number: int | None = None) -> bytes:
    """One event in the form of text/event-stream, named after its `type`; `number` is what `Last-Event-ID` goes on from."""
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    line = "" if number is None else f"id: {number}\n"
    return f"event: {event['type']}\n{line}data: {data}\n\n".encode()
