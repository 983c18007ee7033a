"""The fast model's part in deep memory: it thinks of keyword sets and sums up what was found.

Both answer None where there is no model, and where it fails, dawdles or answers nonsense: deep memory then goes on
without it.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.agent.client import ModelError, ModelRequest, ModelResponse, complete
from apps.agent.endpoint import current_endpoint, model_for
from apps.agent.sdk import default_client
from apps.core.database import in_db
from apps.memory.models import Memory, Trust
from apps.memory.prompts import prompt

from .angles import MAX_SET_WORDS, MAX_SETS

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
