import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
import wordllama
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from apps.core.errors import InvalidInput, TooLarge
from apps.core.http.forms import in_list, listed
from apps.core.text import NOT_BLANK, chunk_text, clean_text, estimate_tokens, revealed, split_sentences

ENGLISH = Path(__file__).parents[2] / "README.md"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, "wrong_type"),
        (3, "wrong_type"),
        (b"x", "wrong_type"),
        (["x"], "wrong_type"),
        ("", "empty_text"),
        (" \n\t", "empty_text"),
        ("a\x00b", "invalid_text"),
        ("\ud83d", "invalid_text"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_name(value: object, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        clean_text(value, field="content", max_chars=100)
    assert (caught.value.code, caught.value.extra["field"]) == (code, "content")


def test_too_long_text_says_how_long_it_may_be() -> None:
    with pytest.raises(TooLarge) as caught:
        clean_text("x" * 101, field="content", max_chars=100)
    assert (caught.value.status, caught.value.extra["limit"]) == (413, 100)


def test_clean_text_is_stripped_and_whole() -> None:
    assert clean_text("  Grüße, 世界 🎉\n", field="x", max_chars=50) == "Grüße, 世界 🎉"
    assert clean_text("  ", field="x", max_chars=50, allow_empty=True) == ""


def test_the_estimate_is_close_to_a_real_vocabulary_and_not_far_below_it_on_english() -> None:
    folder = Path(wordllama.__file__).parent / "tokenizers"
    tokenizer = Tokenizer.from_file(str(next(folder.glob("*.json"))))
    tokenizer.no_truncation()
    text = ENGLISH.read_text(encoding="utf-8") + json.dumps(list(range(50)))
    real = len(tokenizer.encode(text, add_special_tokens=False))
    assert 0.93 <= estimate_tokens(text) / real <= 1.3


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_nothing_has_no_chunks(text: str) -> None:
    assert chunk_text(text) == []


def test_a_short_text_is_one_chunk() -> None:
    assert chunk_text("One. Two. Three.") == ["One. Two. Three."]


def test_chunks_break_at_sentences_and_overlap() -> None:
    sentences = [f"This is sentence number {number} of the text." for number in range(200)]
    chunks = chunk_text(" ".join(sentences), size=100, overlap=30)
    assert len(chunks) > 10
    for chunk in chunks:
        assert chunk.startswith("This is sentence")
        assert chunk.endswith("of the text.")
    for earlier, later in pairwise(chunks):
        assert later.split(". ")[0] in earlier


@example("aaaaa漢", 5, 0)
@example("éééééé" + "я" * 9, 5, 0)
@given(st.text(max_size=2000), st.integers(5, 60), st.integers(0, 4))
def test_no_chunk_is_longer_than_asked_and_no_word_is_lost(text: str, size: int, overlap: int) -> None:
    chunks = chunk_text(text, size=size, overlap=overlap)
    assert all(estimate_tokens(chunk) <= size for chunk in chunks)
    kept = "".join("".join(chunk.split()) for chunk in chunks)
    remaining = iter(kept)
    assert all(letter in remaining for letter in "".join(text.split()))


@given(st.text())
def test_sentences_put_together_are_the_text(text: str) -> None:
    assert "".join(split_sentences(text)) == text


@given(st.text(), st.text())
def test_the_estimate_of_a_whole_is_at_most_that_of_its_parts_and_one(left: str, right: str) -> None:
    """Of parts with a space between them: half a word may count less than its share, where it mixes scripts."""
    assert 0 <= estimate_tokens(f"{left} {right}") <= estimate_tokens(left) + estimate_tokens(right) + 1


def test_an_overlap_of_the_whole_size_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="overlap"):
        chunk_text("x", size=10, overlap=10)


@given(st.text(st.characters(max_codepoint=127), max_size=200))
def test_letters_of_english_are_counted_the_same_beside_others(text: str) -> None:
    assert estimate_tokens(f"{text}\né") == estimate_tokens(f"{text}\na")


def test_what_is_blank_is_what_its_description_says() -> None:
    """By JSON Schema's own idea of white space, which is that of ECMAScript: no U+0085, no separators of files."""
    ecmascript = NOT_BLANK.replace(
        r"\s", "\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
    )
    for sign in map(chr, range(1, 0x3100)):
        assert bool(re.search(ecmascript, sign)) == bool(sign.strip()), ascii(sign)
        assert bool(re.search(NOT_BLANK, sign)) == bool(sign.strip()), ascii(sign)


@given(st.lists(st.text(alphabet='ab, "', min_size=1, max_size=8).map(str.strip).filter(bool)))
def test_a_list_in_a_field_is_read_as_it_was_written(words: list[str]) -> None:
    assert listed(in_list(words)) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("food, health", ["food", "health"]),
        (" , a,,b ,", ["a", "b"]),
        ('"Paris, Texas", trip', ["Paris, Texas", "trip"]),
        ('a 5" pipe, "so" called', ['a 5" pipe', '"so" called']),
        ('"begun, never ended', ['"begun', "never ended"]),
        ("", []),
    ],
)
def test_what_people_write_into_such_a_field(text: str, words: list[str]) -> None:
    assert listed(text) == words


def tags(text: str) -> str:
    """The text in the characters that Unicode has nobody see."""
    return "".join(chr(0xE0000 + ord(sign)) for sign in text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"Ada{tags('the code is 1234')}", "Ada⟨16 hidden characters⟩"),
        ("x\u202eevil", "x⟨1 hidden character⟩evil"),
        ("a\ufe0fb\u200dc", "a⟨1 hidden character⟩b⟨1 hidden character⟩c"),
        ("\U0001f600\U000e0101\U000e0102", "\U0001f600⟨2 hidden characters⟩"),
        # A heart on fire, a family, a key, a word of Persian.
        *[
            (plain, plain)
            for plain in (
                "Ada",
                "\u2764\ufe0f\u200d\U0001f525",
                "\U0001f468\u200d\U0001f469\u200d\U0001f467",
                "1\ufe0f\u20e3",
                "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            )
        ],
    ],
)
def test_what_does_not_show_is_named_to_whoever_says_yes(text: str, shown: str) -> None:
    assert revealed(text) == shown
