"""The offline model understands sentences."""

import pytest

from apps.agent.offline import responder
from apps.agent.offline.capabilities import input_from
from apps.agent.offline.intents import Intent, Kind, intent_of
from apps.agent.offline.rehearsals import DICE, plain
from apps.agent.offline.responder import respond
from apps.agent.offline.wording import Note, best_matches, note_text, sharing, to_you


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ("I'm allergic to shellfish", "The user is allergic to shellfish."),
        ("I’m allergic to shellfish!", "The user is allergic to shellfish!"),
        ("I am only allergic to prawns", "The user is only allergic to prawns."),
        ("I really like Thai food", "The user really likes Thai food."),
        ("my sister's name is Ana", "The user's sister's name is Ana."),
        ("I have two cats and I live in Lisbon", "The user has two cats and the user lives in Lisbon."),
        (
            "I study law and my brother teaches me chess",
            "The user studies law and the user's brother teaches the user chess.",
        ),
        ("I don't eat meat", "The user doesn't eat meat."),
        ("I can't swim", "The user can't swim."),
        ("I moved to Porto in 2020", "The user moved to Porto in 2020."),
        ("I need new shoes", "The user needs new shoes."),
        ("I was born in May", "The user was born in May."),
        ("I no longer like tea", "The user no longer likes tea."),
        ("I've been to Japan", "The user has been to Japan."),
        ("the wifi password is tulip", "The wifi password is tulip."),
        ("the car is in row C, level 2,", "The car is in row C, level 2."),
    ],
)
def test_first_person_becomes_a_note_about_the_user(said: str, note: str) -> None:
    assert note_text(said) == note


@pytest.mark.parametrize(
    ("note", "answer"),
    [
        ("The user is allergic to shellfish.", "You are allergic to shellfish."),
        ("The user really likes Thai food.", "You really like Thai food."),
        ("The user's sister's name is Ana.", "Your sister's name is Ana."),
        (
            "The user has two cats and the user lives in Lisbon.",
            "You have two cats and you live in Lisbon.",
        ),
        ("The user studies law.", "You study law."),
        ("The user teaches chess.", "You teach chess."),
        ("The user goes swimming.", "You go swimming."),
        ("The user doesn't eat meat.", "You don't eat meat."),
        ("The user was born in May.", "You were born in May."),
        ("The wifi password is tulip.", "The wifi password is tulip."),
        ("User prefers SG.", "You prefer SG."),
    ],
)
def test_a_note_is_read_back_in_the_second_person(note: str, answer: str) -> None:
    assert to_you(note) == answer


@pytest.mark.parametrize(
    ("words", "intent"),
    [
        ("remember that I'm allergic to shellfish", Intent(Kind.REMEMBER, "I'm allergic to shellfish")),
        ("Remember that I'm allergic to shellfish.", Intent(Kind.REMEMBER, "I'm allergic to shellfish")),
        ("Please remember: my car is blue", Intent(Kind.REMEMBER, "my car is blue")),
        ("Hey Izzy, can you remember I hate mushrooms?", Intent(Kind.REMEMBER, "I hate mushrooms")),
        ("don't forget that my flight is on Monday", Intent(Kind.REMEMBER, "my flight is on Monday")),
        (
            "Make a note that the spare key is under the mat",
            Intent(Kind.REMEMBER, "the spare key is under the mat"),
        ),
        ("save this: the wifi password is tulip", Intent(Kind.REMEMBER, "the wifi password is tulip")),
        ("what do you know about food?", Intent(Kind.LOOK_UP, "food")),
        ("What do you remember about my sister", Intent(Kind.LOOK_UP, "my sister")),
        ("do you remember my wedding day?", Intent(Kind.LOOK_UP, "my wedding day")),
        ("tell me about my allergies", Intent(Kind.LOOK_UP, "my allergies")),
        ("search my notes for Lisbon", Intent(Kind.LOOK_UP, "Lisbon")),
        ("what do you know about me?", Intent(Kind.NOTE_LIST)),
        ("list my memories", Intent(Kind.NOTE_LIST)),
        ("Show me all my notes", Intent(Kind.NOTE_LIST)),
        ("what can I eat?", Intent(Kind.QUESTION, "what can I eat")),
        ("Am I allergic to anything?", Intent(Kind.QUESTION, "Am I allergic to anything")),
        ("actually I'm only allergic to prawns", Intent(Kind.CORRECT, "I'm only allergic to prawns")),
        ("No, actually, my name is SG.", Intent(Kind.CORRECT, "my name is SG")),
        ("I'm only allergic to prawns, actually", Intent(Kind.CORRECT, "I'm only allergic to prawns")),
        ("No, I'm only allergic to prawns", Intent(Kind.CORRECT, "I'm only allergic to prawns")),
        ("I don't eat meat anymore", Intent(Kind.CORRECT, "I don't eat meat anymore")),
        ("I no longer like tea", Intent(Kind.CORRECT, "I no longer like tea")),
        ("change my favourite colour to green", Intent(Kind.CHANGE, "my favourite colour", "green")),
        ("replace shellfish with prawns", Intent(Kind.CHANGE, "shellfish", "prawns")),
        ("forget my allergy", Intent(Kind.FORGET, "my allergy")),
        ("Please forget about my allergy!", Intent(Kind.FORGET, "my allergy")),
        ("forget that I like chocolates", Intent(Kind.FORGET, "I like chocolates")),
        ("delete the note about Lisbon", Intent(Kind.FORGET, "Lisbon")),
        ("forget everything about Lisbon", Intent(Kind.FORGET, "Lisbon", "all")),
        ("forget that", Intent(Kind.FORGET_LAST)),
        ("forget everything you know about me", Intent(Kind.FORGET_ALL)),
        ("search our conversations for Lisbon", Intent(Kind.CONVERSATION_SEARCH, "Lisbon")),
        ("what did we talk about Lisbon?", Intent(Kind.CONVERSATION_SEARCH, "Lisbon")),
        ("list our conversations", Intent(Kind.CONVERSATION_LIST)),
        ("delete the conversation about Lisbon", Intent(Kind.CONVERSATION_DELETE, "Lisbon")),
        ("I live in Lisbon", Intent(Kind.FACT, "I live in Lisbon")),
        ("my name is Alice", Intent(Kind.FACT, "my name is Alice")),
        ("help", Intent(Kind.HELP)),
        ("What can you do?", Intent(Kind.HELP)),
        ("Hello!", Intent(Kind.GREETING)),
        ("thanks a lot", Intent(Kind.THANKS)),
        ("write a poem", Intent(Kind.UNKNOWN, "write a poem")),
    ],
)
def test_phrasings_are_understood(words: str, intent: Intent) -> None:
    assert intent_of(words) == intent


