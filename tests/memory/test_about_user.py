"""Questions about the user as a whole: which are, and which notes come up for them."""

from datetime import timedelta
from itertools import pairwise

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.memory.models import Memory, Origin, Trust
from apps.memory.notes.changes import memory_archive
from apps.memory.notes.revisions import Change
from apps.memory.recall.about_user import MOST, REASON, asks_about_user, notes_about_user
from apps.memory.recall.block import compose
from tests.memory.conftest import MakeNote


@pytest.mark.parametrize(
    "text",
    [
        "what do you know about me?",
        "What do you know about me",
        "Hi Izzy! What have you learned about me so far?",
        "Tell me everything you know about me, please.",
        "Who am I?",
        "Do you know who I am?",
        "How well do you know me?",
        "describe me",
        "What do you remember about me from our conversations?",
        "I have to go soon. What have you saved about me?",
        "Give me a summary of what you know about me.",
        "Was weißt du über mich?",
        "was weisst du alles über mich",
        "Erzähl mir, was du über mich weißt.",
        "Wer bin ich?",
        "Was hast du dir über mich gemerkt?",
        "Wie gut kennst du mich eigentlich?",
        "¿Qué sabes de mí?",
        "que sabes sobre mi",
        "¿Quién soy yo?",
        "Dime todo lo que sabes de mí.",
        "Que sais-tu de moi ?",
        "Qu'est-ce que tu sais sur moi ?",
        "Qui suis-je ?",
        "De quoi te souviens-tu à mon sujet ?",
        "Dis-moi tout ce que tu sais de moi, s'il te plaît.",
    ],
)
def test_these_ask_about_the_user_as_a_whole(text: str) -> None:
    assert asks_about_user(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?!",
        "what do you know about my sister?",
        "What do you know about me and cars?",
        "Tell me about yourself.",
        "What does she know about me?",
        "Do you know where I live?",
        "What did Anna say about me?",
        "Write a poem about me.",
        "It is not about me.",
        "Tell me a joke.",
        "Well, you know me.",
        "Ya me conoces.",
        "Do you remember?",
        "What do you know about Rome?",
        "Who is she?",
        "Was weißt du über Rom?",
        "Was weiß meine Mutter über mich?",
        "¿Qué sabes de mi perro?",
        "¿Qué sabes de Roma?",
        "Que sais-tu de Rome ?",
        "Que pense Anna de moi ?",
        "I told the doctor everything about me.",
        "know " * 30 + "about me",
    ],
)
def test_these_ask_for_something_else(text: str) -> None:
    assert not asks_about_user(text)


@pytest.mark.django_db
def test_what_matters_most_and_lasts_comes_first(alice: User, bob: User, note: MakeNote) -> None:
    shed = note(alice, "The user builds a shed.", kind="project")
    tea = note(alice, "The user likes tea.", kind="preference")
    nuts = note(alice, "The user is allergic to nuts.", importance=5, kind="fact")
    errand = note(alice, "The user buys milk.", tier="short_term")
    long_ago = timezone.now() - timedelta(days=1200)
    Memory.objects.for_user(alice).filter(pk=nuts.pk).update(created_at=long_ago, updated_at=long_ago)
    note(
        alice,
        "The user is a spy.",
        importance=5,
        change=Change(actor=Origin.USER, trust=Trust.UNTRUSTED),
    )
    put_away = note(alice, "The user lived in Graz.", importance=5)
    memory_archive(user_id=alice.pk, memory_id=put_away.pk)
    note(alice, "The user lives in Rome.", importance=5, valid_to=timezone.now() - timedelta(days=1))
    note(bob, "Bob is allergic to dogs.", importance=5)
    found = notes_about_user(alice.pk)
    assert [item.id for item in found] == [nuts.pk, tea.pk, shed.pk, errand.pk]
    assert {item.reason for item in found} == {REASON}
    assert notes_about_user(alice.pk, exclude_ids=[nuts.pk])[0].id == tea.pk


@pytest.mark.django_db
def test_as_many_come_up_as_the_budget_holds(alice: User, note: MakeNote) -> None:
    for number in range(MOST + 10):
        note(alice, f"The user's friend number {number} lives in town {number * 37}.", kind="fact")
    found = notes_about_user(alice.pk)
    assert len(found) == MOST
    assert all(one.score > other.score for one, other in pairwise(found))
    surfaced = compose(found, now=timezone.now())
    assert 12 <= len(surfaced.items) < MOST
    assert surfaced.tokens <= 500
