"""Patterns of schemas: their Unicode meaning, what is refused, and that no text makes one run for ever."""

import re
from typing import Any

import pytest

from apps.agent.tools import patterns
from apps.agent.tools.patterns import MAX_MATCHED_CHARS, matcher, pattern_problem
from apps.agent.tools.schema import schema_error

TEXTS = ["é", "ß", "١", "a", "_", " ", "-", "été", "1٢", "a b", "naïve café", "x.y", "a\nb", "É", "\u2003", "😀", "day١2", "\x1c", "]", "^"]  # fmt: skip


@pytest.mark.parametrize(
    "pattern",
    [
        r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\bé", r"é\b", r"\bß\b", r"\B١", r"f\Bé", r"\bca\b", r"^\b", r"\b$", r"(?:\b|é)é",
        r"^\w+$", r"^[\w.-]+$", r"^[^\w.-]+$", r"[^\W\d]", r"[\W\d]", r"[\D]", r"[^\D]", r"[\S]", r"[^\S]", r"[^\s\S]", r"[\s\S]",
        r"\u00e9", r"[\u00e0-\u00ff]", r"[^\u0661]", r"\u0661", r"\x41|\xe9", r"^.$", r"a.b", r"(?s)a.b", r"(?m)^b$", r"(?i)é", r"(?i)ß",
        r"a|^b", r"[]]", r"[\]^]", r"[^]]", r"a{,2}$", r"a{x", r"x\.y", r"[\b]", r"^\S{1,64}$", r"(?P<y>é)(?:t(é))?",
    ],
)  # fmt: skip
def test_a_pattern_means_what_it_means_in_python(pattern: str) -> None:
    found = matcher(pattern)
    for text in TEXTS:
        assert found(text) == bool(re.search(pattern, text)), text


def test_an_accent_that_stands_alone_is_part_of_a_word() -> None:
    assert matcher(r"^\w+$")("e\u0301te\u0301")
    assert not matcher(r"e\b")("e\u0301")


def test_what_only_javascript_writes_is_understood() -> None:
    assert matcher(r"^\u{1F600}$")("😀")
    assert matcher(r"^\uD83D\uDE00$")("😀")
    assert matcher(r"^\p{Lu}\P{Lu}$")("Éa")
    assert matcher(r"^[^\p{Lu}]$")("é")
    assert not matcher(r"^a$")("a\n")


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?=a)b", "looks ahead or back"), ("(?<!a)b", "looks ahead or back"), (r"(a)\1", "refers back"),
        ("a{1001}", "more than 1,000 times"), ("(?:a{100}){100}", "more than 1,000 times"), ("a{2,5000}", "more than 1,000 times"),
        ("(?>a)", "not supported"), ("a*+", "not supported"), ("(?x)a", "not supported"), (r"(?:\p{L}?){500}", "too large"),
        ("(", "no regular expression"), ("a)|(b", "no regular expression"), ("[a", "no regular expression"), ("\\", "no regular expression"),
        ("*a", "no regular expression"), ("[b-a]", "no regular expression"), (r"\ud800", "does not exist"), ("\ud800", "does not exist"),
        (r"\Qa\E", "not known"), (r"\C", "not known"), ("x" * 301, "more than 300"),
    ],
)  # fmt: skip
def test_what_is_refused_is_refused_with_a_sentence(pattern: str, why: str) -> None:
    assert why in pattern_problem(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["^(?i:ab|AB)*$", "^(a+)+$", "^(?:a|a)*$", "^(?:a?){500}a{500}$", "^(?:.*a){30}$", r"^(\w+\s?)*$"],
)
def test_no_pattern_runs_for_ever(pattern: str) -> None:
    text = "a" * (MAX_MATCHED_CHARS - 1) + "!"
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": pattern}},
    }
    assert "does not match" in schema_error(schema, {"a": text})
    names: dict[str, Any] = {"type": "object", "patternProperties": {pattern: {"type": "string"}}}
    assert schema_error(names, {text: 7}) == ""
    assert "not allowed" in schema_error({**names, "additionalProperties": False}, {text: 7})
    assert schema_error({"type": "object", "propertyNames": {"pattern": pattern}}, {text: 7})


def test_names_that_a_pattern_covers_are_checked_and_are_not_additional() -> None:
    schema = {
        "type": "object",
        "properties": {"id": {}},
        "patternProperties": {r"^größe_\d+$": {"type": "integer"}},
        "additionalProperties": False,
    }
    assert schema_error(schema, {"id": "x", "größe_١": 7}) == ""
    assert schema_error(schema, {"größe_1": "x"}).startswith("`größe_1`: ")
    assert "'größe_' was unexpected" in schema_error(schema, {"größe_": 7})
    assert schema_error({**schema, "additionalProperties": {"type": "null"}}, {"other": 7}).startswith(
        "`other`"
    )


def test_keywords_that_cannot_be_bounded_are_not_passed_over_in_silence() -> None:
    schema = {"type": "object", "unevaluatedProperties": False}
    assert "unevaluatedProperties, which is not supported" in schema_error(schema, {"a": 1})


def test_half_a_character_in_the_text_is_matched_by_nothing_and_no_accident() -> None:
    assert not matcher("^a$")("a\ud800")


def test_where_there_is_no_library_patterns_are_refused_and_all_else_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patterns, "find_spec", lambda name: None)
    matcher.cache_clear()
    assert "no google-re2" in pattern_problem("^a$")
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "^a$"}},
    }
    assert "no google-re2" in schema_error(schema, {"a": "a"})
    assert schema_error({"type": "object", "properties": {"a": {"type": "string"}}}, {"a": "a"}) == ""
