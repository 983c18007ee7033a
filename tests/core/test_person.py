"""A verb as it follows "I" or "you", and as it follows "the user"."""

import pytest

from apps.core.person import second_person, third_person


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("like", "likes"),
        ("study", "studies"),
        ("play", "plays"),
        ("miss", "misses"),
        ("teach", "teaches"),
        ("go", "goes"),
        ("die", "dies"),
        ("have", "has"),
        ("don't", "doesn't"),
        ("are", "is"),
    ],
)
def test_each_form_is_made_of_the_other(mine: str, theirs: str) -> None:
    assert third_person(mine) == theirs
    assert second_person(theirs) == mine


def test_a_word_that_is_no_such_form_stays() -> None:
    assert [second_person(word) for word in ("boss", "sister", "")] == ["boss", "sister", ""]
