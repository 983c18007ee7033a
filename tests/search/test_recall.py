"""Notes that matter to a message come up unasked; what is only the nearest of what there is does not."""

import pytest

from apps.accounts.models import User
from apps.search.documents import Facet, Hit, Scope, Source
from apps.search.filling import vectors_fill
from apps.search.models import Passage
from apps.search.proactive.odds import EVIDENCE
from apps.search.proactive.recall import observe, recall
from tests.peers.ollama_server import OllamaPeer

from .conftest import save, say

NOTES = Scope(sources=frozenset({Source.MEMORY}))
ABOUT = 0.45
LIFE = (
    "The user is allergic to shellfish.",
    "The router stands in the hall cupboard.",
    "The user's sister Anna is getting married on 5 June 2027.",
    "The user's best friend Jo Castellano moved to Porto.",
    "I drink my coffee black, two cups a day at most.",
    "Team stand-up is at 9:15 on Mondays and Wednesdays.",
    "Theo's passport runs out in March 2027.",
    "The boiler needs a pressure of 1.5 bar.",
    "The family lives at 22 Maple Grove.",
    "Training for a half marathon in under two hours.",
)


def up(user: User, *talk: str, **options: object) -> list[str]:
    """The texts that a talk brings up."""
    return [hit.text for hit in hits(user, *talk, **options)]


def hits(user: User, *talk: str, **options: object) -> list[Hit]:
    asked: dict[str, object] = {"top_k": 10, "scope": NOTES, "least": ABOUT, **options}
    return recall(user.pk, talk, **asked)  # type: ignore[arg-type]


def test_what_is_observed_says_of_how_many_notes_it_is_the_best(alice: User, bob: User) -> None:
    save(alice, *LIFE, "\n\n".join(f"Chapter {part}. " + "It was raining. " * 60 for part in range(9)))
    save(bob, "Bob has a boat.")
    assert Passage.objects.filter(user=alice, facet=Facet.TEXT).count() > len(LIFE) + 2
    seen = observe(alice.pk, ["Where is the router?"], NOTES)
    assert seen is not None
    assert seen.number == len(LIFE) + 1


@pytest.mark.parametrize("number", [1, 4, len(LIFE)])
@pytest.mark.parametrize(
    "message",
    [
        "what is 2+2",
        "What is 15% of 80?",
        "roll 3d6",
        "Tell me a joke",
        "What's the weather like?",
        "Hi!",
        "Thanks, that's great",
        "How do bees make honey?",
        "How many days are there in February 2028?",
        "What is the capital of Australia?",
        "?!",
        "   ",
        "🦞",
    ],
)
def test_what_concerns_no_note_brings_up_none(alice: User, number: int, message: str) -> None:
    save(alice, *LIFE[:number])
    assert up(alice, message) == []


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ("Can I eat the shellfish paella tonight?", 0),
        ("Where is our router?", 1),
        ("When is my sister's wedding?", 2),
        ("What pressure should the boiler have?", 7),
        ("Which race am I preparing for?", 9),
    ],
)
@pytest.mark.parametrize("others", [False, True])
def test_what_concerns_a_note_brings_it_up_first(
    alice: User, message: str, place: int, others: bool
) -> None:
    save(alice, *(LIFE if others else LIFE[place : place + 1]))
    assert up(alice, message)[:1] == [LIFE[place]]


def test_where_all_notes_are_of_one_matter_they_still_come_up(alice: User) -> None:
    bridge = [
        "The Severn footbridge spans 84 metres.",
        "The client of the Severn footbridge is Bristol council.",
        "The Severn footbridge opens in 2028.",
        "The user leads the Severn footbridge project.",
    ]
    save(alice, *bridge)
    assert set(up(alice, "What do we know about the Severn footbridge?")) == set(bridge)
    assert up(alice, "Who won the world cup in 1998?") == []


def test_a_word_in_another_form_is_enough_where_it_is_all_that_is_asked(alice: User) -> None:
    save(alice, *LIFE, "Deploys go through GitHub Actions to the host atlas.")
    (hit,) = hits(alice, "How do I deploy?")
    assert hit.text.startswith("Deploys go")
    assert hit.causes.words == ("deploy",)


