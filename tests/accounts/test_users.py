import re
from collections.abc import Callable
from uuid import UUID

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from apps.accounts import services
from apps.accounts.models import Preferences, User
from apps.accounts.services import token_create, user_create, user_delete, users_delete_pending
from apps.core.errors import Conflict
from apps.core.registries import account_deleters
from tests.conftest import PASSWORD
from tests.failing import fails_first

pytestmark = pytest.mark.django_db

SignIn = Callable[[User], Client]


def opens(token: str) -> bool:
    """Whether an API token lets a program in."""
    headers = {"Authorization": f"Bearer {token}"}
    return Client().get("/api/v1/memories/", headers=headers).status_code == 200


def change(browser: Client, user: User, **ticked: str) -> str:
    """Sends the admin's form of an account with these boxes ticked; returns the page that comes."""
    dates = {"date_joined_0": "2031-05-01", "date_joined_1": "12:00:00"}
    form = {"username": user.username} | dates | ticked
    response = browser.post(f"/admin/accounts/user/{user.pk}/change/", form, follow=True)
    user.refresh_from_db()
    return response.content.decode()


def shown_password(response: object) -> str:
    found = re.search(r'<code id="secret">([^<]+)<', response.content.decode())  # type: ignore[attr-defined]
    assert found
    return found[1]


def test_the_superuser_adds_a_user_who_can_sign_in_with_the_password_shown(
    admin: User, sign_in: SignIn
) -> None:
    response = sign_in(admin).post("/settings/users/", {"username": "dora"})
    credentials = {"username": "dora", "password": shown_password(response)}
    assert Client().post("/sign-in/", credentials).status_code == 302
    assert not User.objects.get(username="dora").is_superuser


@pytest.mark.parametrize("typed", ["ｔａｒｏ", "jose\u0301"])
def test_a_name_opens_as_it_was_typed_when_it_was_given(
    admin: User, sign_in: SignIn, typed: str
) -> None:
    response = sign_in(admin).post("/settings/users/", {"username": typed})
    credentials = {"username": typed, "password": shown_password(response)}
    assert Client().post("/sign-in/", credentials).status_code == 302


@pytest.mark.parametrize("name", ["alice", "ALICE", "", "a b", "x" * 151, "a\x00"])
def test_taken_and_bad_names_are_refused(admin: User, alice: User, sign_in: SignIn, name: str) -> None:
    assert sign_in(admin).post("/settings/users/", {"username": name}).status_code == 422
    assert User.objects.count() == 2


def test_a_reset_password_replaces_the_old_one_and_ends_sessions_and_tokens(
    admin: User, alice: User, sign_in: SignIn
) -> None:
    browser = sign_in(alice)
    tokens = [token_create(user=user, name="x", scopes=["read"])[1] for user in (alice, alice, admin)]
    response = sign_in(admin).post(f"/settings/users/{alice.pk}/password/")
    assert browser.get("/settings/").status_code == 302
    assert "2 API tokens are revoked" in response.content.decode()
    assert [opens(token) for token in tokens] == [False, False, True]
    assert Client().post("/sign-in/", {"username": "alice", "password": PASSWORD}).status_code == 422
    new = {"username": "alice", "password": shown_password(response)}
    assert Client().post("/sign-in/", new).status_code == 302


def test_a_user_is_kept_out_and_let_in_again(admin: User, alice: User, sign_in: SignIn) -> None:
    browser = sign_in(admin)
    browser.post(f"/settings/users/{alice.pk}/active/", {"active": "no"})
    assert Client().post("/sign-in/", {"username": "alice", "password": PASSWORD}).status_code == 422
    browser.post(f"/settings/users/{alice.pk}/active/", {"active": "yes"})
    assert Client().post("/sign-in/", {"username": "alice", "password": PASSWORD}).status_code == 302


def test_the_last_superuser_can_neither_be_kept_out_nor_deleted(
    admin: User, alice: User, sign_in: SignIn
) -> None:
    browser = sign_in(admin)
    browser.post(f"/settings/users/{admin.pk}/active/", {"active": "no"})
    browser.post(f"/settings/users/{admin.pk}/delete/")
    response = browser.post("/settings/delete/", {"current": PASSWORD})
    assert response.status_code == 422
    admin.refresh_from_db()
    assert admin.is_active


