from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from apps.accounts.access import authenticate_bearer, require_scope
from apps.accounts.models import APIToken, User
from apps.accounts.services import token_create, token_revoke
from apps.core.errors import Conflict, Forbidden, InvalidInput, IzzyError, NotAuthenticated, NotFound

pytestmark = pytest.mark.django_db

SignIn = Callable[[User], Client]


def test_the_page_shows_the_secret_once_and_keeps_a_hash(alice: User, sign_in: SignIn) -> None:
    browser = sign_in(alice)
    page = browser.post("/settings/tokens/", {"name": "laptop", "scope": "write"}).content.decode()
    secret = page.split('<code id="secret">')[1].split("<")[0]
    assert authenticate_bearer(f"Bearer {secret}").user == alice
    assert f'izzy http://testserver/mcp --header "Authorization: Bearer {secret}"' in page
    again = browser.get("/settings/tokens/").content.decode()
    assert "laptop" in again
    assert secret not in again
    row = APIToken.objects.for_user(alice).get()
    assert secret not in str(row.__dict__)


def test_a_token_opens_the_interface_of_its_owner(alice: User) -> None:
    token, secret = token_create(user=alice, name="x", scopes=["read"])
    assert authenticate_bearer(f"bearer {secret}").pk == token.pk
    token.refresh_from_db()
    assert token.last_used_at is not None


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer izzy_",
        "Bearer izzy_wrong",
        "Basic izzy_x",
        "Bearer " + "izzy_" * 999,
    ],
)
def test_anything_else_does_not(alice: User, header: str) -> None:
    with pytest.raises(NotAuthenticated):
        authenticate_bearer(header)


def test_expired_and_revoked_tokens_and_those_of_inactive_users_are_refused(
    alice: User, bob: User
) -> None:
    _, expired = token_create(
        user=alice, name="x", scopes=["read"], expires_at=timezone.now() - timedelta(seconds=1)
    )
    token, revoked = token_create(user=alice, name="y", scopes=["read"])
    token_revoke(user_id=alice.pk, token_id=token.pk)
    _, kept_out = token_create(user=bob, name="z", scopes=["read"])
    User.objects.filter(pk=bob.pk).update(is_active=False)
    for secret in (expired, revoked, kept_out):
        with pytest.raises(NotAuthenticated):
            authenticate_bearer(f"Bearer {secret}")


def test_each_scope_includes_those_below_it(admin: User) -> None:
    token, _ = token_create(user=admin, name="x", scopes=["write"])
    require_scope(token, "read")
    require_scope(token, "write")
    require_scope(None, "admin")
    with pytest.raises(Forbidden) as caught:
        require_scope(token, "admin")
    assert caught.value.to_json()["code"] == "missing_scope"


def test_the_scope_proxy_stands_beside_the_others(admin: User) -> None:
    everything, _ = token_create(user=admin, name="x", scopes=["admin"])
    with pytest.raises(Forbidden):
        require_scope(everything, "proxy")
    proxy, _ = token_create(user=admin, name="y", scopes=["proxy"])
    require_scope(proxy, "proxy")
    with pytest.raises(Forbidden):
        require_scope(proxy, "read")


def test_the_page_gives_a_token_only_what_was_ticked(alice: User, sign_in: SignIn) -> None:
    browser = sign_in(alice)
    browser.post("/settings/tokens/", {"name": "plain", "scope": "write"})
    ticked = {"reaches_out": "on", "person_answers": "on", "proxy": "on", "proxy_memory": "inject"}
    browser.post(
        "/settings/tokens/", {"name": "free", "scope": "read", "proxy_daily_tokens": "5000", **ticked}
    )
    plain, free = APIToken.objects.for_user(alice).order_by("created_at")
    assert (plain.reaches_out, plain.person_answers, plain.scopes) == (False, False, ["write"])
    assert (free.reaches_out, free.person_answers, free.scopes) == (True, True, ["proxy", "read"])
    assert (free.proxy_memory, free.proxy_daily_tokens) == ("inject", 5000)
    refused = browser.post(
        "/settings/tokens/", {"name": "x", "scope": "read", "proxy_daily_tokens": "0"}
    )
    assert refused.status_code == 422
    assert APIToken.objects.for_user(alice).count() == 2


@pytest.mark.parametrize("scopes", [[], ["everything"], ["read", "sudo"], ["admin"]])
def test_unknown_scopes_and_admin_for_ordinary_users_are_refused(alice: User, scopes: list[str]) -> None:
    with pytest.raises(InvalidInput):
        token_create(user=alice, name="x", scopes=scopes)


@pytest.mark.parametrize("name", ["", "  ", "x" * 81, "a\x00b", "\ud800"])
def test_a_name_that_cannot_be_stored_is_refused(alice: User, name: str) -> None:
    with pytest.raises(IzzyError) as caught:
        token_create(user=alice, name=name, scopes=["read"])
    assert caught.value.status in {400, 413}


def test_there_is_an_end_to_the_number_of_tokens(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.accounts.services.TOKENS_PER_USER", 2)
    for _ in range(2):
        token_create(user=alice, name="x", scopes=["read"])
    with pytest.raises(Conflict):
        token_create(user=alice, name="x", scopes=["read"])


def test_nobody_revokes_or_sees_anothers_token(alice: User, bob: User, sign_in: SignIn) -> None:
    token, secret = token_create(user=alice, name="alices own", scopes=["read"])
    with pytest.raises(NotFound):
        token_revoke(user_id=bob.pk, token_id=token.pk)
    browser = sign_in(bob)
    assert "alices own" not in browser.get("/settings/tokens/").content.decode()
    assert browser.post(f"/settings/tokens/{token.pk}/revoke/").status_code == 404
    assert browser.post("/settings/tokens/nonsense/revoke/").status_code == 404
    assert authenticate_bearer(f"Bearer {secret}").pk == token.pk


def test_the_owner_revokes_with_the_button(alice: User, sign_in: SignIn) -> None:
    token, secret = token_create(user=alice, name="x", scopes=["read"])
    assert sign_in(alice).post(f"/settings/tokens/{token.pk}/revoke/").status_code == 302
    with pytest.raises(NotAuthenticated):
        authenticate_bearer(f"Bearer {secret}")


def test_the_command_prints_a_token_that_works(alice: User, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("createtoken", "alice", "--name", "cron", "--scope", "read", "--days", "3")
    token = authenticate_bearer(f"Bearer {capsys.readouterr().out.strip()}")
    assert (token.user, token.name, token.scopes) == (alice, "cron", ["read"])
    assert token.expires_at is not None


def test_the_command_gives_what_a_token_may_beyond_its_scopes(
    alice: User, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command(
        "createtoken", "alice", "--scope", "proxy", "--reaches-out", "--proxy-daily-tokens", "9"
    )
    token = authenticate_bearer(f"Bearer {capsys.readouterr().out.strip()}")
    assert (token.scopes, token.reaches_out, token.person_answers) == (["proxy"], True, False)
    assert token.proxy_daily_tokens == 9
    with pytest.raises(CommandError, match="proxy-daily-tokens"):
        call_command("createtoken", "alice", "--proxy-daily-tokens", "0")


def test_the_command_says_what_is_wrong(alice: User) -> None:
    with pytest.raises(CommandError, match="no user nobody"):
        call_command("createtoken", "nobody")
    with pytest.raises(CommandError, match="superuser"):
        call_command("createtoken", "alice", "--scope", "admin")
