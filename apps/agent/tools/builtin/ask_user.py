from dataclasses import dataclass
from typing import Annotated

from apps.agent.tools.base import Tier, ToolContext, tool

MAX_QUESTION_CHARS = 4_000


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
