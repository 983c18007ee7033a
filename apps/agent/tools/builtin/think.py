from dataclasses import dataclass
from typing import Annotated

from apps.agent.tools.base import Tier, ToolContext, tool

MAX_THOUGHT_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Thought:
    thought: Annotated[str, {"minLength": 1, "maxLength": MAX_THOUGHT_CHARS}]


@tool(
    tier=Tier.READ_ONLY,
    timeout=5,
    title="Think something through",
    doing="Thinking",
    done="Thought",
    shows=("thought",),
    icon="info",
)
async def think(context: ToolContext, arguments: Thought) -> str:
    """Think something through before you act or answer: weigh options, plan several steps, check a result. It changes
    nothing and fetches nothing; the user sees the thought collapsed. Not needed for simple requests."""
    return "Noted. Go on."  # the thought itself, kept with the call, is the point
