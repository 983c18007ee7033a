import re
from collections.abc import Callable

import pytest
from django.test import Client
from pytest_django import Settings

from apps.accounts.models import Secret, User
from apps.accounts.secrets import check_secrets, secret_get, secret_set, secret_values
from apps.core.health import CheckResult
from apps.core.registries import connection_tests
from izzysite.env import fernet_key

pytestmark = pytest.mark.django_db

SignIn = Callable[[User], Client]
KEY = "sk-ant-very-secret-0123456789"


def test_the_key_is_stored_encrypted_and_never_shown(admin: User, sign_in: SignIn) -> None:
    browser = sign_in(admin)
    assert browser.post("/settings/instance/", {"anthropic_api_key": KEY}).status_code == 302
    assert secret_get("anthropic_api_key") == KEY
    assert KEY not in Secret.objects.get().ciphertext
    page = browser.get("/settings/instance/").content.decode()
    assert KEY not in page
    assert "A key is stored, encrypted." in page


def test_an_empty_field_keeps_the_key_and_the_box_removes_it(admin: User, sign_in: SignIn) -> None:
    browser = sign_in(admin)
    secret_set(name="anthropic_api_key", value=KEY)
    browser.post("/settings/instance/", {"anthropic_base_url": "http://127.0.0.1:11434"})
    assert secret_get("anthropic_api_key") == KEY
    assert secret_get("anthropic_base_url") == "http://127.0.0.1:11434"
    browser.post("/settings/instance/", {"forget_key": "on"})
    assert secret_get("anthropic_api_key") == ""
    assert secret_get("anthropic_base_url") == ""


def test_the_environment_wins_and_the_page_says_so(
    admin: User, sign_in: SignIn, settings: Settings
) -> None:
    secret_set(name="anthropic_api_key", value=KEY)
    settings.ANTHROPIC_API_KEY = "sk-ant-from-the-environment"
    assert secret_get("anthropic_api_key") == "sk-ant-from-the-environment"
    browser = sign_in(admin)
    page = browser.get("/settings/instance/").content.decode()
    assert "Set in the environment, which wins." in page
    browser.post("/settings/instance/", {"anthropic_api_key": "sk-ant-other-0123456789"})
    settings.ANTHROPIC_API_KEY = ""
    assert secret_get("anthropic_api_key") == KEY


@pytest.mark.parametrize("url", ["ftp://x", "nonsense", "javascript:alert(1)", "http://", "x" * 600])
def test_a_base_url_that_is_none_is_refused(admin: User, sign_in: SignIn, url: str) -> None:
    response = sign_in(admin).post("/settings/instance/", {"anthropic_base_url": url})
    assert response.status_code == 422
    assert secret_get("anthropic_base_url") == ""


def test_the_button_tries_the_connection_and_shows_what_came_of_it(
    admin: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = CheckResult(False, "The key was refused.", "Look at the key.")
    monkeypatch.setitem(connection_tests, "model", lambda: result)
    browser = sign_in(admin)
    fragment = browser.post(
        "/settings/instance/test/model/", headers={"HX-Request": "true"}
    ).content.decode()
    assert "The key was refused." in fragment
    assert "<html" not in fragment
    whole = browser.post("/settings/instance/test/model/").content.decode()
    assert "The key was refused." in whole
    assert "<html" in whole
    assert browser.post("/settings/instance/test/unknown/").status_code == 404


def test_parts_that_are_not_set_up_are_no_working_ones_and_the_page_says_what_they_would_give(
    admin: User, sign_in: SignIn, settings: Settings
) -> None:
    settings.ANTHROPIC_API_KEY = settings.ANTHROPIC_BASE_URL = settings.REDIS_URL = ""
    settings.SEARXNG_URL = settings.BRAVE_API_KEY = ""
    settings.IZZY_SANDBOX = "none"
    page = sign_in(admin).get("/settings/instance/").content.decode()
    shown = dict(re.findall(r"<dt>([^<]*)</dt><dd><span class=\"badge([^<]*)</span>", page))
    lacking = {name for name, badge in shown.items() if badge == '">not set up'}
    assert lacking == {"Capture", "Model", "Redis", "Sandbox", "Web search"}
    assert shown["Database"] == ' badge-ok">works'
    assert shown["Worker"] == ' badge-warn">broken'
    for words in (
        "Set REDIS_URL",
        "Izzy looks things up on the web. Set SEARXNG_URL",
        "Set ANTHROPIC_API_KEY",
    ):
        assert words in page


def test_ordinary_users_see_and_change_nothing_of_it(alice: User, sign_in: SignIn) -> None:
    browser = sign_in(alice)
    assert browser.get("/settings/instance/").status_code == 403
    assert browser.post("/settings/instance/", {"anthropic_api_key": KEY}).status_code == 403
    assert browser.post("/settings/instance/test/model/").status_code == 403
    assert secret_get("anthropic_api_key") == ""


def test_secrets_of_users_and_of_the_instance_are_apart(alice: User, bob: User) -> None:
    secret_set(name="weather", value="alices-weather-key", user_id=alice.pk)
    secret_set(name="weather", value="bobs-weather-key", user_id=bob.pk)
    secret_set(name="weather", value="everybodys-weather-key")
    secret_set(name="weather", value="alices-second-key", user_id=alice.pk)
    assert secret_get("weather", user_id=alice.pk) == "alices-second-key"
    assert secret_get("weather", user_id=bob.pk) == "bobs-weather-key"
    assert secret_get("weather") == "everybodys-weather-key"
    secret_set(name="weather", value="", user_id=alice.pk)
    assert secret_get("weather", user_id=alice.pk) == ""


def test_what_is_scrubbed_are_ones_own_secrets_the_instances_and_the_servers_keys(
    alice: User, bob: User, settings: Settings
) -> None:
    settings.ANTHROPIC_API_KEY = KEY
    secret_set(name="weather", value="bobs-weather-key", user_id=bob.pk)
    secret_set(name="anthropic_base_url", value="alices-own-of-that-name", user_id=alice.pk)
    secret_set(name="anything", value="everybodys-secret")
    secret_set(name="weather", value="alices-weather-key", user_id=alice.pk)
    secret_set(name="pin", value="1234", user_id=alice.pk)
    secret_set(name="anthropic_base_url", value="http://127.0.0.1:11434")
    values = secret_values(alice.pk)
    assert {KEY, "alices-weather-key", "everybodys-secret", settings.SECRET_KEY} <= set(values)
    assert {settings.IZZY_SECRETS_KEY, "alices-own-of-that-name"} <= set(values)
    assert "bobs-weather-key" not in values
    assert "1234" not in values
    assert "http://127.0.0.1:11434" not in values
    assert values == sorted(values, key=len, reverse=True)


def test_with_another_key_secrets_are_empty_and_the_doctor_says_why(settings: Settings) -> None:
    secret_set(name="anthropic_api_key", value=KEY)
    assert check_secrets().ok
    settings.IZZY_SECRETS_KEY = fernet_key()
    assert secret_get("anthropic_api_key") == ""
    result = check_secrets()
    assert not result.ok
    assert "anthropic_api_key" in result.message
