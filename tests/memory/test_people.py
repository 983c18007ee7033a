"""The labelled people: enough of them, labels that name notes, and kinds of messages that are what the rules say."""

from collections import Counter
from datetime import timedelta

import pytest

from apps.memory.occasions.phrases import MAX_OCCASIONS
from apps.search.proactive.concern import example_messages
from benchmarks._people import (
    ASKED,
    KINDS,
    TUNED,
    UNFITTED,
    Person,
    Said,
    content_stems,
    kind_of,
    people,
)

SETS = {name: people(name) for name in (*TUNED, *ASKED)}
ENGLISH_ALONE = (*UNFITTED, "thirteenth")
EVERYBODY = [person for those in SETS.values() for person in those]


@pytest.mark.parametrize("name", SETS)
def test_a_set_has_five_people_or_more_in_english_with_notes_of_three_years_and_people_in_other_languages(
    name: str,
) -> None:
    english = [person for person in SETS[name] if person.language == "en"]
    assert len(english) >= 5
    others = {person.language for person in SETS[name][len(english) :]}
    assert others == (set() if name in ENGLISH_ALONE else {"de", "es", "fr"})
    notes = [note for person in english for note in person.notes]
    assert len(notes) >= 60
    first, last = min(note.written for note in notes), max(note.written for note in notes)
    assert last - first > timedelta(days=900)
    assert sum(len(person.messages) for person in english) >= 100


def test_what_the_people_say_teaches_concern_but_for_the_sets_that_are_asked_once() -> None:
    """`benchmark weights` leaves a person out by these texts."""
    taught = {text.casefold(): own for text, own in zip(*example_messages(), strict=True)}
    for name, those in SETS.items():
        said = [said for person in those for said in person.messages if said.kind != "follow-up"]
        known = [one for one in said if taught.get(one.talk[-1].casefold()) is (one.kind != "idle")]
        few = [one for one in known if len(one.talk[-1]) > 12]
        assert known == said if name in TUNED else len(few) <= len(said) / 50


@pytest.mark.parametrize("person", EVERYBODY, ids=lambda person: person.key)
def test_labels_name_notes_and_idle_messages_want_none(person: Person) -> None:
    keys = {note.key for note in person.notes}
    assert len(keys) == len(person.notes)
    for said in person.messages:
        assert said.wanted | said.fitting <= keys
        assert said.kind in KINDS
        assert bool(said.wanted) == (said.kind != "idle")
        assert len(said.talk) % 2 == 1
    for note in person.notes:
        assert 1 <= len(note.occasions) <= MAX_OCCASIONS
        assert all(len(phrase) <= 60 for phrase in note.occasions)


@pytest.mark.parametrize("person", EVERYBODY, ids=lambda person: person.key)
def test_a_message_counts_as_what_its_words_make_it(person: Person) -> None:
    notes = {note.key: note for note in person.notes}
    for said in person.messages:
        kind = kind_of(said, person)
        if person.language != "en" or kind not in ("paraphrased", "oblique"):
            continue
        told = content_stems([said.talk[-1]], "en")
        wanted = [notes[key] for key in said.wanted]
        assert not told & content_stems((note.text for note in wanted), "en")
        if kind == "oblique":
            around = [text for note in wanted for text in (*note.tags, *note.occasions)]
            assert not told & content_stems(around, "en")


def test_a_message_that_shares_a_word_with_an_occasion_is_not_oblique() -> None:
    person = next(person for person in EVERYBODY if person.language == "en")
    note, phrase = next(
        (note, phrase)
        for note in person.notes
        for phrase in note.occasions
        if not content_stems([phrase], "en") & content_stems([note.text], "en")
    )
    near = Said("oblique", (phrase,), frozenset({note.key}), frozenset())
    same = Said("oblique", (note.text,), frozenset({note.key}), frozenset())
    assert (kind_of(near, person), kind_of(same, person)) == ("paraphrased", "direct")
    assert Counter(said.kind for said in person.messages)["idle"] >= 8
