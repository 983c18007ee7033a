import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from unittest.mock import patch

import pytest
from django.db import connections
from django.http import HttpRequest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.backends import PER_NAME_AND_ADDRESS, attempt_begin, attempts_prune, known_browser
from apps.accounts.models import SignInAttempt, User
from apps.core.errors import Throttled
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db


def sign_in(client: Client, username: str = "alice", password: str = PASSWORD, **headers: str) -> int:
    return client.post("/sign-in/", {"username": username, "password": password}, **headers).status_code  # type: ignore[arg-type]


def test_it_opens_with_the_right_password(alice: User, client: Client) -> None:
    assert sign_in(client) == 302
    assert client.get("/settings/").status_code == 200


@pytest.mark.parametrize("password", ["", "wrong", PASSWORD.upper(), PASSWORD + " "])
def test_it_stays_shut_with_a_wrong_one(alice: User, client: Client, password: str) -> None:
    assert sign_in(client, password=password) == 422
    assert client.get("/settings/").status_code == 302


def test_it_leads_on_to_the_page_that_was_asked_for(alice: User, client: Client) -> None:
    location = client.get("/settings/tokens/")["Location"]
    assert location == "/sign-in/?next=/settings/tokens/"
    response = client.post(location, {"username": "alice", "password": PASSWORD})
    assert response["Location"] == "/settings/tokens/"


def test_it_leads_to_no_other_site(alice: User, client: Client) -> None:
    form = {"username": "alice", "password": PASSWORD, "next": "https://evil.example/"}
    assert client.post("/sign-in/", form)["Location"] == "/"


def test_sign_out_needs_a_post_and_ends_the_session(alice: User, client: Client) -> None:
    sign_in(client)
    assert client.get("/sign-out/").status_code == 405
    assert client.get("/settings/").status_code == 200
    client.post("/sign-out/")
    assert client.get("/settings/").status_code == 302


def test_who_is_kept_out_cannot_enter_and_their_session_ends(alice: User, client: Client) -> None:
    sign_in(client)
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert client.get("/settings/").status_code == 302
    assert sign_in(Client()) == 422


def test_a_fragment_without_session_sends_the_whole_page_to_sign_in(alice: User, client: Client) -> None:
    response = client.get("/settings/", headers={"HX-Request": "true"})
    assert (response.status_code, response["HX-Redirect"]) == (401, "/sign-in/")


def test_five_failures_close_the_name_from_that_address_even_to_the_right_password(
    alice: User, settings: Settings
) -> None:
    settings.IZZY_THROTTLE = True
    for _ in range(5):
        assert sign_in(Client(), password="wrong") == 422
    response = Client().post("/sign-in/", {"username": "alice", "password": PASSWORD})
    assert response.status_code == 422
    assert "Too many failed attempts" in response.content.decode()
    assert sign_in(Client(), REMOTE_ADDR="10.0.0.9") == 302


def guess_from_everywhere(name: str = "alice", **cookies: str) -> None:
    for number in range(60):
        stranger = Client()
        stranger.cookies.load(cookies)
        sign_in(stranger, name, "wrong", REMOTE_ADDR=f"10.0.{number}.1")


def test_strangers_who_guess_do_not_keep_the_owner_out_of_a_browser_that_was_signed_in(
    alice: User, client: Client, settings: Settings
) -> None:
    settings.IZZY_THROTTLE = True
    sign_in(client)
    client.post("/sign-out/")
    guess_from_everywhere()
    assert sign_in(Client(), REMOTE_ADDR="192.0.2.7") == 422
    assert sign_in(client, password="wrong") == 422
    assert sign_in(client) == 302


def test_nor_does_guessing_behind_the_same_address(
    alice: User, client: Client, settings: Settings
) -> None:
    settings.IZZY_THROTTLE = True
    sign_in(client)
    client.post("/sign-out/")
    for number in range(40):
        sign_in(Client(), f"guess{number}", "wrong")
    assert sign_in(Client()) == 422
    assert sign_in(client) == 302


