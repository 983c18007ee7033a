import pytest

from apps.accounts.models import APIToken, User
from apps.accounts.services import token_create
from apps.core.models import UnscopedQuery

pytestmark = pytest.mark.django_db


def test_a_query_without_a_user_is_refused(alice: User) -> None:
    token_create(user=alice, name="x", scopes=["read"])
    for query in ("all", "count", "first", "exists", "delete"):
        with pytest.raises((UnscopedQuery, AttributeError)):
            getattr(APIToken.objects, query)()
    for query in ("filter", "get", "exclude", "update", "get_or_create"):
        with pytest.raises(UnscopedQuery):
            getattr(APIToken.objects, query)(name="x")
    assert APIToken.objects.for_user(alice).exists()


def test_a_users_query_gives_that_users_rows(alice: User, bob: User) -> None:
    token, _ = token_create(user=alice, name="x", scopes=["read"])
    token_create(user=bob, name="y", scopes=["read"])
    assert list(APIToken.objects.for_user(alice)) == [token]
    assert list(APIToken.objects.for_user(alice.pk)) == [token]
    assert APIToken.objects.unscoped().count() == 2


def test_rows_go_with_their_user(alice: User) -> None:
    token_create(user=alice, name="x", scopes=["read"])
    alice.delete()
    assert not APIToken.objects.unscoped().exists()
