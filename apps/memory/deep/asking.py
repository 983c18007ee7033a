"""The steps of deep memory, one after the other, with a progress event for each."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from apps.agent.tools.base import Emit, ToolOutput
from apps.core.database import in_db
from apps.core.errors import Unavailable
from apps.core.ids import note_id
from apps.memory.tools.answers import fragment_json, fragments

from .angles import Angle, completed, rule_angles
from .fast_model import Asked, expanded, has_model, summed_up
from .gathering import Found, angle_search, gathered

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
