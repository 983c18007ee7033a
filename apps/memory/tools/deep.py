"""The tool that looks at a question from several angles."""

from typing import Any

from apps.agent.tools.base import Tier, Tool, ToolContext

from .notes import TOOLSET, marked, memory_of, tool_schema

MAX_QUESTION_CHARS = 2000


async def deep_memory(context: ToolContext, args: dict[str, Any]) -> Any:
    """Everything the notes hold about a question, found from several angles, in at most ten memories."""
    found = await memory_of(context).deep(args["query"], progress=context.emit, turn_id=context.turn_id)
    return marked(found, found["memories"])


DEEP_TOOLS = [
    Tool(
        name="deep_memory",
        description=(
            "Look deep into your memory of this user: the question is expanded into several sets of keywords, these are "
            "searched side by side, links between notes are followed, and the result comes as a summary with up to ten "
            "memories. Use it when one search may miss what matters because it was noted under other words (what does "
            "the user like to eat? → cuisine, allergy, dinner), for broad questions about the user, and before plans "
            "and recommendations. It takes a few seconds: for a plain fact use memory_search."
        ),
        input_schema=tool_schema(
            ["query"],
            query={
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_QUESTION_CHARS,
                "description": "The whole question, in natural language.",
            },
        ),
        handler=deep_memory,
        tier=Tier.READ_ONLY,
        timeout=45.0,
        result_limit=40_000,
        toolset=TOOLSET,
    )
]