def test_words_that_are_cut_into_the_same_pieces_are_not_alike(alice: User) -> None:
    save(alice, *LIFE)
    assert up(alice, "Do you know any joke?") == []  # "jo-ke" and the friend called Jo


@pytest.mark.parametrize("message", ["What could I give her?", "And when is it?", "And who comes?"])
def test_a_message_that_leans_on_the_talk_takes_it_in(alice: User, message: str) -> None:
    save(alice, *LIFE)
    assert up(alice, message) == []
    assert up(alice, "Anna's wedding is near", "How nice!", message)[:1] == [LIFE[2]]


@pytest.mark.parametrize(
    "message", ["Thanks!", "ok cool", "Tell me a joke", "What is 12 times 12?", "Why is the sky blue?"]
)
def test_a_message_that_stands_for_itself_does_not(alice: User, message: str) -> None:
    save(alice, *LIFE)
    assert up(alice, "When is my sister's wedding?", "On 5 June 2027.", message) == []


def test_a_long_answer_weighs_no_more_than_its_question(alice: User) -> None:
    save(alice, *LIFE)
    answer = "The boiler warms the water, and the pressure of the boiler must be right. " * 20
    assert up(alice, "When is Anna's wedding?", answer, "What could I give her?")[:1] == [LIFE[2]]


def test_what_is_excluded_stays_away_and_other_sources_too(alice: User, bob: User) -> None:
    first, *_ = save(alice, *LIFE)
    say(alice, ("user", "I love shellfish stories."))
    message = "Can I eat the shellfish paella tonight?"
    assert up(alice, message) == [LIFE[0]]
    excluding = Scope(sources=NOTES.sources, exclude_ids={first})
    assert up(alice, message, scope=excluding) == []
    assert up(bob, message) == []


def test_a_score_is_a_share_and_its_parts_say_what_speaks_for_it(alice: User) -> None:
    save(alice, *LIFE)
    every = hits(alice, "Can I eat the shellfish paella tonight?", least=0.0)
    assert len(every) == len(LIFE)
    for hit in every:
        assert set(hit.parts) == set(EVIDENCE)
        assert 0 <= hit.score <= 1
        assert all(value >= 0 for value in hit.parts.values())
    assert [hit.score for hit in every] == sorted((hit.score for hit in every), reverse=True)


def test_german_notes_come_up_for_german_messages(alice: User) -> None:
    notes = ["Freitags ist Chorprobe.", "Der Router steht im Flur.", "Das Auto muss im Februar zum TÜV."]
    save(alice, *notes)
    assert up(alice, "Wann ist unsere Chorprobe?") == [notes[0]]
    assert up(alice, "Wo steht der Router?") == [notes[1]]
    assert up(alice, "Was ist die Hauptstadt von Australien?") == []
    assert up(alice, "Erzähl mir einen Witz") == []


def test_while_the_embedder_is_down_words_decide(alice: User, ollama: OllamaPeer) -> None:
    save(alice, *LIFE)
    ollama.mode = "broken"
    assert up(alice, "Where does the router stand?") == [LIFE[1]]
    assert up(alice, "what is 2+2") == []


def test_another_embedder_is_judged_by_its_own_chance(alice: User, ollama: OllamaPeer) -> None:
    save(alice, *LIFE)
    vectors_fill()
    assert up(alice, "The router stands in the hall cupboard?")[:1] == [LIFE[1]]
    assert up(alice, "what is 2+2") == []


@pytest.mark.parametrize(
    ("notes", "question", "joke"),
    [
        (
            ("Сестра Анна выходит замуж.", "Роутер стоит в шкафу."),
            "Где стоит роутер?",
            "Расскажи анекдот",
        ),
        (("用户的姐姐明年结婚。", "路由器放在走廊的柜子里。"), "路由器在哪里？", "讲个笑话"),
        (("ผู้ใช้แพ้ถั่วลิสง", "เราเตอร์อยู่ในตู้ที่โถงทางเดิน"), "เราเตอร์อยู่ที่ไหน", "เล่าเรื่องตลกหน่อย"),
    ],
)
def test_in_scripts_that_the_vectors_cannot_read_words_decide(
    alice: User, notes: tuple[str, ...], question: str, joke: str
) -> None:
    save(alice, *notes)
    assert up(alice, question) == [notes[1]]
    assert up(alice, joke) == []
