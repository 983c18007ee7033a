"""How much of a conversation goes to the model as it was said, in estimated tokens (`apps.core.text`)."""

from dataclasses import dataclass

from django.conf import settings

KEPT_SHARE = 0.5
LIMIT_FACTOR = 2
SUMMARY_SHARE = 0.05
SUMMARY_TOKENS = (200, 2000)
"""A summary has at least and at most so many tokens, in between a share of the budget."""


@dataclass(frozen=True, slots=True)
class Budget:
    """`history` is what may be sent before anything is summed up.

    `kept` is how much stays word for word then: half, so that the next summary is half a budget away and the prompt's
    beginning stays the same meanwhile. `limit` is what is never exceeded: a turn waits for a summary rather than that.
    """

    history: int

    @property
    def kept(self) -> int:
        return int(self.history * KEPT_SHARE)

    @property
    def limit(self) -> int:
        return self.history * LIMIT_FACTOR

    @property
    def summary(self) -> int:
        """The most that a summary itself may take."""
        low, high = SUMMARY_TOKENS
        return min(high, max(low, int(self.history * SUMMARY_SHARE)))


def current_budget() -> Budget:
    """The budget of this instance, from IZZY_HISTORY_TOKENS."""
    return Budget(settings.IZZY_HISTORY_TOKENS)