def test_the_superuser_deletes_a_user_with_everything(admin: User, alice: User, sign_in: SignIn) -> None:
    token_create(user=alice, name="x", scopes=["read"])
    sign_in(admin).post(f"/settings/users/{alice.pk}/delete/")
    assert not User.objects.filter(username="alice").exists()
    assert not Preferences.objects.filter(user_id=alice.pk).exists()


@pytest.mark.parametrize("ticked", ["is_active", "is_superuser"])
def test_nor_does_the_admin_keep_the_last_superuser_out(
    admin: User, alice: User, sign_in: SignIn, ticked: str
) -> None:
    page = change(sign_in(admin), admin, is_staff="on", **{ticked: "on"})
    assert "The last superuser must stay" in page
    assert admin.is_active
    assert admin.is_superuser


def test_in_the_admin_another_superuser_becomes_an_ordinary_user(
    admin: User, alice: User, sign_in: SignIn
) -> None:
    browser = sign_in(admin)
    for ticked in ({"is_superuser": "on"}, {}):
        assert "was changed successfully" in change(browser, alice, is_active="on", **ticked)
        assert alice.is_superuser is bool(ticked)


def test_the_admin_lets_nobody_into_an_account_that_is_being_deleted(
    admin: User, alice: User, sign_in: SignIn
) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False, leaving_at=timezone.now())
    assert "This account is being deleted." in change(sign_in(admin), alice, is_active="on")
    assert not alice.is_active


def test_where_the_admin_would_delete_the_last_superuser_it_deletes_nobody(
    admin: User, alice: User, bob: User, sign_in: SignIn
) -> None:
    browser = sign_in(admin)
    some = {
        "action": "delete_selected",
        "_selected_action": [str(admin.pk), str(alice.pk)],
        "post": "yes",
    }
    one = browser.post(f"/admin/accounts/user/{admin.pk}/delete/", {"post": "yes"})
    for response in (one, browser.post("/admin/accounts/user/", some)):
        assert "The last superuser must stay" in response.content.decode()
    assert User.objects.count() == 3
    assert not LogEntry.objects.exists()


def test_the_admin_deletes_chosen_users_with_everything(
    admin: User, alice: User, bob: User, sign_in: SignIn
) -> None:
    User.objects.filter(pk=alice.pk).update(is_superuser=True)
    some = {
        "action": "delete_selected",
        "_selected_action": [str(alice.pk), str(bob.pk)],
        "post": "yes",
    }
    sign_in(admin).post("/admin/accounts/user/", some)
    assert list(User.objects.all()) == [admin]
    assert not Preferences.objects.exclude(user=admin).exists()


@pytest.mark.parametrize("path", ["", "{pk}/password/", "{pk}/active/", "{pk}/delete/"])
def test_ordinary_users_may_do_none_of_it(alice: User, bob: User, sign_in: SignIn, path: str) -> None:
    response = sign_in(bob).post(
        "/settings/users/" + path.format(pk=alice.pk), {"username": "eve", "active": "no"}
    )
    assert response.status_code == 403
    alice.refresh_from_db()
    assert alice.is_active
    assert alice.check_password(PASSWORD)
    assert not User.objects.filter(username="eve").exists()


@pytest.mark.parametrize("pk", ["nonsense", "00000000-0000-7000-8000-000000000000"])
def test_unknown_users_are_not_found(admin: User, sign_in: SignIn, pk: str) -> None:
    for action in ("password", "active", "delete"):
        assert sign_in(admin).post(f"/settings/users/{pk}/{action}/").status_code == 404


@pytest.mark.parametrize("ticked", [True, False])
def test_one_changes_ones_own_password_and_says_what_becomes_of_tokens(
    alice: User, bob: User, sign_in: SignIn, ticked: bool
) -> None:
    here, elsewhere = sign_in(alice), sign_in(alice)
    own, anothers = (token_create(user=user, name="x", scopes=["read"])[1] for user in (alice, bob))
    assert re.search(
        r'name="revoke_tokens"[^>]*checked', here.get("/settings/password/").content.decode()
    )
    new = {"current": PASSWORD, "password": "an entirely new one"} | (
        {"revoke_tokens": "on"} if ticked else {}
    )
    told = here.post("/settings/password/", new, follow=True).content.decode()
    assert "Your password is changed." in told
    assert ("Your API tokens are revoked." in told) is ticked
    assert elsewhere.get("/settings/").status_code == 302
    assert (opens(own), opens(anothers)) == (not ticked, True)
    alice.refresh_from_db()
    assert alice.check_password("an entirely new one")


