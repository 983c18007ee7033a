"""The parser of every REST view refuses bad JSON."""

import json

import pytest

from apps.core.errors import InvalidInput
from apps.core.http.drf import parse_json


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"nonsense",
        b'{"a": NaN}',
        b"[Infinity]",
        b"\xff\xfe",
        b'{"a": "\xc3\x28"}',
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'"\xed\xa0\x80"',
        b"{'a': 1}",
        b"\xef\xbb\xbf{}",
    ],
)
def test_malformed_json_is_told_as_such(body: bytes) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_json(body)
    assert caught.value.code == "malformed_json"


@pytest.mark.parametrize(
    "body",
    [rb'{"a": "\ud800"}', rb'["\uDFFF"]', rb'{"\ud800": 1}', rb'"a\u0000b"', rb'{"a": [{"\u0000": 1}]}'],
)
def test_what_cannot_be_stored_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_json(body)
    assert caught.value.code == "invalid_text"


@pytest.mark.parametrize("value", [None, 1, "ü 🎉", [], {"a": [1, 2.5, {"b": True}]}])
def test_proper_json_comes_through(value: object) -> None:
    assert parse_json(json.dumps(value).encode()) == value
    assert parse_json(json.dumps(value, ensure_ascii=False).encode()) == value


def test_a_surrogate_pair_is_one_character() -> None:
    assert parse_json(rb'"\ud83c\udf89"') == "🎉"
