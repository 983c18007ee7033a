"""The tool that looks at a question from several angles."""

from dataclasses import dataclass
from typing import Annotated

from apps.agent.tools.base import Tier, ToolContext, ToolOutput, tool
from apps.core.text import clean_text
from apps.memory.recall import deep
from apps.memory.tools.search import MAX_QUERY_CHARS, TOOLSET

MAX_QUESTION_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Question:
    query: Annotated[
        str, {"minLength": 1, "maxLength": MAX_QUESTION_CHARS}, "The whole question, in natural language."
    ]


@tool(
    tier=Tier.READ_ONLY,
    timeout=45.0,
    result_limit=40_000,
    toolset=TOOLSET,
    needs_memory=True,
    title="Search your memories from several angles",
    doing="Searching deep memory",
    done="Searched deep memory",
    shows=("query",),
    icon="memory",
    notes="read",
)
async def deep_memory(context: ToolContext, arguments: Question) -> ToolOutput:
    """Look deep into your memory of this user: the question is expanded into several sets of keywords, these are
    searched side by side, links between notes are followed, and the result comes as a summary with up to ten
    memories. Use it when one search may miss what matters because it was noted under other words (what does
    the user like to eat? → cuisine, allergy, dinner), for broad questions about the user, and before plans
    and recommendations. It takes a few seconds: for a plain fact use memory_search."""
    asked = deep.Asked(
        user_id=context.user_id,
        query=clean_text(arguments.query, field="query", max_chars=MAX_QUERY_CHARS),
        conversation_id=context.conversation_id,
        turn_id=context.turn_id,
    )
    return await deep.deep_memory(asked, context.emit)
