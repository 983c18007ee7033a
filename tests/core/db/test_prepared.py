"""Queries that are compiled once and asked with other arguments."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.db.models import F, QuerySet
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import Preferences, User
from apps.core.db.prepared import prepared, prepared_update


@prepared
def preferences_of(user_id: UUID) -> QuerySet[Preferences]:
    return Preferences.objects.filter(user_id=user_id).select_related("user")


@prepared
def names(user_id: UUID, username: str) -> QuerySet[User, str]:
    return User.objects.filter(id=user_id, username=username).values_list("username", flat=True)


@prepared
def nobody_asks(user_id: UUID, username: str) -> QuerySet[User]:
    return User.objects.filter(id=user_id)


@prepared_update
def rename(user_id: UUID, name: str) -> tuple[QuerySet[Preferences], dict[str, object]]:
    return Preferences.objects.filter(user_id=user_id), {"display_name": name}


@prepared_update
def stamp(user_id: UUID) -> tuple[QuerySet[User], dict[str, object]]:
    return User.objects.filter(id=user_id), {"last_login": F("date_joined")}


@prepared
def among(user_ids: list[UUID]) -> QuerySet[User, str]:
    return (
        User.objects.filter(id__among=user_ids).order_by("username").values_list("username", flat=True)
    )


def test_a_list_of_ids_is_one_argument_however_many_there_are(alice: User, bob: User) -> None:
    assert among([alice.pk, bob.pk]) == ["alice", "bob"]
    assert among([bob.pk]) == ["bob"]
    assert among([]) == []
    assert among([uuid4() for _ in range(5000)] + [alice.pk]) == ["alice"]
    assert list(User.objects.filter(id__among=[alice.pk])) == [alice]


def test_each_call_finds_the_rows_of_its_own_arguments(alice: User, bob: User) -> None:
    for user in (alice, bob, alice):
        [row] = preferences_of(user.pk)
        assert row == Preferences.objects.get(user=user)
        assert row.toolsets == Preferences.objects.get(user=user).toolsets
        with CaptureQueriesContext(connection) as asked:
            assert row.user.username == user.username
        assert not asked
    assert preferences_of(uuid4()) == []
    assert preferences_of.first(uuid4()) is None


def test_an_argument_is_no_sql(alice: User) -> None:
    assert names(alice.pk, "alice") == ["alice"]
    assert names(alice.pk, "' OR 1=1 --") == []
    assert names(alice.pk, "%s") == []


def test_a_row_that_was_changed_is_read_anew(alice: User) -> None:
    assert preferences_of(alice.pk)[0].display_name == ""
    assert rename(alice.pk, "Alice %s 'x'") == 1
    assert preferences_of(alice.pk)[0].display_name == "Alice %s 'x'"


def test_an_update_says_how_many_rows_it_found_and_changes_no_other(alice: User, bob: User) -> None:
    assert rename(uuid4(), "nobody") == 0
    assert stamp(alice.pk) == 1
    alice.refresh_from_db()
    bob.refresh_from_db()
    assert alice.last_login == alice.date_joined
    assert bob.last_login is None


def test_an_argument_that_the_query_does_not_use_is_an_error(alice: User) -> None:
    with pytest.raises(ValueError, match="nobody_asks"):
        nobody_asks(alice.pk, "alice")


def test_it_is_one_statement_with_the_same_words_as_the_query_itself(alice: User) -> None:
    preferences_of(alice.pk)
    with CaptureQueriesContext(connection) as asked:
        preferences_of(alice.pk)
        list(Preferences.objects.filter(user_id=alice.pk).select_related("user"))
    first, second = [query["sql"] for query in asked]
    assert first == second


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
def test_threads_that_ask_at_once_find_each_its_own_rows(
    transactional_db: None, alice: User, bob: User
) -> None:
    preferences_of(alice.pk)

    def strangers(user: User) -> int:
        try:
            found = [preferences_of(user.pk) for _ in range(400)]
        finally:
            connection.close()
        return sum([row.user_id for row in rows] != [user.pk] for rows in found)

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(strangers, [alice, bob, alice, bob])) == 0
