"""The surroundings of a message help to find it."""

from datetime import UTC, datetime, timedelta

import pytest

from apps.accounts.models import User
from apps.search.documents import Source
from apps.search.index import cache
from apps.search.index.neighbours import OFFSETS, Neighbours
from apps.search.models import Passage
from apps.search.selectors import search
from apps.search.services import documents_remove

from .conftest import DAY, found, save, say

HOLIDAY = (
    ("Ben", "Did you decide about the summer holiday?"),
    ("Ann", "Yes, finally!"),
    ("Ben", "Which place is it going to be?"),
    ("Ann", "Lisbon, for two weeks, in a flat near the river."),
)
SMALL_TALK = (
    ("Ann", "Good morning."),
    ("Ben", "Good morning, how are you?"),
    ("Ann", "Fine, the coffee helps."),
    ("Ben", "I have a meeting about the budget at ten."),
    ("Ann", "Good luck with that."),
)


def test_an_answer_is_found_by_the_question_before_it(alice: User) -> None:
    say(alice, *HOLIDAY)
    say(alice, *SMALL_TALK, start=DAY + timedelta(days=3))
    assert "Lisbon, for two weeks, in a flat near the river." in found(
        alice, "summer holiday place", top_k=3
    )


def test_the_speaker_whom_a_question_names_comes_first(alice: User) -> None:
    say(alice, ("Ann", "I like hiking in the mountains."), ("Ben", "I like hiking by the sea."))
    assert found(alice, "What does Ben like about hiking?")[0] == "I like hiking by the sea."
    assert found(alice, "What does Ann like about hiking?")[0] == "I like hiking in the mountains."


def test_i_is_the_user_in_our_own_conversations(alice: User) -> None:
    say(
        alice,
        ("assistant", "A good place for sushi is Mio."),
        ("user", "A good place for sushi is Yuki."),
        *((("user", "assistant")[place % 2], text) for place, (_, text) in enumerate(SMALL_TALK)),
    )
    assert found(alice, "Where do I like to eat sushi?")[0] == "A good place for sushi is Yuki."


def test_a_note_holds_its_own_when_i_ask_about_myself(alice: User) -> None:
    save(alice, "The favourite colour is green")
    say(alice, ("user", "Which colour shall I paint the wall?"), ("assistant", "White is always fine."))
    say(
        alice,
        *((speaker, f"{text} Today.") for speaker, text in SMALL_TALK),
        start=DAY + timedelta(days=1),
    )
    assert found(alice, "What is my favourite colour?")[0] == "The favourite colour is green"


def test_a_note_about_a_speaker_is_found_by_the_name(alice: User) -> None:
    say(alice, ("Caroline", "Hello there."), ("Tom", "Hello Caroline."))
    save(alice, "Caroline's birthday is in June", "Tom's birthday is in March")
    assert found(alice, "When is Caroline's birthday?")[0] == "Caroline's birthday is in June"


def test_a_date_in_the_question_leads_to_what_was_said_then(alice: User) -> None:
    for month in (1, 5, 9):
        say(
            alice,
            ("Ann", f"We had dinner together, course number {month}."),
            start=datetime(2025, month, 12, 19, tzinfo=UTC),
        )
    assert found(alice, "Where did we have dinner in May 2025?")[0].endswith("number 5.")
    assert found(alice, "dinner on 12 September")[0].endswith("number 9.")
    assert found(alice, "dinner 2025-01-12")[0].endswith("number 1.")


def neighbours(user: User) -> Neighbours:
    with cache.index_open(user.pk) as opened:
        assert opened is not None
        return opened[1].neighbours


def test_an_answer_comes_in_a_burst_of_another_speaker(alice: User) -> None:
    say(
        alice,
        ("Ben", "Which place is it going to be?"),
        ("Ben", "Tell me everything."),
        ("Ann", "Well."),
        ("Ann", "Lisbon."),
        ("Ben", "Great!"),
    )
    around = neighbours(alice)
    found = zip(around.replies.tolist(), around.asked.tolist(), around.shares.tolist(), strict=True)
    assert [(reply, asked, round(share, 2)) for reply, asked, share in sorted(found)] == [
        (2, 0, 1.0),
        (3, 0, 0.8),
    ]


