"""How a text is recognised again, whatever it is escaped in, and what is left of a value from which it is taken."""

import json
from html import escape
from urllib.parse import quote
from uuid import UUID

import pytest

from apps.core.purging.trace import MARKER, Fragments, Trace, redact

NOTE = UUID("018f0000-0000-7000-8000-000000000001")
OTHER = "018f0000-0000-7000-8000-000000000002"
FUNCTION_WORDS = {"the", "is", "in", "of", "on"}


def fragments(text: str) -> Fragments:
    return Fragments(Fragments.of(text, FUNCTION_WORDS) - {"door", "house", "code"})


def trace(text: str) -> Trace:
    own = fragments(text)
    return Trace(user_id=NOTE, source="memory", ids=frozenset([NOTE]), own=own, exclusive=own)


@pytest.mark.parametrize(
    ("text", "stored", "found"),
    [
        ("The code of the house door is 471193.", "It was 471193!", True),
        ("Write to anna.maier@example.org.", "mailto:MAIER@Example.org", True),
        ("The house door was built in 1987.", "In 1987 it rained.", False),
        ("The wolpertinger is on the house.", "a WOLPERTINGER", True),
        ("The wolpertinger is on the house.", "two wolpertingers", False),
        ("The house door is green.", "a house, a door", False),
        ("The house door is green.", "My house door is open.", True),
        ("It is in the house.", "Who is in the house?", False),
        ("House door", "the house door", True),
        ("House door", "the door of the house", False),
        ("Königskuchenförmchen", quote("das Königskuchenförmchen"), True),
        ("Königskuchenförmchen", "K&ouml;nigskuchenf&#246;rmchen", True),
        ("Königskuchenförmchen", json.dumps(json.dumps(["Königskuchenförmchen"])), True),
        ('He said "house door" & left.', escape('He said "house door" & left.'), True),
        ('He said "house door" & left.', json.dumps({"a": 'He said "house door" & left.'}), True),
        ("House\ndoor\ncode", json.dumps({"texts": ["House do", "or co", "de"]}), True),
    ],
)
def test_a_text_is_recognised_by_runs_of_words_and_by_words_of_its_own(
    text: str, stored: str, found: bool
) -> None:
    assert fragments(text).match(stored) is found


def test_what_others_have_too_is_not_its_own_but_for_codes() -> None:
    own = fragments("The wolpertinger of Anna knows 471193.")
    left = own.without(fragments("The wolpertinger of Anna left. 471193"))
    assert {each for each in left if isinstance(each, str)} == {"knows", "471193"}
    assert ("the", "wolpertinger", "of") not in left


@pytest.mark.parametrize(
    ("value", "cleaned"),
    [
        ("Hello. The wolpertinger sleeps. Good night.", f"Hello. {MARKER} Good night."),
        (["a wolpertinger", 3, None], [MARKER, 3, None]),
        ('{"b":["a wolpertinger"],"a":1}', f'{{"a":1,"b":["{MARKER}"]}}'),
        ('{"b": "untouched",  "a": 1}', '{"b": "untouched",  "a": 1}'),
        (f"- [note-{NOTE}, 2026] In other words.\n- [note-{OTHER}] Bread.", f"{MARKER}\n- [note-{OTHER}] Bread."),
        (
            {"note_id": str(NOTE), "text": "In other words", "tags": ["x"], "score": 1},
            {"note_id": str(NOTE), "text": MARKER, "tags": [MARKER], "score": 1},
        ),
        ({"note_id": OTHER, "text": "In other words"}, {"note_id": OTHER, "text": "In other words"}),
        ({"name": "cap_wolpertinger"}, {"name": "cap_wolpertinger"}),
        ("house\ndoor\ncode", MARKER),
    ],
)  # fmt: skip
def test_what_is_taken_out_of_a_value_leaves_its_shape(value: object, cleaned: object) -> None:
    both = trace("The wolpertinger.")
    own = Fragments(both.own | fragments("house door code"))
    assert (
        redact(value, Trace(user_id=NOTE, source="memory", ids=both.ids, own=own, exclusive=own))
        == cleaned
    )
