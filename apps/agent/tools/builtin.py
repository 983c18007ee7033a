"""The tools that the agent itself brings."""

from dataclasses import dataclass
from typing import Annotated

from apps.agent.tools.base import Tier, ToolContext, tool

MAX_THOUGHT_CHARS = 20_000
MAX_QUESTION_CHARS = 4_000


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


@dataclass(frozen=True, slots=True)
class Question:
    question: Annotated[str, {"minLength": 1, "maxLength": MAX_QUESTION_CHARS}]


@tool(
    tier=Tier.READ_ONLY,
    timeout=5,
    result_limit=40_000,
    waits_for_answer=True,
    title="Ask you a question",
    doing="Asked you",
    done="Asked you",
    shows=("question",),
    icon="question",
)
async def ask_user(context: ToolContext, arguments: Question) -> str:
    """Ask the user one question and wait for the answer. Use it only when you cannot go on without knowing, for
    example when two notes could be meant; do not ask for permission, that is handled elsewhere."""
    return context.answer
