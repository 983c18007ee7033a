"""The tools that link notes and follow the links."""

from dataclasses import dataclass
from typing import Annotated, Any

from apps.agent.tools.base import Tier, ToolContext, ToolOutput, may_be_behind, tool
from apps.core.ids import note_id
from apps.memory.models import Relation, Status
from apps.memory.notes.changes import access_record
from apps.memory.notes.joining import MAX_RELATION_CHARS, edge_create
from apps.memory.selectors import MAX_DEPTH, related_notes
from apps.memory.tools.search import TOOLSET, NoteId, known_notes

from .answers import fragments, near_json

DEFAULT_DEPTH = 2
DEFAULT_RELATED = 20
MAX_RELATED = 50
FOLLOWED = (Status.ACTIVE, Status.SUPERSEDED)
"""The notes that the assistant gets to see by following links: none that wait for review or were put away."""


@dataclass(frozen=True, slots=True)
class Link:
    source_id: Annotated[NoteId, "The note the link starts at."]
    target_id: Annotated[NoteId, "The note it leads to."]
    relation: Annotated[
        str,
        {"minLength": 1, "maxLength": MAX_RELATION_CHARS},
        f"{', '.join(Relation.values)} or a few words of your own; related unless given.",
    ] = str(Relation.RELATED)
    weight: Annotated[
        float, {"minimum": 0, "maximum": 1}, "How closely they belong together, 1 unless given."
    ] = 1.0


@tool(
    tier=Tier.SIDE_EFFECTING,
    takes=may_be_behind,
    timeout=10.0,
    toolset=TOOLSET,
    needs_memory=True,
    title="Link two memories",
    doing="Linking memories",
    done="Linked memories",
    shows=("relation",),
    icon="memory",
    notes="linked",
)
def link_memories(context: ToolContext, arguments: Link) -> dict[str, Any]:
    """Link two notes that belong together, so that whoever finds one finds the other: a person and their
    birthday, a decision and its reason, a project and its people. Linking them again with the same relation
    sets the weight. Needs the note_ids that memory_search or memory_save gave."""
    with known_notes(arguments.source_id, arguments.target_id) as (source, target):
        edge = edge_create(
            user_id=context.user_id,
            source_id=source,
            target_id=target,
            relation=arguments.relation,
            weight=arguments.weight,
        )
    return {
        "source_id": note_id(edge.source_id),
        "target_id": note_id(edge.target_id),
        "relation": edge.relation,
        "weight": edge.weight,
        "message": "Linked.",
    }


@dataclass(frozen=True, slots=True)
class Related:
    note_id: NoteId
    depth: Annotated[
        int,
        {"minimum": 1, "maximum": MAX_DEPTH},
        f"How many links away at most, {DEFAULT_DEPTH} unless given.",
    ] = DEFAULT_DEPTH
    limit: Annotated[
        int,
        {"minimum": 1, "maximum": MAX_RELATED},
        f"How many notes at most, {DEFAULT_RELATED} unless given.",
    ] = DEFAULT_RELATED


@tool(
    tier=Tier.READ_ONLY,
    toolset=TOOLSET,
    needs_memory=True,
    title="Follow links between your memories",
    doing="Following links",
    done="Followed links",
    shows=("note_id",),
    icon="memory",
    notes="read",
)
def related_memories(context: ToolContext, arguments: Related) -> ToolOutput:
    """The notes that are linked with a note, directly or over others, nearest first, each with the relation and
    the note it was reached from. Use it when one note is found and what hangs together with it matters."""
    user_id, limits = context.user_id, {"depth": arguments.depth, "limit": arguments.limit}
    with known_notes(arguments.note_id) as (memory_id,):
        near = related_notes(user_id, memory_id, **limits, statuses=FOLLOWED)
    access_record(user_id=user_id, memory_ids=[found.note.pk for found in near])
    return fragments([near_json(found) for found in near])
