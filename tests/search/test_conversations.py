"""What the surroundings of a message do for its being found."""

from datetime import UTC, datetime, timedelta

from apps.accounts.models import User
from apps.search.documents import Source
from apps.search.index import cache
from apps.search.selectors import search

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
        ("user", "My favourite place for sushi is Yuki."),
    )
    assert found(alice, "Where do I like to eat sushi?")[0] == "My favourite place for sushi is Yuki."


def test_a_note_holds_its_own_when_i_ask_about_myself(alice: User) -> None:
    save(alice, "The favourite colour is green")
    say(alice, ("user", "Which colour shall I paint the wall?"), ("assistant", "White is always fine."))
    say(
        alice,
        *((speaker, f"{text} Today.") for speaker, text in SMALL_TALK),
        start=DAY + timedelta(days=1),
    )
    assert found(alice, "What is my favourite colour?")[0] == "The favourite colour is green"


def test_a_sitting_with_the_one_who_is_named_comes_before_others(alice: User) -> None:
    say(alice, ("Ben", "How was your trip?"), ("Ann", "The trip was long and the train was late."))
    say(
        alice,
        ("Cleo", "How was your trip?"),
        ("Dora", "The trip was long and the train was late."),
        name="c",
    )
    hits = search(alice.pk, "What did Cleo hear about the train trip?", top_k=2)
    assert {hit.external_id for hit in hits} == {"c0", "c1"}


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


def test_a_question_for_a_time_prefers_what_names_one(alice: User) -> None:
    say(alice, ("Ann", "The concert was wonderful and loud."), ("Ann", "The concert was last Friday."))
    assert found(alice, "When was the concert?")[0] == "The concert was last Friday."


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
