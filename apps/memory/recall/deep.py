"""Deep memory: one question, looked at from several angles at once.

Expand into keyword sets → search them side by side → merge → follow links one hop → sum up. The fast model expands and
sums up where there is one; without one, or where it fails, the sets come from rules and the fragments are handed back ranked.
"""

import asyncio
import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone

from apps.agent.model.client import ModelError, ModelRequest, ModelResponse, complete
from apps.agent.model.endpoint import current_endpoint, model_for
from apps.agent.model.sdk import default_client
from apps.agent.tools.base import Emit, ToolOutput
from apps.core.db.pool import in_db
from apps.core.errors import Unavailable
from apps.core.ids import note_id
from apps.memory.models import Memory, Status, Trust
from apps.memory.notes.changes import access_record
from apps.memory.prompts import prompt
from apps.memory.selectors import NoteFilter, related_notes
from apps.memory.tools.answers import fragment_json, fragments

from .angles import MAX_SET_WORDS, MAX_SETS, Angle, completed, rule_angles
from .keywords import memory_matching
from .searching import notes_search

logger = logging.getLogger(__name__)

EXPANSION = "expansion"
SYNTHESIS = "synthesis"
EXPANSION_SECONDS = 10.0
SYNTHESIS_SECONDS = 15.0
EXPANSION_TOKENS = 500
SYNTHESIS_TOKENS = 500
MAX_WORD_CHARS = 60
QUERY_CHARS = 2000
FRAGMENT_CHARS = 800

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question of one user; conversation and turn are where its model calls are booked."""

    user_id: UUID
    query: str
    conversation_id: UUID | None = None
    turn_id: UUID | None = None


async def has_model() -> bool:
    """Whether a model is connected (offline mode's rules are none)."""
    return not (await in_db(current_endpoint)).is_offline


async def expanded(asked: Asked) -> list[list[str]] | None:
    """The keyword sets that the model thinks of: at least one, at most five."""
    request = _request(
        asked,
        purpose=EXPANSION,
        content=asked.query[:QUERY_CHARS],
        max_tokens=EXPANSION_TOKENS,
        tools=[SEARCH_TOOL],
        tool_choice={"type": "tool", "name": SEARCH_TOOL["name"]},
    )
    response = await _answer(request, EXPANSION_SECONDS)
    sets = _keyword_sets(_searches(response)) if response else []
    if response and not sets:
        logger.info("the model gave no keyword sets for a deep search")
    return sets or None


async def summed_up(asked: Asked, notes: Sequence[Memory]) -> str | None:
    """A short text about the question, made of the notes alone."""
    fragments = "\n".join(_fragment(note) for note in notes)
    content = f"Question: {asked.query[:QUERY_CHARS]}\n\nFragments:\n{fragments}"
    request = _request(asked, purpose=SYNTHESIS, content=content, max_tokens=SYNTHESIS_TOKENS)
    response = await _answer(request, SYNTHESIS_SECONDS)
    if response is None or response.stop_reason == "refusal":
        return None
    return response.text.strip() or None


def _request(asked: Asked, *, purpose: str, content: str, **options: Any) -> ModelRequest:
    return ModelRequest(
        user_id=asked.user_id,
        purpose=purpose,
        model=model_for("fast"),
        system=prompt(f"deep_{purpose}"),
        messages=[{"role": "user", "content": content}],
        conversation_id=asked.conversation_id,
        turn_id=asked.turn_id,
        **options,
    )


async def _answer(request: ModelRequest, seconds: float) -> ModelResponse | None:
    try:
        async with asyncio.timeout(seconds):
            return await complete(default_client(), request)
    except ModelError as error:
        logger.info("deep memory goes on without the model (%s): %s", request.purpose, error.message)
    except TimeoutError:
        logger.info("deep memory goes on without the model (%s): too slow", request.purpose)
    return None


def _searches(response: ModelResponse) -> Any:
    """The list in the forced tool call; small models write it as text instead."""
    for block in response.tool_uses:
        if block["name"] == SEARCH_TOOL["name"]:
            return block["input"].get("searches")
    start, end = response.text.find("["), response.text.rfind("]")
    try:
        return json.loads(response.text[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        return None


def _keyword_sets(searches: Any) -> list[list[str]]:
    """The usable sets: lists of short texts. A flat list of words is one set."""
    if not isinstance(searches, list):
        return []
    if searches and all(isinstance(word, str) for word in searches):
        searches = [searches]
    sets = [_words(one) for one in searches if isinstance(one, list)]
    return [words for words in sets if words][:MAX_SETS]


def _words(given: list[Any]) -> list[str]:
    texts = [" ".join(word.split()) for word in given if isinstance(word, str)]
    usable = [word for word in texts if 0 < len(word) <= MAX_WORD_CHARS and word.isprintable()]
    return list(dict.fromkeys(usable))[:MAX_SET_WORDS]


def _fragment(note: Memory) -> str:
    marks = [note.tier, f"{note.updated_at:%Y-%m-%d}"]
    if note.trust == Trust.UNTRUSTED:
        marks.append("untrusted source")
    tags = f" (tags: {', '.join(note.tags)})" if note.tags else ""
    return f"- [{', '.join(marks)}] {' '.join(note.content.split())[:FRAGMENT_CHARS]}{tags}"


PER_SEARCH = 5
MAX_FOUND = 10
LEAST_RELEVANCE = 0.015
"""The one score of a note that shares nothing with the words looked for is about 0.005, that of a distant relative 0.02 and more."""
LEAST_LINKED = 0.05
"""Linked notes need more: their score does not measure the words."""
TAG_DOUBT = 0.5
CONTENT_DOUBT = 0.6
"""How likely a note is beside the point although a tag, or its text, contains one keyword."""
START_NOTES = 3
LINKED_NOTES = 5
LINK_SHARE = 0.8
"""How much of a note's relevance a link of weight 1 hands on."""
MIN_LETTERS = 4
"""A shorter ASCII word is looked for as a word, not inside others ("eat" is in "great")."""


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


def angle_search(user_id: UUID, angle: Angle) -> list[Found]:
    """The five most relevant notes for one keyword set: by meaning and words, and by the keyword score over tags and
    content.

    Faded notes are among them; what neither finds relevant is left out.
    """
    found: dict[UUID, Found] = {}
    for hit, note in notes_search(user_id, " ".join(angle.words), wanted=NoteFilter(), top_k=2 * PER_SEARCH):
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


def gathered(user_id: UUID, searches: Iterable[Sequence[Found]]) -> list[Found]:
    """The notes of all searches, each once, with what the best are linked with; at most ten. Records the access."""
    best = _best(found for search in searches for found in search)
    linked = [near for start in best[:START_NOTES] for near in _linked(user_id, start)]
    kept = _best([*best, *linked])[:MAX_FOUND]
    access_record(user_id=user_id, memory_ids=[found.note.pk for found in kept])
    return kept


def _linked(user_id: UUID, start: Found) -> list[Found]:
    """The valid, active notes one link away."""
    now = timezone.now()
    near = related_notes(user_id, start.note.pk, depth=1, limit=LINKED_NOTES, statuses=(Status.ACTIVE,))
    handed = start.relevance * LINK_SHARE
    found = [Found(one.note, handed * one.weight, via=start.note.pk) for one in near if _valid(one.note, now)]
    return [one for one in found if one.relevance >= LEAST_LINKED]


def _valid(note: Memory, now: datetime) -> bool:
    begun = note.valid_from is None or note.valid_from <= now
    return begun and (note.valid_to is None or now < note.valid_to)


def _best(found: Iterable[Found]) -> list[Found]:
    """Each note once, where it is most relevant, highest rank first."""
    best: dict[UUID, Found] = {}
    for one in found:
        known = best.get(one.note.pk)
        if known is None or one.relevance > known.relevance:
            best[one.note.pk] = one
    return sorted(best.values(), key=lambda one: (-one.rank, -one.relevance, str(one.note.pk)))


logger = logging.getLogger(__name__)

SEARCH_SECONDS = 10.0
SHOWN_CHARS = 200


async def deep_memory(asked: Asked, progress: Emit) -> ToolOutput:
    """Finds what the user's notes hold about a question, from several angles.

    `{query, searches, summary?, count, memories}`: at most ten memories, highest priority plus relevance first; one
    that a link led to names it as `via`. With a model there is a `summary` made of them. Sends `expanding{query}`,
    `searching{searches}` and `found{count, memories}`, in this order, as `{"status": …}`.
    """
    await progress({"status": "expanding", "query": asked.query})
    angles, model_works = await _angles(asked)
    searches = [list(angle.words) for angle in angles]
    await progress({"status": "searching", "searches": searches})
    found = await in_db(gathered, asked.user_id, await _side_by_side(asked, angles))
    await progress({"status": "found", "count": len(found), "memories": [_shown(one) for one in found]})
    summary = await summed_up(asked, [one.note for one in found]) if found and model_works else None
    head = {"query": asked.query, "searches": searches} | ({"summary": summary} if summary else {})
    return fragments([_entry(one) for one in found], **head)


async def _angles(asked: Asked) -> tuple[list[Angle], bool]:
    """The keyword sets, and whether a model made them: one that has just failed is not asked again."""
    sets = await expanded(asked) if await has_model() else None
    if sets is None:
        return await in_db(rule_angles, asked.user_id, asked.query), False
    return completed(sets, asked.query), True


async def _side_by_side(asked: Asked, angles: Sequence[Angle]) -> list[list[Found]]:
    """The results of the searches that end in time. Raises Unavailable when none does."""
    tasks = [asyncio.create_task(in_db(angle_search, asked.user_id, angle)) for angle in angles]
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


def _shown(found: Found) -> dict[str, Any]:
    """A memory on the card that shows the progress."""
    text = found.note.content
    shortened = text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"
    return {"note_id": found.note.note_id, "text": shortened, "tags": found.note.tags}


def _entry(found: Found) -> dict[str, Any]:
    entry = fragment_json(found.note)
    return {**entry, "via": note_id(found.via)} if found.via else entry
