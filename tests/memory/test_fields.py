"""The fields of a note and their limits."""

from datetime import UTC, datetime
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core.errors import InvalidInput, IzzyError, TooLarge
from apps.core.http.shapes import clean_time
from apps.memory.notes.fields import MAX_CONTENT_CHARS, MAX_TAGS, clean_changes


def test_it_strips_the_content() -> None:
    assert clean_changes({"content": "  tea \n"}) == {"content": "tea"}


@pytest.mark.parametrize(
    ("code", "content"),
    [
        *product(["empty_text"], ["", "   ", "\n\t"]),
        *product(["wrong_type"], [None, 5, True, ["tea"], {"text": "tea"}, b"tea"]),
        *product(["invalid_text"], ["a\x00b", "\ud800", "fine \udfff not"]),
    ],
)
def test_it_refuses_content_that_is_empty_no_text_or_not_to_be_stored(
    code: str, content: object
) -> None:
    with pytest.raises(InvalidInput) as refused:
        clean_changes({"content": content})
    assert refused.value.code == code
    assert refused.value.extra["field"] == "content"


def test_it_says_by_how_much_a_text_is_too_long() -> None:
    with pytest.raises(TooLarge) as refused:
        clean_changes({"content": "x" * (MAX_CONTENT_CHARS + 1)})
    assert refused.value.extra == {
        "field": "content",
        "limit": MAX_CONTENT_CHARS,
        "length": MAX_CONTENT_CHARS + 1,
    }


def test_a_text_of_the_greatest_length_is_fine() -> None:
    assert len(clean_changes({"content": "x" * MAX_CONTENT_CHARS})["content"]) == MAX_CONTENT_CHARS


@pytest.mark.parametrize("importance", [0, 6, -1, 2.5, "3", None, True])
def test_importance_is_a_whole_number_from_1_to_5(importance: object) -> None:
    with pytest.raises(InvalidInput):
        clean_changes({"importance": importance})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *product(
            ["priority", "decay_rate"], [-0.1, 1.1, float("nan"), float("inf"), "0.5", None, False]
        ),
        *product(["tier"], ["medium", 3]),
        *product(["kind"], ["rumour", []]),
        *product(["status"], ["deleted", "superseded"]),
    ],
)
def test_it_refuses_values_outside_their_range_or_choices(field: str, value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        clean_changes({field: value})
    assert refused.value.extra["field"] == field


def test_tags_are_kept_in_order_once_each_whatever_their_case() -> None:
    tags = ["Food", " health ", "food", "New  York", "HEALTH"]
    assert clean_changes({"tags": tags}) == {"tags": ["Food", "health", "New York"]}


def test_a_letter_with_an_accent_is_one_letter_however_it_is_put_together() -> None:
    tags = ["café", "cafe\u0301", "CAFÉ"]
    assert clean_changes({"tags": tags, "category": "Cafe\u0301"}) == {
        "tags": ["café"],
        "category": "Café",
    }


@pytest.mark.parametrize(
    "tags", ["food", {"food": 1}, [1], [""], ["x" * 51], ["ok", None], ["t"] * (MAX_TAGS + 1)]
)
def test_it_refuses_tags_that_are_no_short_list_of_short_texts(tags: object) -> None:
    with pytest.raises(IzzyError) as refused:
        clean_changes({"tags": tags})
    assert refused.value.extra["field"] == "tags"
    assert 400 <= refused.value.status < 500


def test_no_category_is_the_empty_text() -> None:
    assert clean_changes({"category": None}) == {"category": ""}


def test_it_refuses_fields_a_note_does_not_have() -> None:
    with pytest.raises(InvalidInput) as refused:
        clean_changes({"colour": "red"})
    assert refused.value.code == "unknown_field"
    assert refused.value.extra["field"] == "colour"


def test_a_note_cannot_end_before_it_begins() -> None:
    with pytest.raises(InvalidInput):
        clean_changes({"valid_from": "2026-05-02", "valid_to": "2026-05-01"})


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-05-01", datetime(2026, 5, 1, tzinfo=UTC)),
        ("2026-05-01T10:00:00", datetime(2026, 5, 1, 10, tzinfo=UTC)),
        ("2026-05-01T10:00:00Z", datetime(2026, 5, 1, 10, tzinfo=UTC)),
        ("2026-05-01T10:00:00+02:00", datetime(2026, 5, 1, 8, tzinfo=UTC)),
    ],
)
def test_a_time_without_zone_is_utc(text: str, moment: datetime) -> None:
    assert clean_time(text, field="as_of") == moment


@pytest.mark.parametrize(
    "value", ["yesterday", "2026-13-01", "2026-05-01T25:00", "", 5, None, [], "9" * 100]
)
def test_it_refuses_what_is_no_time(value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        clean_time(value, field="as_of")
    assert refused.value.extra["field"] == "as_of"


def test_a_time_beyond_the_calendar_is_refused() -> None:
    with pytest.raises(InvalidInput):
        clean_time("0001-01-01T00:00:00+14:00", field="as_of")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_NAMES = [
    "content",
    "tier",
    "kind",
    "importance",
    "tags",
    "category",
    "status",
    "valid_from",
    "valid_to",
    "priority",
]


@given(st.dictionaries(st.sampled_from([*_NAMES, "decay_rate", "other"]), _JSON, max_size=5))
def test_whatever_comes_in_is_cleaned_or_refused_with_the_field_named(
    changes: dict[str, object],
) -> None:
    refused, cleaned = None, None
    try:
        cleaned = clean_changes(changes)
    except IzzyError as error:
        refused = error
    if refused:
        assert refused.extra["field"]
        assert 400 <= refused.status < 500
    else:
        assert cleaned is not None
        assert clean_changes(cleaned) == cleaned
