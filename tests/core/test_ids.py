import time
from uuid import UUID, uuid4

import pytest

from apps.core.errors import NotFound
from apps.core.ids import note_id, parse_id, uuid7


def test_ids_are_version_7_and_carry_the_time() -> None:
    before = time.time_ns() // 1_000_000
    value = uuid7()
    after = time.time_ns() // 1_000_000
    assert (value.version, value.variant) == (7, "specified in RFC 4122")
    assert before <= value.int >> 80 <= after + 1


def test_ids_of_one_process_grow_and_differ() -> None:
    values = [uuid7() for _ in range(20_000)]
    assert values == sorted(values)
    assert len(set(values)) == len(values)


def test_every_written_form_is_read() -> None:
    value = uuid4()
    for form in (value, str(value), note_id(value), f" {value} ", value.hex, str(value).upper()):
        assert parse_id(form) == value


@pytest.mark.parametrize(
    "value", ["", "note-", "nonsense", "1", 1, None, [], b"x", "\x00", "\ud800", "9" * 10_000, "../x"]
)
def test_whatever_else_is_not_found(value: object) -> None:
    with pytest.raises(NotFound):
        parse_id(value)


def test_a_note_id_shows_what_it_is() -> None:
    assert note_id(UUID(int=7)) == "note-00000000-0000-0000-0000-000000000007"
