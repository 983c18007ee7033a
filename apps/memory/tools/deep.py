"""Deep memory: one question, looked at from several angles at once.

Expand into keyword sets → search them and the notes' occasions side by side → merge → follow links one hop → sum up. The fast model expands and
sums up where there is one; without one, or where it fails, the sets come from rules and the fragments are handed back ranked.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any
from uuid import UUID

from django.utils import timezone

from apps.accounts.selectors import user_time_zone
from apps.agent.model.client import ModelError, ModelResponse, current_endpoint, model_for
from apps.agent.tools.base import ToolContext, ToolOutput
from apps.core.db.pool import in_db
from apps.core.errors import Unavailable
from apps.core.ids import note_id
from apps.core.text import clean_text
from apps.memory.models import Memory, Status, Trust
from apps.memory.notes.changes import access_record
from apps.memory.notes.selectors import NoteFilter, memories_by_id, related_notes
from apps.memory.prompts import forced_input, model_answer
from apps.memory.recall.angles import MAX_SET_WORDS, MAX_SETS, Angle, completed, rule_angles
from apps.memory.recall.keywords import memory_matching
from apps.memory.recall.searching import notes_search
from apps.memory.similarity import NOTES
from apps.search.selectors import near_occasions

from .search import MAX_QUERY_CHARS, finding_tool, fragment_json, fragments, shown_text

logger = logging.getLogger(__name__)

EXPANSION = "expansion"
SYNTHESIS = "synthesis"
EXPANSION_SECONDS = 10.0
SYNTHESIS_SECONDS = 15.0
EXPANSION_TOKENS = 500
SYNTHESIS_TOKENS = 500
MAX_QUESTION_CHARS = 2000
MAX_WORD_CHARS = 60
QUERY_CHARS = 2000
FRAGMENT_CHARS = 800

PER_SEARCH = 5
MAX_FOUND = 10
LEAST_RELEVANCE = 0.008
"""The one score of a note that shares nothing with the words looked for is about 0.002, that of a distant relative 0.009 and more."""
LEAST_LINKED = 0.05
"""Linked notes need more: their score does not measure the words."""
TAG_DOUBT = 0.5
CONTENT_DOUBT = 0.6
"""How likely a note is beside the point although a tag, or its text, contains one keyword."""
OCCASION_SHARE = 0.8
"""How relevant a note is whose occasion says just what the question does."""
LEAST_OCCASION = 0.2
START_NOTES = 3
LINKED_NOTES = 5
LINK_SHARE = 0.8
"""How much of a note's relevance a link of weight 1 hands on."""
MIN_LETTERS = 4
"""A shorter ASCII word is looked for as a word, not inside others ("eat" is in "great")."""
SEARCH_SECONDS = 10.0
SHOWN_CHARS = 200

SEARCH_TOOL: dict[str, Any] = {
    "name": "search_memory",
    "description": "Search the notes with several keyword sets side by side.",
    "input_schema": {
        "type": "object",
        "properties": {
            "searches": {
                "type": "array",
                "minItems": 3,
                "maxItems": MAX_SETS,
                "items": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": MAX_SET_WORDS,
                    "items": {"type": "string"},
                },
            }
        },
        "required": ["searches"],
        "additionalProperties": False,
    },
}


@dataclass(frozen=True, slots=True)
class Found:
    """A note with how relevant it is to the question (0..1); `via` is the note whose link led to it."""

    note: Memory
    relevance: float
    via: UUID | None = None

    @property
    def rank(self) -> float:
        """Order of the results: present priority plus relevance."""
        return self.note.present + self.relevance


@dataclass(frozen=True, slots=True)
class Question:
    query: Annotated[
        str,
        {"minLength": 1, "maxLength": MAX_QUESTION_CHARS},
        "The whole question, in natural language.",
    ]


