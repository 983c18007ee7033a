import re

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.accounts.selectors import preferences_for
from apps.accounts.services import setup_note, setup_token_renew
from apps.core.models import InstanceState
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db


def fields(token: str, **changes: str) -> dict[str, str]:
    return {"token": token, "username": "alice", "password": PASSWORD} | changes


def test_the_link_makes_the_superuser_and_signs_in(client: Client) -> None:
    response = client.post("/setup/", fields(setup_token_renew()))
    assert (response.status_code, response["Location"]) == (302, "/")
    user = User.objects.get()
    assert (user.username, user.is_superuser, user.is_staff) == ("alice", True, True)
    assert client.get("/settings/").status_code == 200


def test_the_link_works_once(client: Client) -> None:
    token = setup_token_renew()
    client.post("/setup/", fields(token))
    response = Client().post("/setup/", fields(token, username="mallory"))
    assert response["Location"] == "/sign-in/"
    assert not User.objects.filter(username="mallory").exists()


def test_a_new_start_ends_the_earlier_link(client: Client) -> None:
    old = setup_token_renew()
    new = setup_token_renew()
    assert client.post("/setup/", fields(old)).status_code == 422
    assert client.post("/setup/", fields(new)).status_code == 302


@pytest.mark.parametrize("token", ["", "wrong", "ü", "x" * 300])
def test_a_wrong_token_makes_nobody(client: Client, token: str) -> None:
    setup_token_renew()
    assert client.post("/setup/", fields(token)).status_code == 422
    assert not User.objects.exists()


def test_without_a_token_ever_made_nothing_opens_it(client: Client) -> None:
    assert client.post("/setup/", fields("anything")).status_code == 422


@pytest.mark.parametrize(
    "changes",
    [
        {"password": "short"},
        {"password": "12345678901"},
        {"password": "password"},
        {"username": "a b"},
        {"username": ""},
    ],
)
def test_it_refuses_weak_passwords_and_bad_names_and_the_link_stays(
    client: Client, changes: dict[str, str]
) -> None:
    token = setup_token_renew()
    refused = client.post("/setup/", fields(token, **changes))
    assert refused.status_code == 422
    begins = re.findall(r'<input[^>]* name="(\w+)"[^>]* autofocus', refused.content.decode())
    assert begins == list(changes)
    assert client.post("/setup/", fields(token)).status_code == 302


def test_the_token_is_stored_as_a_hash_and_is_in_the_fragment_of_the_printed_link(db: None) -> None:
    note = setup_note("http://127.0.0.1:8000")
    token = note.rpartition("#")[2]
    assert f"http://127.0.0.1:8000/setup/#{token}" in note
    assert token not in str(InstanceState.objects.get(key="setup_token").value)


def test_nothing_is_printed_once_somebody_exists(alice: User) -> None:
    assert setup_note("http://127.0.0.1:8000") == ""


def test_sign_in_leads_to_set_up_while_nobody_exists(client: Client) -> None:
    assert client.get("/sign-in/")["Location"] == "/setup/"


def test_guessing_the_token_is_throttled(client: Client, settings: pytest.FixtureRequest) -> None:
    settings.IZZY_THROTTLE = True  # type: ignore[attr-defined]
    token = setup_token_renew()
    for _ in range(5):
        client.post("/setup/", fields("wrong"))
    response = client.post("/setup/", fields(token))
    assert "Too many failed attempts" in response.content.decode()


@pytest.mark.parametrize(
    ("browser", "stored"), [("Europe/Berlin", "Europe/Berlin"), ("Mars/Olympus", "UTC"), ("", "UTC")]
)
def test_the_browsers_time_zone_is_taken_over_where_it_is_one(
    client: Client, browser: str, stored: str
) -> None:
    client.post("/setup/", fields(setup_token_renew(), time_zone=browser))
    assert preferences_for(User.objects.get().pk).time_zone == stored
