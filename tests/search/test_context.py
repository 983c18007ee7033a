"""The context block: within its budget, readable, and honest about what it carries."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.accounts.models import User
from apps.core.ids import uuid7
from apps.core.text import estimate_tokens
from apps.search.documents import Hit, Source
from apps.search.packing import pack, shorten
from apps.search.selectors import context

from .conftest import DAY, save, say

LONG = (
    "We talked about the weather for a while and it was nice. The garden shed needs a new roof before winter comes. "
    "Then the neighbours came by with cake and stayed until late in the evening. In the end nobody did anything."
)


def hit(text: str, *, days: int = 0, speaker: str = "", source: Source = Source.MEMORY) -> Hit:
    return Hit(
        source=source,
        source_id=uuid7(),
        external_id="",
        passage_id=1,
        text=text,
        score=0.5,
        conversation_id=None,
        happened_at=DAY + timedelta(days=days),
        speaker=speaker,
    )


def test_the_block_holds_the_best_hits_with_day_and_speaker(alice: User) -> None:
    say(alice, ("Ann", "I washed the car"), ("Ben", "I sold the car"))
    save(alice, "The car was red")
    packed = context(alice.pk, "car")
    talk = "2026-03-01\nAnn: I washed the car\nBen: I sold the car"
    notes = "2026-03-01 memory\n- The car was red"
    assert packed.text in {f"{talk}\n{notes}", f"{notes}\n{talk}"}
    assert {item.text for item in packed.items} == {
        "I washed the car",
        "I sold the car",
        "The car was red",
    }
    assert packed.tokens == estimate_tokens(packed.text)


def test_days_come_in_their_order_and_items_in_that_of_relevance() -> None:
    best, second = hit("later and best", days=5), hit("earlier")
    packed = pack("x", [best, second], 100)
    assert packed.text.index("earlier") < packed.text.index("later and best")
    assert packed.items == [best, second]


def test_of_a_long_message_the_telling_sentence_is_kept() -> None:
    shown = shorten(LONG, frozenset({"roof", "shed"}), 14)
    assert "The garden shed needs a new roof before winter comes." in shown
    assert "cake" not in shown
    assert shown.startswith("[…] ")
    assert shown.endswith(" […]")


def test_what_is_left_out_leaves_one_mark() -> None:
    shown = shorten(LONG, frozenset({"weather", "nice"}), 14)
    assert shown == "We talked about the weather for a while and it was nice. […]"


def test_an_endless_sentence_is_cut_around_the_words_that_matter() -> None:
    text = " ".join(
        [*("before",) * 300, "the shed", *("between",) * 3, "needs a roof", *("behind",) * 300]
    )
    shown = shorten(text, frozenset({"roof", "shed"}), 20)
    assert "the shed between between between needs a roof" in shown
    assert shown.startswith("[…] before")
    assert shown.endswith("behind […]")
    assert 20 <= estimate_tokens(shown) <= 50


def test_a_short_text_is_kept_whole() -> None:
    assert shorten("Just this.", frozenset(), 20) == "Just this."


def test_one_endless_sentence_is_cut() -> None:
    shown = shorten("word " * 3000, frozenset(), 20)
    assert estimate_tokens(shown) <= 45
    assert shown.startswith("word")
    assert shown.endswith("[…]")


def test_what_does_not_fit_makes_room_for_what_does() -> None:
    packed = pack("x", [hit(LONG), hit("tiny")], 14)
    assert [item.text for item in packed.items] == ["tiny"]


def test_line_breaks_in_a_note_do_not_break_the_block() -> None:
    assert pack("x", [hit("one\n\ntwo\r\nthree")], 100).text.splitlines()[1] == "- one two three"


def test_nothing_found_is_an_empty_block(alice: User) -> None:
    packed = context(alice.pk, "car")
    assert (packed.text, packed.tokens, packed.items) == ("", 0, [])


@pytest.mark.parametrize("budget", [20, 100, 500, 2000])
def test_a_block_never_exceeds_its_budget(alice: User, budget: int) -> None:
    say(alice, *(("Ann", f"{LONG} It was evening number {number}.") for number in range(60)))
    packed = context(alice.pk, "What about the roof of the garden shed?", budget_tokens=budget)
    assert packed.tokens <= budget
    assert budget < 100 or packed.tokens > budget * 0.6


@settings(max_examples=100, deadline=None)
@given(
    texts=st.lists(
        st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=300),
        max_size=12,
    ),
    budget=st.integers(0, 400),
    question=st.text(max_size=40),
)
def test_whatever_is_packed_fits_and_names_what_it_holds(
    texts: list[str], budget: int, question: str
) -> None:
    hits = [hit(text, days=number) for number, text in enumerate(texts)]
    packed = pack(question, hits, budget)
    assert packed.tokens <= budget
    assert packed.text.count("\n- ") == len(packed.items)
    assert all(item in hits for item in packed.items)
