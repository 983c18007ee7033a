"""The stored stream of turns without what is purged: the same events with the same numbers."""

import json
from typing import Any

from apps.agent.canonical import canonical_json
from apps.chat.log import TEXT
from apps.chat.models import Message, Role, TurnEvent
from apps.core.purging.places import Hits
from apps.core.purging.trace import MARKER, Trace, found_in, redact_value

_SAID = frozenset({TEXT, "response"})
"""These repeat an answer's words; they go when its message is redacted."""


def events_clear(trace: Trace, hits: Hits) -> int:
    """Surfaced notes leave their list, tool calls and titles lose the words; an answer's own words stay."""
    changed = 0
    rows = TurnEvent.objects.filter(
        conversation__user_id=trace.user_id, pk__in=hits.get("chat.turnevent.payload", ())
    )
    for row in rows.exclude(type=TEXT).select_for_update():
        payload = _without(row.type, json.loads(row.payload), trace)
        if (text := canonical_json(payload)) != row.payload:
            row.payload = text
            row.save(update_fields=["payload"])
            changed += 1
    return changed


def _without(kind: str, payload: dict[str, Any], trace: Trace) -> Any:
    if kind == "memory_context":
        items = [item for item in payload["items"] if not trace.names_row(canonical_json(item))]
        payload = {**payload, "items": items}
    if "title" in payload and found_in(trace.own, str(payload["title"])):
        payload = {**payload, "title": ""}
    said = {"text": payload["text"]} if kind in _SAID else {}
    return {**redact_value(payload, trace), **said}


def said_events_clear(message: Message) -> None:
    """The deltas and the final event of a redacted answer: as many as before, without its words."""
    if message.turn_id is None or message.role != Role.ASSISTANT:
        return
    earlier = Message.objects.for_user(message.user_id).filter(
        turn_id=message.turn_id, role=Role.ASSISTANT, round__lt=message.round
    )
    start = max(earlier.values_list("seq", flat=True), default=0)
    events = TurnEvent.objects.filter(turn_id=message.turn_id, last_seq__gt=start)
    for row in events.filter(type__in=_SAID).select_for_update():
        payload = json.loads(row.payload)
        if row.type == TEXT and (message.seq == 0 or row.seq <= message.seq):
            payload["texts"] = [MARKER, *("" for _ in payload["texts"][1:])]
        elif row.type == "response":
            payload["text"] = MARKER
        row.payload = canonical_json(payload)
        row.save(update_fields=["payload"])
