"""The tools that the agent itself brings."""

from typing import Any

from apps.agent.tools.base import Tier, Tool, ToolContext, WaitsFor

MAX_THOUGHT_CHARS = 20_000
MAX_QUESTION_CHARS = 4_000


async def think(context: ToolContext, args: dict[str, Any]) -> str:
    """Nothing happens: the thought itself, kept with the call, is the point."""
    return "Noted. Go on."


async def ask_user(context: ToolContext, args: dict[str, Any]) -> str:
    """The user's answer, which the executor has put beside the question."""
    return str(args["answer"])


THINK = Tool(
    name="think",
    description=(
        "Think something through before you act or answer: weigh options, plan several steps, check a result. It changes "
        "nothing and fetches nothing; the user sees the thought collapsed. Not needed for simple requests."
    ),
    input_schema={
        "type": "object",
        "properties": {"thought": {"type": "string", "minLength": 1, "maxLength": MAX_THOUGHT_CHARS}},
        "required": ["thought"],
        "additionalProperties": False,
    },
    handler=think,
    tier=Tier.READ_ONLY,
    timeout=5,
)

ASK_USER = Tool(
    name="ask_user",
    description=(
        "Ask the user one question and wait for the answer. Use it only when you cannot go on without knowing, for "
        "example when two notes could be meant; do not ask for permission, that is handled elsewhere."
    ),
    input_schema={
        "type": "object",
        "properties": {"question": {"type": "string", "minLength": 1, "maxLength": MAX_QUESTION_CHARS}},
        "required": ["question"],
        "additionalProperties": False,
    },
    handler=ask_user,
    tier=Tier.READ_ONLY,
    timeout=5,
    result_limit=40_000,
    waits_for=WaitsFor.ANSWER,
)

BUILTIN_TOOLS = (THINK, ASK_USER)
