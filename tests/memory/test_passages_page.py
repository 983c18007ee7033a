"""The memories page about passages that could not be read: what was said in them, and trying once more."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from apps.memory.models import CaptureWindow
from tests.memory.capturing import add, said

pytestmark = pytest.mark.django_db

RETRY = "/memory/passages/retry/"
SignIn = Callable[[User], Client]


def give_up(user: User, words: str) -> None:
    add(user, [said(words)])
    CaptureWindow.objects.for_user(user).update(
        state="gave_up", attempts=5, error="The model declined to read this passage."
    )


def test_what_could_not_be_read_is_shown_with_its_words_and_the_reason(
    alice: User, sign_in: SignIn
) -> None:
    give_up(alice, "I live in Linz.")
    page = sign_in(alice).get(reverse("memory:list")).content.decode()
    assert "1 part of your conversations could not be read" in page
    assert "I live in Linz." in page
    assert "The model declined to read this passage." in page
    assert f'action="{RETRY}"' in page


def test_it_is_tried_once_more_on_demand_and_only_ones_own(
    alice: User, bob: User, sign_in: SignIn
) -> None:
    give_up(alice, "I live in Linz.")
    give_up(bob, "I live in Graz.")
    answer = sign_in(alice).post(RETRY, headers={"HX-Request": "true"})
    text = answer.content.decode()
    assert "1 part is read once more." in text
    assert "could not be read" not in text
    window = CaptureWindow.objects.for_user(alice).get()
    assert (window.state, window.attempts, window.error) == ("waiting", 0, "")
    assert CaptureWindow.objects.for_user(bob).get().state == "gave_up"


def test_without_a_script_the_page_comes_back_and_says_what_happened(
    alice: User, sign_in: SignIn
) -> None:
    answer = sign_in(alice).post(RETRY, follow=True)
    assert answer.redirect_chain[-1][0] == reverse("memory:list")
    assert "Nothing was left to try again." in answer.content.decode()


def test_a_page_with_nothing_given_up_has_no_such_list(alice: User, sign_in: SignIn) -> None:
    add(alice, [said("I live in Linz.")])
    page = sign_in(alice).get(reverse("memory:list")).content.decode()
    assert "could not be read" not in page
    assert RETRY not in page
