"""The older names of the note tools, for prompts and habits that know them: the same notes underneath."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from apps.agent.tools.base import Tier, ToolContext, ToolOutput, tool
from apps.memory.models import Tier as NoteTier
from apps.memory.notes.changes import access_record
from apps.memory.notes.fields import MAX_TAG_CHARS, MAX_TAGS, TIER_DEFAULTS
from apps.memory.recall.keywords import MAX_KEYWORD_CHARS, MAX_KEYWORDS, memory_recall
from apps.memory.tools.search import Content

from .answers import fragment_json, fragments
from .saving import note_save

TOOLSET = "classic"
TIER_WORDS = " or ".join(
    f"{tier} (priority {priority}, falling by {rate} with every chat turn)"
    for tier, (priority, rate) in reversed(TIER_DEFAULTS.items())
)
Tags = Annotated[
    list[Annotated[str, {"minLength": 1, "maxLength": MAX_TAG_CHARS}]] | None, {"maxItems": MAX_TAGS}
]
TierName = Annotated[str | None, {"enum": list(NoteTier.values)}]


@dataclass(frozen=True, slots=True)
class Store:
    content: Annotated[Content, "What to remember."]
    tags: Annotated[Tags, "Single words such as health, allergy, food."] = None
    tier: TierName = None


@tool(
    description=(
        "Store one fact about the user as a memory: one self-contained sentence in the third person, with a few "
        "single-word tags, which are what recall_memory finds it by most surely. "
        f"tier is {TIER_WORDS}; long_term unless given. Returns the note_id."
    ),
    tier=Tier.SIDE_EFFECTING,
    timeout=10.0,
    toolset=TOOLSET,
    needs_memory=True,
    title="Store a memory",
    doing="Saving a memory",
    done="Saved a memory",
    shows=("content",),
    icon="memory",
    notes="written",
)
def store_memory(context: ToolContext, arguments: Store) -> dict[str, Any]:
    """A new note begins with its tier's priority and decay."""
    return note_save(context, asdict(arguments))


@dataclass(frozen=True, slots=True)
class Recall:
    keywords: Annotated[
        list[Annotated[str, {"minLength": 1, "maxLength": MAX_KEYWORD_CHARS}]],
        {"maxItems": MAX_KEYWORDS},
        "Words to look for; an empty list recalls by tier and tags alone.",
    ]
    tier: Annotated[TierName, "Only this tier."] = None
    tags: Annotated[Tags, "Only memories with at least one of these tags."] = None


@tool(
    tier=Tier.READ_ONLY,
    result_limit=40_000,
    toolset=TOOLSET,
    needs_memory=True,
    title="Recall your memories by keywords",
    doing="Recalling",
    done="Recalled",
    shows=("keywords",),
    icon="search",
    notes="read",
)
def recall_memory(context: ToolContext, arguments: Recall) -> ToolOutput:
    """Recall memories by keywords: those of which a tag or the text contains at least one, in any case and also
    inside words, highest priority first, at most ten. Faded ones (priority below 0.05) are left out; memory_search
    finds them. Give several spellings and synonyms: it matches letters, not meaning. memory_search finds by meaning."""
    recalled = memory_recall(
        context.user_id, arguments.keywords, tier=arguments.tier or "", tags=arguments.tags or ()
    )
    notes = [found.note for found in recalled]
    access_record(user_id=context.user_id, memory_ids=[note.pk for note in notes])
    return fragments([fragment_json(note) for note in notes])
