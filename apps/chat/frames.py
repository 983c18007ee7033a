"""Client frames of the websocket: JSON text to checked values."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.core.errors import InvalidInput, TooLarge
from apps.core.ids import parse_id

MAX_FRAME_CHARS = 500_000
"""A message may have 100,000 characters, each up to six in JSON's escapes, and this leaves room for most of them."""


@dataclass(frozen=True, slots=True)
class ClientFrame:
    """One frame: its type and its other keys, not yet checked but for the helpers below."""

    type: str
    values: dict[str, Any]

    @property
    def client_id(self) -> str | None:
        """The client's name for the message, to be repeated in an error."""
        value = self.values.get("client_id")
        fits = isinstance(value, str) and len(value) <= 64 and value.isprintable()
        return value if fits else None

    @property
    def conversation_id(self) -> UUID:
        """The conversation it is about. NotFound when malformed or missing."""
        return parse_id(self.values.get("conversation"))

    @property
    def seq(self) -> int | None:
        """The newest event the client knows, 0 for none; None where it wants a snapshot. InvalidInput for what is
        no whole number."""
        value = self.values.get("seq")
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidInput("seq must be a whole number.", code="wrong_type", field="seq")
        return max(0, min(value, 2**62))

    @property
    def use_memory(self) -> bool | None:
        value = self.values.get("use_memory")
        if value is not None and not isinstance(value, bool):
            raise InvalidInput("use_memory must be true or false.", code="wrong_type", field="use_memory")
        return value


def parse_frame(text: str | None) -> ClientFrame:
    """The frame in a websocket's text message (None: a binary one). InvalidInput, TooLarge."""
    if text is None:
        raise InvalidInput("Send text frames with JSON.", code="malformed_frame")
    if len(text) > MAX_FRAME_CHARS:
        raise TooLarge(f"A frame may have {MAX_FRAME_CHARS:,} characters.", limit=MAX_FRAME_CHARS)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("The frame is not valid JSON.", code="malformed_frame") from None
    if not isinstance(values, dict):
        raise InvalidInput("A frame is a JSON object.", code="malformed_frame")
    kind = values.pop("type", None)
    if not isinstance(kind, str):
        raise InvalidInput("A frame has a type.", code="unknown_type", field="type")
    return ClientFrame(kind, values)
