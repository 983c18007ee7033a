"""A turn's figures and its line in the log, for those who run Izzy."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from uuid import UUID

from apps.agent.turn.events import Event, TextDelta
from apps.core.log_ids import log_activity, log_ids, log_ids_add
from apps.core.metrics.base import SLOW, counter, histogram
from apps.core.traces import span

TURNS = counter("izzy_turns_total", "Turns that came to rest, by the state they are in then.", "state")
SECONDS = histogram(
    "izzy_turn_seconds",
    "Time that a turn ran until it ended or waited for the user.",
    "state",
    buckets=SLOW,
)
FIRST = histogram(
    "izzy_turn_first_token_seconds",
    "Time from the beginning of a turn to the first of its answer's text.",
    buckets=SLOW,
)


@dataclass(slots=True)
class TurnWatch:
    """One run of a turn."""

    resumed: bool
    begun: float = field(default_factory=perf_counter)
    first: float | None = None

    def of(self, user_id: UUID) -> None:
        """Says whose turn it is, once that is read."""
        log_ids_add(user=user_id)

    def saw(self, event: Event) -> None:
        """Notes when the first text comes."""
        if self.first is None and isinstance(event, TextDelta):
            self.first = perf_counter() - self.begun
            if not self.resumed:
                FIRST.observe(self.first)

    def ended(self, state: str) -> None:
        seconds = perf_counter() - self.begun
        TURNS.add(state)
        SECONDS.observe(seconds, state)
        first = None if self.first is None else round(self.first * 1000)
        log_activity(
            "turn", f"turn {state}", state=state, took_ms=round(seconds * 1000), first_token_ms=first
        )


@contextmanager
def turn_watched(conversation_id: UUID, turn_id: UUID, resumed: bool) -> Iterator[TurnWatch]:
    """While a turn runs: what is logged carries its ids, and its model and tool calls are part of its span."""
    with log_ids(turn=turn_id, conversation=conversation_id), span("turn"):
        yield TurnWatch(resumed)
