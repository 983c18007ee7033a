"""Sentences that quote what may run from right to left."""

import pytest

from apps.core.templatetags.directions import isolated


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Moved “שלום” to “Work”.", "Moved “<bdi>שלום</bdi>” to “<bdi>Work</bdi>”."),
        ("Deleted “<b>”.", "Deleted “<bdi>&lt;b&gt;</bdi>”."),
        ("It's “open", "It&#x27;s “open"),
        ("", ""),
    ],
)
def test_quoted_words_stand_in_a_direction_of_their_own(said: str, shown: str) -> None:
    assert isolated(said) == shown