def test_without_names_the_next_message_alone_answers(alice: User) -> None:
    say(alice, ("", "Which place is it going to be?"), ("", "Lisbon."), ("", "In May."))
    around = neighbours(alice)
    assert (around.replies.tolist(), around.asked.tolist()) == ([1], [0])


def test_a_removed_question_is_answered_by_nothing(alice: User) -> None:
    say(alice, *HOLIDAY[2:])
    assert neighbours(alice).replies.tolist() == [1]
    question = Passage.objects.get(external_id="0")
    documents_remove(user_id=alice.pk, source=Source.CONVERSATION, source_ids=[question.source_id])
    assert neighbours(alice).replies.size == 0


def test_user_and_assistant_are_no_names_to_be_misspelt(alice: User) -> None:
    say(alice, ("user", "I bought a kettle."), ("assistant", "Lovely."))
    assert all("name" not in hit.parts for hit in search(alice.pk, "Which kettle did the usr buy?"))


def test_neighbours_count_by_how_much_was_said_in_between(alice: User) -> None:
    words = [
        "anchor",
        "bridge",
        "castle",
        "dolphin",
        "ember",
        "forest",
        "garden",
        "harbour",
        "island",
        "jungle",
        "kettle",
        "lantern",
    ]
    say(alice, *(("Ann", " ".join(words[start : start + 4])) for start in (0, 4, 8)), ("Ben", "zebra"))
    say(alice, ("Ann", " ".join(words)), ("Ben", "zebra"), name="whole")
    around = neighbours(alice)
    parts = [around.weights[OFFSETS.index(-distance), 3] for distance in (1, 2, 3)]
    assert parts == sorted(parts, reverse=True)
    # What Ben's neighbours count in stems is about the same, in however many messages it was said.
    assert around.spread_length[3] == pytest.approx(around.spread_length[5], rel=0.02)


@pytest.mark.parametrize(
    "name", ["Caoline", "Carolien", "Carolina", "Caroine", "carolines", "Carolline"]
)
def test_the_misspelt_name_of_a_speaker_is_understood(alice: User, name: str) -> None:
    say(
        alice,
        ("Tom", "I like hiking by the sea."),
        ("Caroline", "I like hiking in the mountains."),
        *((("Tom", "Caroline")[place % 2], text) for place, (_, text) in enumerate(SMALL_TALK)),
    )
    parts = [hit.parts for hit in search(alice.pk, "What does Caroline like about hiking?")]
    assert parts[0]["name"] > 0
    assert [hit.parts for hit in search(alice.pk, f"What does {name} like about hiking?")] == parts


def test_a_word_that_is_near_two_names_stands_for_none(alice: User) -> None:
    say(alice, ("Dana", "I like hiking by the sea."), ("Dina", "I like hiking in the woods."))
    (hit, other) = search(alice.pk, "What does Dna like about hiking?", top_k=2)
    assert "name" not in hit.parts | other.parts


def test_a_long_silence_ends_a_sitting(alice: User) -> None:
    conversation = say(alice, ("Ann", "Which colour shall the kitchen get?"))
    later = DAY + timedelta(days=10)
    save(
        alice,
        "Green.",
        source=Source.CONVERSATION,
        conversation_id=conversation,
        position=1,
        speaker="Ben",
        happened_at=later,
    )
    with cache.index_open(alice.pk) as opened:
        assert opened is not None
        assert (opened[1].neighbours.table[:, :2] == -1).all()
        assert not opened[1].neighbours.replies.size


def test_a_message_added_later_supports_the_one_before(alice: User) -> None:
    conversation = say(alice, ("Ben", "Which colour shall the kitchen get?"))
    search(alice.pk, "kitchen")
    save(
        alice,
        "Green, I think.",
        source=Source.CONVERSATION,
        conversation_id=conversation,
        position=1,
        speaker="Ann",
        happened_at=DAY + timedelta(minutes=1),
    )
    say(alice, *SMALL_TALK, start=DAY + timedelta(days=2))
    assert "Green, I think." in found(alice, "colour of the kitchen", top_k=2)
