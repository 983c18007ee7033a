"""Memory's calls of a model: a prompt in a Markdown file for each purpose, and what can be read of the answers."""

import asyncio
import json
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

from apps.agent.model.client import INCOMPLETE_INPUT, ModelError, ModelRequest, ModelResponse, complete
from apps.agent.model.sdk import default_client


@cache
def prompt(name: str) -> str:
    """The text of `apps/memory/prompts/<name>.md`."""
    return (Path(__file__).parent / f"{name}.md").read_text(encoding="utf-8").strip()


async def model_answer(
    content: str,
    *,
    user_id: UUID,
    purpose: str,
    system: str,
    model: str,
    max_tokens: int,
    seconds: float,
    tool: dict[str, Any] | None = None,
    conversation_id: UUID | None = None,
    turn_id: UUID | None = None,
) -> ModelResponse:
    """Asks a model once, with the prompt `system` and a tool that it has to call if one is given. Raises ModelError."""
    request = ModelRequest(
        user_id=user_id,
        purpose=purpose,
        model=model,
        system=prompt(system),
        messages=[{"role": "user", "content": content}],
        tools=[tool] if tool else [],
        tool_choice={"type": "tool", "name": tool["name"]} if tool else None,
        max_tokens=max_tokens,
        conversation_id=conversation_id,
        turn_id=turn_id,
    )
    try:
        async with asyncio.timeout(seconds):
            return await complete(default_client(), request)
    except TimeoutError:
        message = f"The model took longer than {seconds:.0f} seconds to answer."
        raise ModelError("model_timeout", message) from None


def forced_input(response: ModelResponse, name: str) -> Any:
    """The input of the forced call; small models write JSON as text instead, or break off in the middle."""
    for block in response.tool_uses:
        if block["name"] == name:
            given = block["input"]
            return json_in(given[INCOMPLETE_INPUT]) if INCOMPLETE_INPUT in given else given
    return json_in(response.text)


def json_in(text: object) -> Any:
    """The JSON in a text, or as many whole items as a text has that was cut off; None where there is none."""
    if not isinstance(text, str):
        return None
    starts = [place for place in map(text.find, "[{") if place >= 0]
    end = max(map(text.rfind, "]}"))
    if not starts or end < min(starts):
        return None
    try:
        return json.loads(text[min(starts) : end + 1])
    except (ValueError, RecursionError):
        return _whole_items(text)


def _whole_items(text: str) -> Any:
    """The complete objects of a list that was cut off."""
    decoder, items = json.JSONDecoder(), []
    place = text.find("{", text.find("[") + 1)
    while 0 <= place < len(text):
        try:
            item, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            break
        items.append(item)
        place = text.find("{", end)
    return {"items": items} if items else None
