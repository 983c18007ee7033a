"""Answers as JSON objects, each after its length in four bytes; written without `json`, whose import takes as long as the
interpreter's own start."""

from __future__ import annotations

import _json
import os
import select

from .answers import write_all
from .waiting import ended, kill

TYPE_CHECKING = False  # importing typing takes longer than all the rest
if TYPE_CHECKING:
    from typing import Any

PIECE = 65536
OWN, OF_A_TOOL = b"r", b"t"
POLL_SECONDS = 0.01
TOO_LONG = -9


def send(descriptor: int, frame: dict[str, Any]) -> None:
    """To the host, in the runner's own words."""
    write_all(descriptor, packed(OWN + frame_bytes(frame)))


def pass_on(descriptor: int, frame: bytes) -> None:
    """To the host, as what a tool's process said: it must not be able to speak for the runner."""
    write_all(descriptor, packed(OF_A_TOOL + frame))


def frame_bytes(frame: dict[str, Any]) -> bytes:
    """A lone surrogate becomes a question mark."""
    return to_json(frame).encode("utf-8", "replace")


def packed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def to_json(value: object) -> str:
    """Of text, whole numbers, truth values, None and dicts of them."""
    if isinstance(value, str):
        return str(_json.encode_basestring(value))
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{to_json(key)}:{to_json(item)}" for key, item in value.items()) + "}"
    raise TypeError(type(value).__name__)


def await_frame(reading: int, pid: int, limit: int) -> bytes | int:
    """The child's frame, or its exit code where it ended without one. What it left behind may hold the pipe open: so the
    child is watched, not the pipe's end."""
    data = bytearray()
    exited = None
    while True:
        wait = POLL_SECONDS if exited is None else 0
        part = os.read(reading, PIECE) if select.select([reading], [], [], wait)[0] else None
        if part:
            data += part
            size = int.from_bytes(data[:4], "big")
            if len(data) >= 4 + size and len(data) >= 4:
                return bytes(data[4 : 4 + size])
            if size > limit and len(data) >= 4:
                kill(pid)
                return TOO_LONG
        elif exited is not None:
            return exited
        else:
            exited = ended(pid, wait=part is not None)
