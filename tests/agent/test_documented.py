"""The documentation names every event and every code that a turn can end with."""

import re
from dataclasses import fields
from pathlib import Path
from typing import ClassVar

import pytest
from django.conf import settings

from apps.agent.model import failures
from apps.agent.turn import loop
from apps.agent.turn.events import EVENT_TYPES, Event, Response, TextDelta

DOCUMENT = Path(settings.BASE_DIR, "docs", "turns.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("event", EVENT_TYPES.values())
def test_every_event_is_documented_with_its_fields(event: type[Event]) -> None:
    rows = re.findall(rf"^\| `{event.type}` \| (.*?) \|", DOCUMENT, re.MULTILINE)
    assert len(rows) == 1, f"give {event.type} one row in the table of docs/turns.md#events"
    own = [item.name for item in fields(event)]
    assert re.findall(r"`(\w+)`", rows[0])[: len(own)] == own, (
        "name its fields in their order; what chat adds comes after"
    )


def test_an_event_is_known_by_its_class_alone() -> None:
    class Toy(Event):
        type: ClassVar[str] = "toy"
        name: str

    try:
        assert EVENT_TYPES["toy"] is Toy
        assert Toy("bear").fields() == {"name": "bear"}
        with pytest.raises(TypeError, match="toy already: Toy"):
            type("Another", (Event,), {"type": "toy"})
        assert EVENT_TYPES["toy"] is Toy
    finally:
        del EVENT_TYPES["toy"]


def test_every_code_that_ends_a_turn_is_documented() -> None:
    sources = [Path(failures.__file__), Path(loop.__file__)]
    codes = {
        code for file in sources for code in re.findall(r'ModelError\(\s*"(\w+)"', file.read_text())
    }
    codes |= {
        code for code, _ in [*failures.KNOWN.values(), failures.SERVER_ERROR, failures.REFUSED_REQUEST]
    }
    assert len(codes) > 12
    assert [code for code in sorted(codes) if f"`{code}`" not in DOCUMENT] == []


def test_an_event_gives_its_fields() -> None:
    assert TextDelta("Hi").fields() == {"text": "Hi"}
    assert sorted(Response("Hi").fields()) == [
        "build_id",
        "notice",
        "pending_approval",
        "pending_question",
        "text",
        "tool_calls",
        "usage",
    ]
