"""Occasions by rule: notes are known by the table of kinds, and get the phrases of their kinds."""

import re
from collections import Counter
from pathlib import Path

import pytest

from apps.memory.occasions.phrases import MAX_OCCASION_CHARS, MAX_OCCASIONS
from apps.memory.occasions.table import (
    FOLDER,
    KnownWords,
    kinds_of,
    occasions_by_rule,
    table_of,
)

LANGUAGES = ("de", "en", "es", "fr")
MAX_LINES = 150
LABELLED = [
    line.split(" | ", 2)
    for line in Path(__file__).with_name("kinds.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


def kinds(
    text: str, *, tags: tuple[str, ...] = (), kind: str = "fact", language: str = "en"
) -> list[str]:
    table = table_of(language)
    assert table is not None
    return kinds_of(KnownWords(text, tags, kind, language, table), table)


@pytest.mark.parametrize("language", LANGUAGES)
def test_labelled_notes_are_known(language: str) -> None:
    count: Counter[str] = Counter()
    for _, fitting, text in (each for each in LABELLED if each[0] == language):
        wanted, *others = fitting.split(", ")
        found = kinds(text, language=language)
        count["all"] += 1
        count["right"] += wanted in found or (wanted == "-" and not found)
        count["wrong"] += bool(found) and not {wanted, *others}.intersection(found)
    assert count["right"] >= 0.85 * count["all"]
    assert count["wrong"] <= 0.05 * count["all"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_table_is_small_and_whole(language: str) -> None:
    table = table_of(language)
    assert table is not None
    source = (FOLDER / f"{language}.toml").read_text(encoding="utf-8")
    assert len(source.splitlines()) <= MAX_LINES
    lists = {name for each in table.members.values() for name, _ in each}
    for cue in (cue for each in table.cues.values() for cue in each):
        assert cue.runs, cue
        assert all(cue.runs), cue
        assert all(token[1:] in lists for run in cue.runs for token in run if token[0] == "@"), cue
    for name, phrases in table.occasions.items():
        assert 1 <= len(phrases) <= MAX_OCCASIONS, name
        for phrase in phrases:
            assert len(phrase) <= MAX_OCCASION_CHARS, phrase
            assert set(re.findall(r"{(.*?)}", phrase)) <= lists, phrase


def test_every_language_has_a_table_of_its_own() -> None:
    assert sorted(file.stem for file in FOLDER.glob("*.toml")) == list(LANGUAGES)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "…",
        "The capital of Australia is Canberra.",
        "The Battle of Hastings was in 1066.",
        "Yes, 42.",
    ],
)
def test_what_is_of_no_kind_has_no_occasions(text: str) -> None:
    assert occasions_by_rule(text, [], "fact", "en") == []


def test_a_language_without_a_table_has_no_occasions() -> None:
    assert occasions_by_rule("The user is allergic to peanuts.", [], "fact", "fi") == []
    assert occasions_by_rule("The user is allergic to peanuts.", [], "fact", "../kinds/en") == []


def test_a_note_of_two_kinds_has_phrases_of_both_in_turn() -> None:
    text = "The user's sister is a vegetarian."
    assert set(kinds(text)) == {"siblings", "diet"}
    found = occasions_by_rule(text, [], "fact", "en")
    assert len(found) == len(set(found)) == MAX_OCCASIONS
    table = table_of("en")
    assert table is not None
    assert {phrase in table.occasions["diet"] for phrase in found[:2]} == {True, False}


def test_two_hints_tell_what_one_does_not() -> None:
    assert kinds("The user loves breakfast.") == []
    assert "food-likes" in kinds("The user loves a long breakfast and a small lunch.")


def test_a_tag_and_the_notes_kind_tell_too() -> None:
    text = "Not before the spring."
    assert kinds(text) == []
    assert kinds(text, tags=("vegan",)) == ["diet"]
    assert kinds(text, kind="decision") == ["plans"]


def test_words_in_a_row_do_not_reach_from_one_tag_into_the_next() -> None:
    assert "friends" in kinds("Ada", tags=("best friend",))
    assert kinds("Ada", tags=("best", "friend")) == []


def test_what_rules_a_kind_out_wins() -> None:
    assert "mother" in kinds("The user's mother plants cabbages.")
    assert "mother" not in kinds("The user's mother-in-law plants cabbages.")
    assert "pets" not in kinds("The user is allergic to cats and has two at work.")


def test_an_allergy_is_known_by_what_it_is_to() -> None:
    assert kinds("Allergic to hazelnuts")[0] == "food-allergy"
    assert kinds("Allergic to aspirin")[0] == "medicine-allergy"
    assert kinds("Allergic to wasps")[0] == "sting-allergy"
    assert kinds("Allergic to dust mites")[0] == "allergy"


def test_a_word_as_it_is_is_not_known_by_its_stem() -> None:
    assert "reading" in kinds("The user is reading three books at once.")
    assert "reading" not in kinds("The user is booking and rebooking a room.")


def test_parts_of_german_words_tell() -> None:
    assert kinds("Hat eine Walnussallergie.", language="de")[0] == "food-allergy"
    assert kinds("Ist laktoseintolerant.", language="de")[0] == "food-allergy"
    assert "bicycle" in kinds("Hat ein Kinderfahrrad gekauft.", language="de")


def test_accents_may_be_left_out() -> None:
    assert "food-allergy" in kinds("Allergique a la crevette et a l'arachide", language="fr")
    assert "car" in kinds("Faehrt einen Skoda", language="de")


def test_the_notes_own_word_stands_in_a_phrase() -> None:
    assert "a present for my sister" in occasions_by_rule("Her sister is Ada.", [], "fact", "en")
    assert "a present for my mother in law" in occasions_by_rule(
        "The user's mother-in-law is Ada.", [], "fact", "en"
    )


def test_a_phrase_whose_word_is_not_in_the_note_is_left_out() -> None:
    found = occasions_by_rule("The children go to nursery by bus, the babysitter too.", [], "fact", "en")
    assert found
    found = occasions_by_rule("The babysitter comes at seven.", [], "fact", "en")
    assert found
    assert not any("{" in phrase or "for my " in phrase for phrase in found)
