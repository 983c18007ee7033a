"""Notes in the same words may differ: by a date more, or by saying the contrary."""

import pytest

from apps.memory.similarity import adds_nothing, adds_to, denies_other, differs

WITH_A_DATE = [
    ("The user moved to Berlin.", "The user moved to Berlin in 2019."),
    ("The user's wedding is in Hamburg.", "The user's wedding is in Hamburg on 2027-06-12."),
    ("Dentist appointment with Dr Miller", "Dentist appointment with Dr Miller on Monday"),
    ("Lena zieht mit ihrem Freund nach Bremen", "Lena zieht im Oktober mit ihrem Freund nach Bremen"),
]


@pytest.mark.parametrize(("old", "new"), WITH_A_DATE)
def test_a_date_more_is_something_more(old: str, new: str) -> None:
    assert not adds_nothing(new, old)
    assert adds_to(new, old)
    assert adds_nothing(old, new)
    assert not adds_to(old, new)
    assert adds_nothing(new, new)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "The user no longer works as a nurse at the Charité hospital in Berlin.",
            "The user works as a nurse at the Charité hospital in Berlin.",
        ),
        (
            "Lena non mangia mai carne rossa la sera con gli amici",
            "Lena mangia carne rossa la sera con gli amici",
        ),
        (
            "L'utente non ha mai fumato sigarette dal 2010.",
            "L'utente ha fumato sigarette dal 2010.",
        ),
        ("No come nunca carne por la noche en casa", "Come carne por la noche en casa"),
    ],
)
def test_one_denies_what_the_other_affirms(one: str, other: str) -> None:
    assert denies_other(one, other)
    assert differs(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Prefers longer hikes in the Alps on weekends", "Prefers hikes in the Alps on weekends"),
        ("Lena zieht im Mai mit Anna nach Bremen", "Lena zieht im Juni mit Anna nach Bremen"),
        ("Il part en mai avec Anne pour Lyon", "Il part en juin avec Anne pour Lyon"),
        ("Never leaves the house without a hat", "Leaves the house with a hat"),
    ],
)
def test_neither_denies_the_other(one: str, other: str) -> None:
    assert not denies_other(one, other)
