"""The older names of the note tools, for prompts and habits that know them: the same notes underneath."""

from typing import Any

from apps.agent.tools.base import Tier, Tool, ToolContext
from apps.memory.fields import MAX_CONTENT_CHARS, MAX_TAG_CHARS, MAX_TAGS, TIER_DEFAULTS
from apps.memory.models import Tier as NoteTier
from apps.memory.selectors.relevant import MAX_KEYWORD_CHARS, MAX_KEYWORDS

from .notes import marked, memory_of, tool_schema

TOOLSET = "classic"

_TAGS = {
    "type": "array",
    "items": {"type": "string", "minLength": 1, "maxLength": MAX_TAG_CHARS},
    "maxItems": MAX_TAGS,
}


def _tier_words() -> str:
    """What each tier starts with, for the description."""
    lines = [
        f"{tier} (priority {priority}, falling by {rate} with every chat turn)"
        for tier, (priority, rate) in TIER_DEFAULTS.items()
    ]
    return " or ".join(reversed(lines))


async def store_memory(context: ToolContext, args: dict[str, Any]) -> dict[str, Any]:
    """A new note with its tier's priority and decay."""
    return await memory_of(context).save(
        args["content"], tags=args.get("tags"), tier=args.get("tier"), importance=None, category=None
    )


async def recall_memory(context: ToolContext, args: dict[str, Any]) -> Any:
    """Notes that contain one of the keywords, highest priority first."""
    found = await memory_of(context).recall(args["keywords"], tier=args.get("tier"), tags=args.get("tags"))
    return marked(found, found["memories"])


CLASSIC_TOOLS = [
    Tool(
        name="store_memory",
        description=(
            "Store one fact about the user as a memory: one self-contained sentence in the third person, with a few "
            "single-word tags, which are what recall_memory finds it by most surely. "
            f"tier is {_tier_words()}; long_term unless given. Returns the note_id."
        ),
        input_schema=tool_schema(
            ["content"],
            content={"type": "string", "maxLength": MAX_CONTENT_CHARS, "description": "What to remember."},
            tags={**_TAGS, "description": "Single words such as health, allergy, food."},
            tier={"type": "string", "enum": list(NoteTier.values)},
        ),
        handler=store_memory,
        tier=Tier.SIDE_EFFECTING,
        timeout=10.0,
        toolset=TOOLSET,
    ),
    Tool(
        name="recall_memory",
        description=(
            "Recall memories by keywords: those of which a tag or the text contains at least one, in any case and also "
            "inside words, highest priority first, at most ten. Faded ones (priority below 0.05) are left out; memory_search finds them. Give "
            "several spellings and synonyms: it matches letters, not meaning. memory_search finds by meaning."
        ),
        input_schema=tool_schema(
            ["keywords"],
            keywords={
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": MAX_KEYWORD_CHARS},
                "maxItems": MAX_KEYWORDS,
                "description": "Words to look for; an empty list recalls by tier and tags alone.",
            },
            tier={"type": "string", "enum": list(NoteTier.values), "description": "Only this tier."},
            tags={**_TAGS, "description": "Only memories with at least one of these tags."},
        ),
        handler=recall_memory,
        tier=Tier.READ_ONLY,
        timeout=15.0,
        result_limit=40_000,
        toolset=TOOLSET,
    ),
]