def test_the_cookie_of_such_a_browser_opens_nothing_and_gives_five_guesses_for_its_user_alone(
    alice: User, bob: User, client: Client, settings: Settings
) -> None:
    settings.IZZY_THROTTLE = True
    sign_in(client)
    cookie = client.cookies["izzy_browser"]
    assert cookie["httponly"]
    stolen = {"izzy_browser": cookie.value}
    guess_from_everywhere("bob", **stolen)
    guess_from_everywhere("alice", **stolen)
    for name in ("alice", "bob"):
        thief = Client()
        thief.cookies.load(stolen)
        assert thief.get("/settings/").status_code == 302
        assert sign_in(thief, name, REMOTE_ADDR="192.0.2.7") == 422


@pytest.mark.parametrize("spoil", ["forge", "password", "age"])
def test_the_cookie_ends_with_the_password_and_the_year_and_cannot_be_made(
    spoil: str, alice: User, client: Client, settings: Settings
) -> None:
    settings.IZZY_THROTTLE = True
    sign_in(client)
    client.post("/sign-out/")
    if spoil == "forge":
        client.cookies["izzy_browser"] = "x" + client.cookies["izzy_browser"].value
    elif spoil == "password":
        alice.set_password(PASSWORD)
        alice.save()
    guess_from_everywhere()
    if spoil == "age":
        with patch("time.time", return_value=time.time() + 366 * 86_400):
            assert known_browser(HttpRequest(), "alice") == ""
            request = HttpRequest()
            request.COOKIES["izzy_browser"] = client.cookies["izzy_browser"].value
            assert known_browser(request, "alice") == ""
    else:
        assert sign_in(client) == 422


def test_a_changed_password_gives_its_browser_a_new_cookie(
    alice: User, client: Client, settings: Settings
) -> None:
    settings.IZZY_THROTTLE = True
    sign_in(client)
    new = "another horse battery"
    assert client.post("/settings/password/", {"current": PASSWORD, "password": new}).status_code == 302
    client.post("/sign-out/")
    guess_from_everywhere()
    assert sign_in(client, password=new) == 302


@pytest.mark.parametrize("path", ["/settings/password/", "/settings/delete/"])
def test_the_present_password_cannot_be_guessed_faster_in_an_open_browser(
    path: str, alice: User, settings: Settings
) -> None:
    settings.IZZY_THROTTLE = True
    client = Client()
    client.force_login(alice)
    for _ in range(5):
        answer = client.post(path, {"current": "wrong", "password": "another horse battery"})
        assert "not your current password" in answer.content.decode()
    answer = client.post(path, {"current": PASSWORD, "password": "another horse battery"})
    assert answer.status_code == 422
    assert "Too many failed attempts" in answer.content.decode()
    assert User.objects.get().check_password(PASSWORD)


def test_the_addresses_of_one_ipv6_network_are_one(alice: User, settings: Settings) -> None:
    settings.IZZY_THROTTLE = True
    for last in range(5):
        assert sign_in(Client(), password="wrong", REMOTE_ADDR=f"2001:db8:1:2::{last}") == 422
    assert sign_in(Client(), REMOTE_ADDR="2001:db8:1:2:ffff::1") == 422
    assert sign_in(Client(), REMOTE_ADDR="2001:db8:1:3::1") == 302


@pytest.mark.parametrize(
    "path", ["/", "/memory/", "/settings/", "/capabilities/", "/api/v1/memories/", "/memory/review/"]
)
def test_no_cache_keeps_what_is_behind_the_sign_in(path: str, alice: User) -> None:
    client = Client()
    client.force_login(alice)
    assert "no-store" in client.get(path)["Cache-Control"]
    assert "private" in client.get(path)["Cache-Control"]


