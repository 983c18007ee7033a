"""The score of a hit: falls with rank, lies between nothing and one, and means the same for every question."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.accounts.models import User
from apps.search.ranking.relevance import WORTH_SHOWING, Strength
from apps.search.selectors import context, search
from apps.search.services import user_forget
from benchmarks._surfacing_texts import NONSENSE

from .conftest import save, say

NOTES = (
    "The spare key lies under the blue flowerpot.",
    "Allergic to hazelnuts and to cats.",
    "The car is a red station wagon from 2019.",
    "Tom plays the cello in an orchestra on Thursdays.",
    "The dentist is Dr Weber in Lindenstrasse.",
    "The WiFi network at home is called Falcon.",
    "Grandmother turns ninety in October.",
    "The garden needs water every second evening in summer.",
)
ANSWERED = {
    "Where is the spare key?": NOTES[0],
    "What am I allergic to?": NOTES[1],
    "Which car do I drive?": NOTES[2],
    "Who plays the cello?": NOTES[3],
    "Who is my dentist?": NOTES[4],
    "What is the WiFi called?": NOTES[5],
}
TALK = (
    ("Ann", "Hello Ben, good morning! How are you?"),
    ("Ben", "Hi there! Fine, thanks. I was in Lisbon for a week."),
    ("Ann", "Lovely! What did you see?"),
    ("Ben", "The tram museum and the oceanarium with its sunfish."),
    ("Ann", "Nice. I started to learn pottery last month."),
    ("Ben", "Cool! What do you make?"),
    ("Ann", "Mostly bowls, and a teapot for my sister."),
    ("Ben", "Okay, thanks for telling me. Bye!"),
)
WORDS = ("car", "bicycle", "red", "blue", "garden", "roof", "sleep", "bread", "river", "music", "hello")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.sets(st.sampled_from([f"{a} {b}" for a in WORDS for b in WORDS]), min_size=1, max_size=12),
    spoken=st.booleans(),
    query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
)
def test_scores_fall_from_hit_to_hit(alice: User, texts: set[str], spoken: bool, query: str) -> None:
    user_forget(user_id=alice.pk)
    say(alice, *(("Ann", text) for text in sorted(texts))) if spoken else save(alice, *sorted(texts))
    scores = [hit.score for hit in search(alice.pk, query, top_k=50)]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


@settings(deadline=None)
@given(
    totals=st.lists(st.floats(0, 6, width=32), min_size=1, max_size=30, unique=True),
    evidence=st.floats(0, 1),
    rivals=st.floats(0, 2),
)
def test_of_two_hits_the_one_with_the_larger_total_scores_higher(
    totals: Sequence[float], evidence: float, rivals: float
) -> None:
    behind = max(totals) - np.array(sorted(totals, reverse=True))
    score = Strength(max(totals), behind, float(np.log(evidence + 0.05)), rivals).score()
    assert ((score > 0) & (score < 1)).all()
    assert (np.diff(score)[np.diff(behind) > 1e-9] < 0).all()


def test_hits_far_down_the_list_still_have_scores_of_their_own(alice: User) -> None:
    say(alice, *TALK, *(("Ann", f"{text} Really.") for _, text in TALK))
    scores = [hit.score for hit in search(alice.pk, "Which museum was in Lisbon?", top_k=50)]
    assert len(set(scores)) == len(scores) == 2 * len(TALK)


def test_what_answers_is_worth_showing_and_what_does_not_is_not(alice: User) -> None:
    save(alice, *NOTES)
    for question, answer in ANSWERED.items():
        best, *others = search(alice.pk, question)
        assert best.text == answer
        assert best.score >= WORTH_SHOWING, question
        assert all(hit.score < WORTH_SHOWING for hit in others), question


def test_a_question_scores_higher_where_its_answer_is_than_where_it_is_not(
    alice: User, bob: User
) -> None:
    save(alice, *NOTES[::2])
    save(bob, *NOTES[1::2])
    for question, answer in ANSWERED.items():
        knows, does_not = (alice, bob) if answer in NOTES[::2] else (bob, alice)
        found = [search(user.pk, question)[0].score for user in (knows, does_not)]
        assert found[0] > WORTH_SHOWING > found[1], question


def test_notes_about_one_matter_do_not_make_each_other_look_doubtful(alice: User) -> None:
    places = ("Porto", "Lisbon", "Braga", "Coimbra", "Faro", "Evora")
    save(alice, *(f"Anna stayed at a hotel in {place}." for place in places), *NOTES)
    shown = search(alice.pk, "Which hotel did Anna stay at?", threshold=WORTH_SHOWING)
    assert len(shown) == len(places)


@pytest.mark.parametrize("spoken", [False, True])
def test_nothing_is_worth_showing_for_greetings_and_nonsense(alice: User, spoken: bool) -> None:
    save(alice, *NOTES)
    if spoken:
        say(alice, *TALK)
    assert len(NONSENSE) > 30
    for text in NONSENSE:
        assert not search(alice.pk, text, threshold=WORTH_SHOWING), text


def test_the_scores_of_few_results_are_those_of_many(alice: User) -> None:
    say(alice, *TALK)
    many = [(hit.text, hit.score) for hit in search(alice.pk, "teapot for a sister", top_k=50)]
    assert [(hit.text, hit.score) for hit in search(alice.pk, "teapot for a sister", top_k=2)] == many[
        :2
    ]


def test_a_threshold_leaves_out_what_scores_less(alice: User) -> None:
    save(alice, *NOTES)
    question = "Who is my dentist?"
    every = search(alice.pk, question)
    for least in (0.0, every[1].score, every[0].score, 1.0):
        wanted = [hit.text for hit in every if hit.score >= least]
        assert [hit.text for hit in search(alice.pk, question, threshold=least)] == wanted
        assert [hit.text for hit in context(alice.pk, question, threshold=least).items] == wanted
