"""Answers for many streams at once: each comes piece by piece at a steady rate."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from benchmarks._network import Block

PROSE = """Beds along the south wall dry out first, so they are watered in the evening, and **twice a week** is enough in May.

- Tomatoes want the warm corner, and a roof of glass or foil over them.
- Beans climb where the poles of last year still stand.

What is sown in `April` goes out after the frosts, one row every ten days, so that not everything is ripe at once. """
PIECES = [PROSE[start : start + 16] for start in range(0, len(PROSE), 16)]


@dataclass
class Pace:
    """How the answers to users come: `count` pieces (None: until `until`, of time.perf_counter), `rate` a second."""

    rate: float = 8.0
    count: int | None = 1
    until: float = 0.0

    def answer(self, request: dict[str, Any]) -> list[Block]:
        """The blocks for `model_server`; side jobs, such as titles and reading for memory, get theirs at once."""
        if tool := (request.get("tool_choice") or {}).get("name"):
            given = {"worth_remembering": False, "reason": "none", "items": []}
            return [{"type": "tool_use", "id": "toolu_load", "name": tool, "input": given}]
        return [{"type": "text", "text": "Garden" if "haiku" in request["model"] else self.pieces()}]

    async def pieces(self) -> AsyncIterator[str]:
        """Each carries the time at which it was sent: `t<nanoseconds of perf_counter_ns> `."""
        begun, number = time.perf_counter(), 0
        while number < self.count if self.count is not None else time.perf_counter() < self.until:
            await asyncio.sleep(begun + number / self.rate - time.perf_counter())
            yield f"{PIECES[number % len(PIECES)]}t{time.perf_counter_ns()} "
            number += 1