@finding_tool(
    timeout=45.0,
    result_limit=40_000,
    title="Search your memories from several angles",
    doing="Searching deep memory",
    done="Searched deep memory",
    shows=("query",),
)
async def deep_memory(context: ToolContext, arguments: Question) -> ToolOutput:
    """Look deep into your memory of this user: the question is expanded into several sets of keywords, these are
    searched side by side, links between notes are followed, and the result comes as a summary with up to ten
    memories. Use it when one search may miss what matters because it was noted under other words (what does
    the user like to eat? → cuisine, allergy, dinner), for broad questions about the user, and before plans
    and recommendations. It takes a few seconds: for a plain fact use memory_search."""
    # {query, searches, summary?, count, memories}; progress is {"status": "expanding", "query"}, then "searching", then "found".
    query = clean_text(arguments.query, field="query", max_chars=MAX_QUERY_CHARS)
    await context.emit({"status": "expanding", "query": query})
    has_model = not (await in_db(current_endpoint)).is_offline
    sets = await _expanded(context, query) if has_model else []
    angles = completed(sets, query) if sets else await in_db(rule_angles, context.user_id, query)
    searches = [list(angle.words) for angle in angles]
    await context.emit({"status": "searching", "searches": searches})
    found = await in_db(gathered, context.user_id, await _side_by_side(context.user_id, query, angles))
    shown = [
        {"note_id": note.note_id, "text": shown_text(note, SHOWN_CHARS), "tags": note.tags}
        for note in (one.note for one in found)
    ]
    await context.emit({"status": "found", "count": len(found), "memories": shown})
    head: dict[str, Any] = {"query": query, "searches": searches}
    # A model that has just failed is not asked again.
    if found and sets and (summary := await _summary(context, query, [one.note for one in found])):
        head["summary"] = summary
    via = [{"via": note_id(one.via)} if one.via else {} for one in found]
    return fragments(
        [fragment_json(one.note) | way for one, way in zip(found, via, strict=True)], **head
    )


async def _expanded(context: ToolContext, query: str) -> list[list[str]]:
    """The keyword sets that the model thinks of, at most five: lists of short texts. A flat list of words is one set."""
    limits = {"max_tokens": EXPANSION_TOKENS, "seconds": EXPANSION_SECONDS}
    response = await _answer(context, EXPANSION, query[:QUERY_CHARS], tool=SEARCH_TOOL, **limits)
    if response is None:
        return []
    given = forced_input(response, SEARCH_TOOL["name"])
    searches = given.get("searches") if isinstance(given, dict) else given
    if isinstance(searches, list) and searches and all(isinstance(word, str) for word in searches):
        searches = [searches]
    sets = []
    for words in searches if isinstance(searches, list) else []:
        texts = (
            [" ".join(word.split()) for word in words if isinstance(word, str)]
            if isinstance(words, list)
            else []
        )
        usable = [text for text in texts if 0 < len(text) <= MAX_WORD_CHARS and text.isprintable()]
        sets += [list(dict.fromkeys(usable))[:MAX_SET_WORDS]] if usable else []
    if not sets:
        logger.info("the model gave no keyword sets for a deep search")
    return sets[:MAX_SETS]


async def _summary(context: ToolContext, query: str, notes: Sequence[Memory]) -> str:
    """A short text about the question, made of the notes alone; "" where there is none."""
    zone = await in_db(user_time_zone, context.user_id)
    lines = [f"Question: {query[:QUERY_CHARS]}", "", "Fragments:"]
    for note in notes:
        marks = f"{note.tier}, {note.updated_at.astimezone(zone):%Y-%m-%d}"
        marks += ", untrusted source" if note.trust == Trust.UNTRUSTED else ""
        tags = f" (tags: {', '.join(note.tags)})" if note.tags else ""
        lines.append(f"- [{marks}] {' '.join(note.content.split())[:FRAGMENT_CHARS]}{tags}")
    limits = {"max_tokens": SYNTHESIS_TOKENS, "seconds": SYNTHESIS_SECONDS}
    response = await _answer(context, SYNTHESIS, "\n".join(lines), **limits)
    return response.text.strip() if response and response.stop_reason != "refusal" else ""


async def _answer(
    context: ToolContext, purpose: str, content: str, **options: Any
) -> ModelResponse | None:
    """The model's answer; None where it fails or dawdles: deep memory then goes on without it."""
    try:
        return await model_answer(
            content,
            user_id=context.user_id,
            conversation_id=context.conversation_id,
            turn_id=context.turn_id,
            purpose=purpose,
            system=f"deep_{purpose}",
            model=model_for("fast"),
            **options,
        )
    except ModelError as error:
        logger.info("deep memory goes on without the model (%s): %s", purpose, error.message)
        return None