def test_the_case_of_the_name_does_not_give_more_attempts(alice: User, settings: Settings) -> None:
    settings.IZZY_THROTTLE = True
    for name in ["alice", "Alice", "ALICE", "aLice", "alicE"]:
        sign_in(Client(), name, "wrong")
    assert sign_in(Client()) == 422


def test_many_names_from_one_address_close_the_address(alice: User, settings: Settings) -> None:
    settings.IZZY_THROTTLE = True
    for number in range(30):
        sign_in(Client(), f"guess{number}", "wrong")
    assert sign_in(Client()) == 422


def test_success_forgets_the_failures_before_it(alice: User, settings: Settings) -> None:
    settings.IZZY_THROTTLE = True
    for _ in range(3):
        for _ in range(4):
            sign_in(Client(), password="wrong")
        assert sign_in(Client()) == 302
    assert not SignInAttempt.objects.exists()


@pytest.mark.parametrize("minutes", [-16, 16])
def test_it_opens_again_after_a_quarter_of_an_hour(
    alice: User, settings: Settings, minutes: int
) -> None:
    """Or once a clock that was ahead has been set right."""
    settings.IZZY_THROTTLE = True
    for _ in range(5):
        sign_in(Client(), password="wrong")
    assert sign_in(Client()) == 422
    SignInAttempt.objects.update(at=timezone.now() + timedelta(minutes=minutes))
    assert sign_in(Client()) == 302


def test_the_admin_has_no_way_in_of_its_own(alice: User, client: Client) -> None:
    assert client.get("/admin/login/?next=/admin/")["Location"] == "/sign-in/?next=%2Fadmin%2F"
    client.post("/admin/login/", {"username": "alice", "password": PASSWORD})
    assert client.get("/settings/").status_code == 302


def test_attempts_keep_neither_name_nor_address_and_go_after_a_day(
    alice: User, settings: Settings
) -> None:
    settings.IZZY_THROTTLE = True
    sign_in(Client(), password="wrong")
    attempt = SignInAttempt.objects.get()
    assert "alice" not in attempt.name_hash
    assert "127.0.0.1" not in attempt.address_hash
    attempts_prune()
    assert SignInAttempt.objects.count() == 1
    SignInAttempt.objects.update(at=timezone.now() - timedelta(days=2))
    attempts_prune()
    assert not SignInAttempt.objects.exists()


def test_behind_a_proxy_the_last_forwarded_address_counts(alice: User, settings: Settings) -> None:
    settings.IZZY_THROTTLE = settings.IZZY_BEHIND_PROXY = True
    for number in range(5):
        sign_in(Client(), password="wrong", HTTP_X_FORWARDED_FOR=f"10.0.0.{number}, 192.0.2.7")
    assert sign_in(Client(), HTTP_X_FORWARDED_FOR="10.9.9.9, 192.0.2.7") == 422
    assert sign_in(Client(), HTTP_X_FORWARDED_FOR="192.0.2.7, 198.51.100.1") == 302


def test_after_a_wrong_password_the_cursor_waits_in_its_field(client: Client, alice: User) -> None:
    first = client.get("/sign-in/").content.decode()
    assert re.search(r'<input[^>]*name="username"[^>]*autofocus', first)
    refused = client.post("/sign-in/", {"username": "alice", "password": "wrong"})
    assert refused.status_code == 422
    html = refused.content.decode()
    password = re.search(r'<input[^>]*name="password"[^>]*>', html)
    assert password is not None
    assert "autofocus" in password[0]
    assert 'aria-describedby="form-errors"' in password[0]
    assert not re.search(r'<input[^>]*name="username"[^>]*autofocus', html)
    assert re.search(r'id="form-errors" role="alert"', html)


@pytest.mark.django_db(transaction=True)
def test_guesses_side_by_side_are_counted_one_by_one(settings: Settings) -> None:
    settings.IZZY_THROTTLE = True

    def guess(_: int) -> bool:
        try:
            attempt_begin(name="alice", address="192.0.2.7")
        except Throttled:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(guess, range(40))) == PER_NAME_AND_ADDRESS
