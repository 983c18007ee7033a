"""The tools that link notes and follow the links."""

from typing import Any

from apps.agent.tools.base import Tier, Tool, ToolContext, always
from apps.memory.models import Relation
from apps.memory.selectors import MAX_DEPTH
from apps.memory.services.edges import MAX_RELATION_CHARS

from .notes import NOTE_ID, TOOLSET, marked, memory_of, tool_schema

DEFAULT_DEPTH = 2
DEFAULT_RELATED = 20
MAX_RELATED = 50


async def link_memories(context: ToolContext, args: dict[str, Any]) -> dict[str, Any]:
    """A link from one note to another."""
    return await memory_of(context).link(
        args["source_id"],
        args["target_id"],
        relation=args.get("relation", str(Relation.RELATED)),
        weight=args.get("weight", 1.0),
    )


async def related_memories(context: ToolContext, args: dict[str, Any]) -> Any:
    """The notes near a note."""
    found = await memory_of(context).related(
        args["note_id"], depth=args.get("depth", DEFAULT_DEPTH), limit=args.get("limit", DEFAULT_RELATED)
    )
    return marked(found, found["memories"])


GRAPH_TOOLS = [
    Tool(
        name="link_memories",
        description=(
            "Link two notes that belong together, so that whoever finds one finds the other: a person and their "
            "birthday, a decision and its reason, a project and its people. Linking them again with the same relation "
            "sets the weight. Needs the note_ids that memory_search or memory_save gave."
        ),
        input_schema=tool_schema(
            ["source_id", "target_id"],
            source_id={**NOTE_ID, "description": "The note the link starts at."},
            target_id={**NOTE_ID, "description": "The note it leads to."},
            relation={
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_RELATION_CHARS,
                "description": f"{', '.join(Relation.values)} or a few words of your own; related unless given.",
            },
            weight={
                "type": "number",
                "minimum": 0,
                "maximum": 1,
                "description": "How closely they belong together, 1 unless given.",
            },
        ),
        handler=link_memories,
        tier=Tier.SIDE_EFFECTING,
        asks_when_untrusted=always,
        timeout=10.0,
        toolset=TOOLSET,
    ),
    Tool(
        name="related_memories",
        description=(
            "The notes that are linked with a note, directly or over others, nearest first, each with the relation and "
            "the note it was reached from. Use it when one note is found and what hangs together with it matters."
        ),
        input_schema=tool_schema(
            ["note_id"],
            note_id=NOTE_ID,
            depth={
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_DEPTH,
                "description": f"How many links away at most, {DEFAULT_DEPTH} unless given.",
            },
            limit={
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_RELATED,
                "description": f"How many notes at most, {DEFAULT_RELATED} unless given.",
            },
        ),
        handler=related_memories,
        tier=Tier.READ_ONLY,
        timeout=15.0,
        toolset=TOOLSET,
    ),
]
