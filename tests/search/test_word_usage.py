"""How much a word says: by how few of its language's example messages have it."""

from pathlib import Path

import pytest

from apps.search.proactive import contextual_query as usage
from apps.search.proactive.contextual_query import WordUsage, contextual_query, usage_of, word_usage


def test_a_word_says_the_less_the_more_messages_have_it_in_whatever_form() -> None:
    messages = ["I need a pen"] * 60 + ["two pens"] * 9 + ["a carafe"]
    parts = usage_of(messages, "en")
    counted = WordUsage("en", parts["forms"], parts["times"], len(messages))
    needed, pen, carafe, unknown = counted.tells(["needing", "pens", "carafe", "wolpertinger"]).tolist()
    assert needed == pen == 0
    assert 0 < carafe < unknown == 1


@pytest.mark.parametrize(
    ("language", "common", "particular"),
    [
        ("en", "need", "rutabaga"),
        ("de", "brauchen", "schwammerl"),
        ("es", "necesito", "fabas"),
        ("fr", "peux", "cabrette"),
    ],
)
def test_the_example_messages_tell_common_words_from_those_of_a_subject(
    language: str, common: str, particular: str
) -> None:
    counted = word_usage(language)
    assert counted is not None
    says = dict(zip((common, particular), counted.tells([common, particular]).tolist(), strict=True))
    assert says[common] < 0.4
    assert says[particular] > 0.8
    query = contextual_query([f"{common} {particular}"], [language])
    assert query.content.get(common, 0.0) < 0.4
    assert query.content[particular] > 0.8


def test_a_word_that_is_common_in_one_of_a_users_languages_says_little() -> None:
    alone, both = (contextual_query(["necesito"], each).content for each in (["en"], ["en", "es"]))
    assert alone["necesito"] > 0.9
    assert both["necesito"] < 0.4


def test_without_messages_in_a_language_vectors_tell() -> None:
    assert word_usage("it") is None
    content = contextual_query(["un risotto"], ["it"]).content
    assert content["risotto"] == 1


def test_what_was_counted_is_kept_and_counted_anew_where_it_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "kept_file", lambda name: tmp_path / name)
    counted = word_usage.__wrapped__("fr")
    [kept] = tmp_path.iterdir()
    monkeypatch.setattr(usage, "usage_of", lambda *_: {})  # what is kept is read
    again = word_usage.__wrapped__("fr")
    assert counted is not None
    assert again is not None
    assert again.tells(["peux", "cabrette"]).tolist() == counted.tells(["peux", "cabrette"]).tolist()
    monkeypatch.undo()
    monkeypatch.setattr(usage, "kept_file", lambda name: tmp_path / name)
    kept.write_bytes(b"no archive")
    anew = word_usage.__wrapped__("fr")
    assert anew is not None
    assert anew.messages == counted.messages