def test_a_long_text_can_be_remembered_up_to_a_limit() -> None:
    assert intent_of("remember that " + "I like tea and " * 1_000).kind == Kind.REMEMBER
    assert intent_of("remember that " + "I like tea and " * 2_000).kind == Kind.TOO_LONG


@pytest.mark.parametrize(
    "words",
    [
        "i no longer ",
        "actually ",
        "change to ",
        "a, ",
        "!",
        "my is ",
        "what did we ",
        "forget all ",
        "and please ",
    ],
)
def test_no_wording_takes_long_to_understand(words: str) -> None:
    """Patterns that backtrack would run into the test's time limit."""
    intent_of((words * 20_000)[:19_999])
    intent_of((words * 20_000)[:19_990] + "\x00")


@pytest.mark.parametrize(
    "words",
    [
        "convert {digits}",
        "convert 1.{digits}",
        "roll{spaces}x",
        "run a with{spaces}b",
        "run a_b with x{spaces}y",
    ],
)
def test_no_use_of_a_tool_takes_long_to_understand(words: str) -> None:
    said = words.format(digits="1" * 19_900, spaces=" " * 19_900)
    assert respond({"messages": [{"role": "user", "content": said}]})
    assert input_from(said, {"properties": {"x": {"type": "array"}, "y": {}}})


@pytest.mark.parametrize(
    ("said", "dice"),
    [("roll 3d6", "3d6"), ("Roll me a 2 d 10 + 4!", "2d10+4"), ("throw d20", "d20"), ("roll six", "")],
)
def test_dice_are_understood_as_people_write_them(said: str, dice: str) -> None:
    match = DICE.used.fullmatch(plain(said))
    assert (DICE.arguments(match)["dice"] if match else "") == dice


def test_values_are_told_from_what_joins_them() -> None:
    schema = {"properties": {"names": {"type": "array"}, "size": {"type": "integer"}, "note": {}}}
    given = "names Ann, Bob and Cy, size 3 and note a grand piano"
    assert input_from(given, schema) == {
        "names": ["Ann", "Bob", "Cy"],
        "size": 3,
        "note": "a grand piano",
    }
    assert input_from("note is salt and", schema) == {"note": "salt"}
    assert input_from("note is the strand", schema) == {"note": "the strand"}


def test_long_notes_take_no_longer_to_compare() -> None:
    long = " ".join(f"word{number}" for number in range(5_000))
    assert len(best_matches(long, [Note(f"note-{number}", long, 0.5) for number in range(20)])) == 20


def notes(*texts: str) -> list[Note]:
    return [Note(f"note-{number}", text, 0.5) for number, text in enumerate(texts)]


def test_the_note_with_most_words_in_common_is_meant() -> None:
    found = notes("The user likes tea.", "The user is allergic to shellfish.")
    assert best_matches("I'm only allergic to prawns", found) == [found[1]]


def test_inflected_words_match() -> None:
    found = notes("The user is allergic to shellfish.", "The user studies law.")
    assert best_matches("my allergy", found) == [found[0]]
    assert best_matches("studying", found) == [found[1]]


def test_equally_good_matches_are_all_given() -> None:
    found = notes(
        "The user is allergic to nuts.", "The user's sister is allergic to cats.", "The user likes tea."
    )
    assert best_matches("my allergy", found) == found[:2]


def test_words_that_carry_no_meaning_match_nothing() -> None:
    assert best_matches("what the user is", notes("The user is tall.")) == []


def test_everything_that_shares_a_word_can_be_asked_for() -> None:
    found = notes("Lisbon is sunny.", "The user flies to Lisbon.", "The user likes tea.")
    assert sharing("Lisbon", found) == found[:2]


async def test_a_long_answer_is_streamed_no_slower_than_can_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("apps.agent.offline.responder.asyncio.sleep", sleep)
    for words in (5, 20_000):
        pauses.clear()
        said = {"role": "assistant", "content": [{"type": "text", "text": "word " * words}]}
        stream = responder._Stream(said | {"stop_reason": "end_turn", "usage": {}})
        text = b"".join([piece async for piece in stream]).decode()
        assert text.count("word") == len(pauses) == words
        assert 0 < sum(pauses) <= responder.STREAM_SECONDS + 0.001