async def _side_by_side(user_id: UUID, query: str, angles: Sequence[Angle]) -> list[list[Found]]:
    """The results of the searches that end in time. Raises Unavailable when none does."""
    tasks = [asyncio.create_task(in_db(angle_search, user_id, angle)) for angle in angles]
    tasks.append(asyncio.create_task(in_db(occasion_search, user_id, query, angles)))
    try:
        done, late = await asyncio.wait(tasks, timeout=SEARCH_SECONDS)
    finally:
        for task in tasks:
            task.cancel()
    if late:
        logger.warning("%d of %d searches of a deep search took too long", len(late), len(tasks))
    if not done:
        raise Unavailable("Searching the memory took too long. Try memory_search with fewer words.")
    return [task.result() for task in tasks if task in done]


def angle_search(user_id: UUID, angle: Angle) -> list[Found]:
    """The five most relevant notes for one keyword set: by meaning and words, and by the keyword score over tags and
    content.

    Faded notes are among them; what neither finds relevant is left out.
    """
    found: dict[UUID, Found] = {}
    for hit, note in notes_search(
        user_id, " ".join(angle.words), wanted=NoteFilter(), top_k=2 * PER_SEARCH
    ):
        found[note.pk] = Found(note, hit.score)
    inside = [word for word in angle.words if len(word) >= MIN_LETTERS or not word.isascii()]
    for item in memory_matching(user_id, inside, limit=2 * PER_SEARCH) if inside else []:
        known = found.get(item.note.pk)
        doubt = 1 - known.relevance if known else 1.0
        missed = doubt * TAG_DOUBT**item.tag_hits * CONTENT_DOUBT**item.content_hits
        found[item.note.pk] = Found(item.note, 1 - missed)
    weighed = [replace(one, relevance=one.relevance * angle.weight) for one in found.values()]
    relevant = [one for one in weighed if one.relevance >= LEAST_RELEVANCE]
    return sorted(relevant, key=lambda one: (-one.relevance, -one.rank, str(one.note.pk)))[:PER_SEARCH]


def occasion_search(user_id: UUID, query: str, angles: Sequence[Angle]) -> list[Found]:
    """The notes that matter on an occasion near to the question, or to what it is looked at from; five at most."""
    asked = [query, *(" ".join(angle.words) for angle in angles)]
    near = near_occasions(user_id, asked, top_k=2 * PER_SEARCH, scope=NOTES)
    notes = memories_by_id(user_id, [key for key, _ in near])
    found = [
        Found(note, OCCASION_SHARE * similarity)
        for key, similarity in near
        if (note := notes.get(key)) and note.status == Status.ACTIVE
    ]
    return [one for one in found if one.relevance >= LEAST_OCCASION][:PER_SEARCH]


def gathered(user_id: UUID, searches: Iterable[Sequence[Found]]) -> list[Found]:
    """The notes of all searches, each once, with what the best are linked with; at most ten. Records the access."""
    best = _best(found for search in searches for found in search)
    now, linked = timezone.now(), list[Found]()
    for start in best[:START_NOTES]:
        near = related_notes(
            user_id, start.note.pk, depth=1, limit=LINKED_NOTES, statuses=(Status.ACTIVE,)
        )
        for one in near:
            begun, ended = one.note.valid_from, one.note.valid_to
            holds = (begun is None or begun <= now) and (ended is None or now < ended)
            relevance = start.relevance * LINK_SHARE * one.weight
            if holds and relevance >= LEAST_LINKED:
                linked.append(Found(one.note, relevance, via=start.note.pk))
    kept = _best([*best, *linked])[:MAX_FOUND]
    access_record(user_id=user_id, memory_ids=[found.note.pk for found in kept])
    return kept


def _best(found: Iterable[Found]) -> list[Found]:
    """Each note once, where it is most relevant, highest rank first."""
    best: dict[UUID, Found] = {}
    for one in found:
        known = best.get(one.note.pk)
        if known is None or one.relevance > known.relevance:
            best[one.note.pk] = one
    return sorted(best.values(), key=lambda one: (-one.rank, -one.relevance, str(one.note.pk)))
