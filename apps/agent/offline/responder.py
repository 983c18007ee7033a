"""The offline model: what it answers, given the user's words and what its tool calls brought so far, and the other end of the
SDK's HTTP client, which answers `POST /v1/messages` within this process.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx2

from apps.agent.models import ModelCall
from apps.agent.offline import capabilities, notes, phrases, rehearsals, talks
from apps.agent.offline.dialogue import Blocks, Dialogue, read_dialogue, say
from apps.agent.offline.intents import Intent, Kind, intent_of
from apps.agent.services import DECLINED


def respond(request: dict[str, Any]) -> Blocks:
    """The content blocks that answer a Messages API request."""
    if any(tool.get("name") == "register_capability" for tool in request.get("tools", [])):
        return rehearsals.build(request)
    dialogue = read_dialogue(request)
    if dialogue.words.startswith(rehearsals.NOTICE):
        return rehearsals.go_on(dialogue.words)
    intent = intent_of(dialogue.words)
    failed = dialogue.latest
    if failed is not None and failed.is_error and failed.result == DECLINED:
        return say(phrases.DECLINED)
    if failed is not None and failed.is_error:
        return say(phrases.FAILED.format(reason=failed.result))
    if piece := rehearsals.usage_of(dialogue.words):
        return rehearsals.use_piece(dialogue, piece)
    if piece := rehearsals.named(dialogue.words):  # what was asked before is not looked at again
        return say(rehearsals.GO_ON.format(usage=piece.usage))
    if what := rehearsals.requested_tool(dialogue.words):
        return rehearsals.have_built(dialogue, what)
    rule = RULES.get(intent.kind)
    return rule(dialogue, intent) if rule else say(TEXTS[intent.kind])


TEXTS = {
    Kind.HELP: phrases.HELP,
    Kind.GREETING: phrases.GREETING,
    Kind.THANKS: phrases.THANKS,
    Kind.TOO_LONG: phrases.TOO_LONG,
    Kind.UNKNOWN: phrases.UNKNOWN,
    Kind.FORGET_ALL: phrases.FORGET_ALL,
}
RULES: dict[Kind, Callable[[Dialogue, Intent], Blocks]] = {
    Kind.CONVERSATION_LIST: talks.conversation_list,
    Kind.CONVERSATION_SEARCH: talks.conversation_search,
    Kind.CONVERSATION_DELETE: talks.conversation_delete,
    Kind.NOTE_LIST: notes.note_list,
    Kind.REMEMBER: notes.remember,
    Kind.FACT: notes.remember,
    Kind.FORGET_LAST: notes.forget_last,
    Kind.FORGET: notes.forget,
    Kind.CHANGE: notes.change,
    Kind.CORRECT: notes.correct,
    Kind.LOOK_UP: notes.look_up,
    Kind.DEEP: notes.deep,
    Kind.QUESTION: notes.question,
    Kind.FILE: talks.file_work,
    Kind.CAPABILITY_LIST: capabilities.capability_list,
    Kind.CAPABILITY_RUN: capabilities.capability_run,
}


WORD_SECONDS = 0.012
"""Pause before each piece of a streamed answer, so that the page shows that something is being written."""
STREAM_SECONDS = 3.0
"""So long are all pauses of an answer together at most: nobody waits for a machine that pretends to think."""

JSON_PIECE_CHARS = 40
DELTA = "content_block_delta"


class OfflineTransport(httpx2.AsyncBaseTransport):
    """Speaks the Messages API, streaming and not, without a network."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "POST" or request.url.path != "/v1/messages":
            error = {"type": "not_found_error", "message": "Offline mode answers only /v1/messages."}
            return httpx2.Response(404, json={"type": "error", "error": error})
        wanted = json.loads(await request.aread())
        blocks = respond(wanted)
        calls = any(block["type"] == "tool_use" for block in blocks)
        message = {
            "id": f"msg_offline_{uuid4().hex}",
            "type": "message",
            "role": "assistant",
            "model": ModelCall.Endpoint.OFFLINE,
            "content": blocks,
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},  # no model reads or writes anything
        }
        if not wanted.get("stream"):
            return httpx2.Response(200, json=message)
        return httpx2.Response(
            200, headers={"content-type": "text/event-stream"}, stream=_Stream(message)
        )


@dataclass
class _Stream(httpx2.AsyncByteStream):
    message: dict[str, Any]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        events = list(_events(self.message))
        pieces = sum(event["type"] == DELTA for event in events)
        pause = min(WORD_SECONDS, STREAM_SECONDS / max(1, pieces))
        for event in events:
            if event["type"] == DELTA:
                await asyncio.sleep(pause)
            yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def _events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    head = message | {"content": [], "stop_reason": None}
    yield {"type": "message_start", "message": head}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            start = block | {"text": ""}
            words = re.findall(r"\s*\S+\s?|\s+", block["text"])
            pieces = [{"type": "text_delta", "text": word} for word in words]
        else:
            start, source = block | {"input": {}}, json.dumps(block["input"])
            cuts = (source[at : at + JSON_PIECE_CHARS] for at in range(0, len(source), JSON_PIECE_CHARS))
            pieces = [{"type": "input_json_delta", "partial_json": cut} for cut in cuts]
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for piece in pieces:
            yield {"type": DELTA, "index": index, "delta": piece}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": message["usage"]}
    yield {"type": "message_stop"}
