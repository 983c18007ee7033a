"""Small things of the pages: what is said, what is asked, what can be put away."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.choices import PUT_AWAY
from apps.accounts.models import User
from apps.capabilities.catalog.versions import capability_create
from apps.capabilities.pages.opened import MAX_COLOURED_CHARS, coloured
from apps.memory.models import CaptureWindow, WindowState
from tests.capabilities.making import draft

pytestmark = pytest.mark.django_db


def test_blocking_and_unblocking_say_so(
    admin: User, alice: User, sign_in: Callable[[User], Client]
) -> None:
    browser = sign_in(admin)
    url = f"/settings/users/{alice.pk}/active/"
    assert b"alice is blocked" in browser.post(url, {"active": "no"}, follow=True).content
    assert b"alice may sign in again" in browser.post(url, {"active": "yes"}, follow=True).content


def test_the_first_account_is_told_all_that_is_wrong_with_it(client: Client, settings: object) -> None:
    page = client.post("/setup/", {"token": "x", "username": "a b", "password": "123"}).content.decode()
    name, password = page.index('name="username"'), page.index('name="password"')
    assert name < page.index('class="error"', name) < password < page.index('class="error"', password)


def test_a_default_says_what_it_is(alice: User, sign_in: Callable[[User], Client]) -> None:
    page = sign_in(alice).get("/settings/").content.decode()
    assert "Default: always allow" in page
    assert "data-unsaved" in page


def test_code_has_colours_and_stays_harmless(alice: User, sign_in: Callable[[User], Client]) -> None:
    capability_create(user_id=alice.pk, name="greet", draft=draft())
    page = sign_in(alice).get("/capabilities/greet/files/").content.decode()
    assert '<span class="k">def</span>' in page
    assert "<script>" not in coloured("main.py", 'x = "<script>alert(1)</script>"')
    assert coloured("run.md", "<b>") == "&lt;b&gt;"
    assert "<span" not in coloured("main.py", "x = 1\n" * MAX_COLOURED_CHARS)
    assert coloured("main.py", "\n\nx = 1\n").endswith("\n")


def test_waiting_passages_are_put_away_for_a_day(alice: User, sign_in: Callable[[User], Client]) -> None:
    assert PUT_AWAY["passages"] == 1
    CaptureWindow.objects.create(
        user=alice, conversation_id=alice.pk, state=WindowState.WAITING, segments=[{}], tokens=10
    )
    browser, url = sign_in(alice), reverse("memory:list")
    assert b"capture-waiting" in browser.get(url).content
    browser.post("/settings/put-away/passages/")
    assert b"capture-waiting" not in browser.get(url).content