def test_who_has_no_tokens_is_not_asked_about_them(alice: User, sign_in: SignIn) -> None:
    assert "revoke_tokens" not in sign_in(alice).get("/settings/password/").content.decode()


def test_a_password_set_in_the_admin_ends_tokens_too(admin: User, alice: User, sign_in: SignIn) -> None:
    _, token = token_create(user=alice, name="x", scopes=["read"])
    new = {
        "password1": "an entirely new one",
        "password2": "an entirely new one",
        "usable_password": "true",
    }
    assert sign_in(admin).post(f"/admin/accounts/user/{alice.pk}/password/", new).status_code == 302
    alice.refresh_from_db()
    assert alice.check_password("an entirely new one")
    assert not opens(token)


@pytest.mark.parametrize(
    ("current", "new"), [("wrong", "an entirely new one"), (PASSWORD, "short"), (PASSWORD, "")]
)
def test_a_wrong_current_or_weak_new_password_changes_nothing(
    alice: User, sign_in: SignIn, current: str, new: str
) -> None:
    response = sign_in(alice).post("/settings/password/", {"current": current, "password": new})
    assert response.status_code == 422
    alice.refresh_from_db()
    assert alice.check_password(PASSWORD)


def test_the_admin_leads_to_the_page_on_which_guesses_at_the_password_are_counted(
    admin: User, sign_in: SignIn
) -> None:
    new = {"old_password": PASSWORD, "new_password1": "an entirely new one"}
    answer = sign_in(admin).post(
        "/admin/password_change/", {**new, "new_password2": "an entirely new one"}
    )
    assert (answer.status_code, answer.headers["Location"]) == (302, "/settings/password/")
    admin.refresh_from_db()
    assert admin.check_password(PASSWORD)


def test_one_deletes_ones_own_account_with_the_password(
    admin: User, alice: User, sign_in: SignIn
) -> None:
    browser = sign_in(alice)
    assert browser.post("/settings/delete/", {"current": "wrong"}).status_code == 422
    assert User.objects.filter(username="alice").exists()
    assert browser.post("/settings/delete/", {"current": PASSWORD}).status_code == 302
    assert not User.objects.filter(username="alice").exists()


def test_what_other_apps_keep_beside_their_rows_is_purged_with_the_account(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    purged: set[UUID] = set()
    owner = alice.pk

    def purge(user_id: UUID) -> int:
        assert User.objects.filter(pk=user_id).exists()
        purged.add(user_id)
        return 1

    monkeypatch.setitem(account_deleters, "test", purge)
    user_delete(user=alice)
    assert purged == {owner}


def test_the_first_user_alone_may_delete_the_whole(admin: User) -> None:
    user_delete(user=admin)
    assert not User.objects.exists()


def test_names_differ_by_more_than_case(alice: User) -> None:
    with pytest.raises(Conflict):
        user_create(username="Alice", password=PASSWORD)


def test_names_differ_by_more_than_the_way_they_are_typed(db: None) -> None:
    user_create(username="file", password="correct horse battery")
    with pytest.raises(Conflict):
        user_create(username="\ufb01le", password="correct horse battery")


def test_deleting_in_the_admin_purges_too(
    admin: User, alice: User, bob: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    purged: set[UUID] = set()

    def purge(user_id: UUID) -> int:
        purged.add(user_id)
        return 1

    monkeypatch.setitem(account_deleters, "test", purge)
    owners = {alice.pk, bob.pk}
    browser = sign_in(admin)
    browser.post(f"/admin/accounts/user/{alice.pk}/delete/", {"post": "yes"})
    chosen = {"action": "delete_selected", "_selected_action": [str(bob.pk)], "post": "yes"}
    browser.post("/admin/accounts/user/", chosen)
    assert purged == owners
    assert set(User.objects.values_list("username", flat=True)) == {"admin"}


def test_an_account_that_cannot_be_deleted_for_now_keeps_no_other(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    User.objects.update(is_active=False, leaving_at=timezone.now())
    monkeypatch.setattr(services, "user_delete", fails_first(user_delete))
    with pytest.raises(ValueError, match="broken"):
        users_delete_pending()
    assert User.objects.count() == 1
    users_delete_pending()
    assert not User.objects.exists()
