"""PostgreSQL: one writer per user, who keeps nobody else waiting; what is not a user's; work that is done again; a server that
goes away."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import pytest
from django.db import DatabaseError, OperationalError, connection, connections, transaction
from django.test import Client

from apps.accounts.models import Preferences, User
from apps.accounts.services import preferences_update, setup_complete, setup_token_renew
from apps.core.db.pool import repeated
from apps.core.db.postgresql.statements import owners_of, written_by
from apps.core.db.troubles import explain
from apps.core.db.writing import (
    LOCK_SECONDS,
    UnlockedWrite,
    claim,
    lock_for_all,
    one_view,
    refusing,
    users_of,
    writing_for,
)
from apps.core.errors import Conflict, Forbidden
from apps.core.models import InstanceState
from tests.core.db.at_once import at_once
from tests.site.belongings import make_belongings
from tests.site.routes import all_routes
from tests.site.test_two_users import parameters
from tests.waiting import PATIENCE

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer for all"),
]


@pytest.fixture(autouse=True)
def _as_a_server() -> Iterator[None]:
    token = refusing.set(True)
    yield
    refusing.reset(token)


def names(user: User) -> list[str]:
    return list(Preferences.objects.filter(user=user).values_list("display_name", flat=True))


@contextmanager
def held(user: User, act: Callable[[], object] = lambda: None) -> Iterator[int]:
    """Another connection writes for the user, and has done `act`, until the end of the block; its backend's pid."""
    begun, end = threading.Event(), threading.Event()
    pids: list[int] = []

    def write() -> None:
        try:
            with writing_for(user.pk), transaction.atomic():
                act()
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_backend_pid()")
                    pids.append(cursor.fetchone()[0])
                begun.set()
                end.wait(PATIENCE)
        except OperationalError:
            pass  # it was ended from outside
        finally:
            connections.close_all()

    thread = threading.Thread(target=write)
    thread.start()
    assert begun.wait(PATIENCE)
    try:
        yield pids[0]
    finally:
        end.set()
        thread.join(PATIENCE)


@contextmanager
def impatient() -> Iterator[None]:
    """A wait for a lock on this connection fails after a moment."""
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '300ms'")
    try:
        yield
    finally:
        with connection.cursor() as cursor:  # the pool hands the connection on as it is
            cursor.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")


def test_a_user_has_one_writer_at_a_time(alice: User) -> None:
    with held(alice), impatient(), writing_for(alice.pk):
        with pytest.raises(OperationalError, match="lock timeout"), transaction.atomic():
            pass
        # The connection is as it was before.
        assert connection.get_autocommit()
        assert names(alice) == [""]


def test_two_users_do_not_wait_for_each_other_and_reads_for_nobody(alice: User, bob: User) -> None:
    with held(alice), impatient():
        with writing_for(bob.pk):
            preferences_update(user_id=bob.pk, display_name="Bob")
        with writing_for(alice.pk), one_view():
            assert names(alice) == [""]
    assert names(bob) == ["Bob"]


def test_the_lock_of_a_connection_that_dies_is_free_and_nothing_of_it_is_kept(alice: User) -> None:
    with held(alice, lambda: Preferences.objects.update(display_name="half")) as pid:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [pid])
        with writing_for(alice.pk):
            preferences_update(user_id=alice.pk, language="de")
    row = Preferences.objects.get(user=alice)
    assert (row.display_name, row.language) == ("", "de")


@pytest.mark.parametrize("whose", ["nobody", "bob"])
def test_a_write_without_the_users_lock_is_refused_and_leaves_nothing(
    alice: User, bob: User, whose: str
) -> None:
    with (
        writing_for(bob.pk if whose == "bob" else None),
        pytest.raises(UnlockedWrite, match="writing_for"),
        transaction.atomic(),
    ):
        Preferences.objects.filter(user_id=alice.pk).update(display_name="lost")
    assert names(alice) == [""]


def test_a_statement_alone_takes_the_lock_of_the_user_whom_it_names(alice: User, bob: User) -> None:
    own = Preferences.objects.filter(user_id=alice.pk)
    own.update(display_name="Alice")
    with held(alice), impatient(), pytest.raises(OperationalError, match="lock timeout"):
        own.update(display_name="late")
    with writing_for(alice.pk):
        Preferences.objects.filter(pk__in=[alice.pk]).update(language="de")
    with pytest.raises(UnlockedWrite):
        Preferences.objects.all().update(display_name="everybody")
    with claim():
        Preferences.objects.all().update(time_zone="Europe/Berlin")
    assert names(alice) + names(bob) == ["Alice", ""]
    assert set(Preferences.objects.values_list("time_zone", flat=True)) == {"Europe/Berlin"}


def test_a_lock_that_was_taken_inside_goes_with_what_was_rolled_back(alice: User) -> None:
    own = Preferences.objects.filter(user_id=alice.pk)
    with transaction.atomic():
        with suppress(Conflict), transaction.atomic():
            with writing_for(alice.pk), transaction.atomic():
                own.update(display_name="half")
            raise Conflict
        with pytest.raises(UnlockedWrite), transaction.atomic():
            own.update(display_name="unlocked")
        with writing_for(alice.pk), transaction.atomic():
            own.update(display_name="whole")
    assert names(alice) == ["whole"]


def test_a_sweep_writes_user_by_user(alice: User, bob: User) -> None:
    for user_id, own in users_of(Preferences.objects.all()):
        with transaction.atomic():
            own.update(display_name=str(user_id))
    assert names(alice) + names(bob) == [str(alice.pk), str(bob.pk)]


@pytest.mark.parametrize(
    ("sql", "parameters", "owner"),
    [
        ('INSERT INTO "memory_memory" ("id", "user_id") VALUES (%s, %s)', "ab", "b"),
        (
            'INSERT INTO "memory_memory" ("id", "created_at", "user_id") VALUES (%s, NOW(), %s)',
            "ab",
            "b",
        ),
        (
            'INSERT INTO "memory_memory" ("id", "user_id") SELECT * FROM UNNEST((%s)::uuid[], (%s)::uuid[])',
            "ab",
            "b",
        ),
        ('UPDATE "memory_memory" SET "content" = %s WHERE "memory_memory"."user_id" = %s', "ab", "b"),
        ('DELETE FROM "memory_memory" WHERE "memory_memory"."user_id" = (%s)', "a", "a"),
        ('UPDATE "memory_memory" SET "content" = %s WHERE "memory_memory"."id" = %s', "ab", ""),
        ('UPDATE "core_instancestate" SET "value" = %s', "a", None),
        ('SELECT 1 FROM "memory_memory" WHERE "user_id" = %s', "a", None),
    ],
)
def test_a_statement_says_whose_rows_it_writes(
    alice: User, bob: User, sql: str, parameters: str, owner: str | None
) -> None:
    ids = {"a": alice.pk, "b": bob.pk}
    written = written_by(sql)
    assert (written is None) == (owner is None)
    if written is not None:
        found = owners_of(written, [ids[name] for name in parameters], many=False)
        assert found == {ids[name] for name in owner or ""}


def test_what_is_of_all_users_is_one_after_the_other(db: None) -> None:
    InstanceState.objects.create(key="shared", value={"count": 0})

    def add(_: int) -> None:
        for _round in range(5):
            with transaction.atomic():
                lock_for_all("shared")
                row = InstanceState.objects.get(key="shared")
                row.value = {"count": row.value["count"] + 1}
                row.save()

    at_once([partial(add, number) for number in range(4)])
    assert InstanceState.objects.get(key="shared").value == {"count": 20}


def test_the_set_up_link_makes_one_superuser_however_often_it_is_used_at_once(db: None) -> None:
    token = setup_token_renew()

    def set_up(number: int) -> bool:
        try:
            setup_complete(token=token, username=f"user{number}", password="correct horse battery")
        except (Conflict, Forbidden):
            return False
        return True

    assert sorted(at_once([partial(set_up, number) for number in range(3)])) == [False, False, True]
    assert User.objects.count() == 1


def test_two_that_wait_for_each_other_both_come_to_their_end(alice: User, bob: User) -> None:
    both_hold = threading.Barrier(2)

    def write(first: User, second: User) -> None:
        tries: list[int] = []

        @transaction.atomic
        def work() -> None:
            tries.append(1)
            with claim():
                for user in (first, second):
                    Preferences.objects.filter(user_id__in=[user.pk]).update(display_name=first.username)
                    if user is first and len(tries) == 1:
                        both_hold.wait(PATIENCE)

        repeated(work)

    at_once([partial(write, alice, bob), partial(write, bob, alice)])
    assert names(alice) == names(bob)


def test_what_has_committed_something_is_not_done_again(alice: User) -> None:
    tries: list[int] = []

    def work() -> None:
        tries.append(1)
        with writing_for(alice.pk):
            preferences_update(user_id=alice.pk, display_name=f"try {len(tries)}")
        with connection.cursor() as cursor:
            cursor.execute("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$")

    with pytest.raises(OperationalError):
        repeated(work)
    assert names(alice) == ["try 1"]


@pytest.mark.parametrize("writes", [False, True])
def test_a_connection_that_broke_is_made_anew(alice: User, writes: bool) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()

    def end() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [pid])

    def write() -> None:
        with writing_for(alice.pk):
            preferences_update(user_id=alice.pk, display_name="Alice")

    at_once([end])
    repeated(write if writes else lambda: names(alice))
    assert names(alice) == ["Alice" if writes else ""]


def test_what_broke_within_a_block_of_a_transaction_is_done_again(alice: User) -> None:
    tries: list[int] = []

    def work() -> list[str]:
        tries.append(len(tries))
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            with transaction.atomic():
                if len(tries) == 1:
                    cursor.execute("SELECT pg_terminate_backend(%s)", cursor.fetchone())
                return names(alice)

    assert repeated(work) == [""]
    assert len(tries) == 2


@pytest.mark.parametrize(
    ("state", "part"),
    [
        ("53100", "disk is full"),
        ("53300", "no more connections"),
        ("25006", "takes no writes"),
        ("40P01", "Something else"),
        ("57P01", "does not answer"),
        ("XX001", "damaged"),
    ],
)
def test_a_trouble_of_the_server_is_put_in_an_operators_words(db: None, state: str, part: str) -> None:
    with connection.cursor() as cursor, pytest.raises(DatabaseError) as caught:
        cursor.execute(f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{state}'; END $$")
    trouble = explain(caught.value)
    assert trouble is not None
    assert part in trouble.message


def test_no_page_and_no_get_waits_for_a_writer(
    admin: User, sign_in: Callable[[User], Client], api: Callable[..., Client]
) -> None:
    refusing.set(None)
    browser, program = sign_in(admin), api(admin)
    values = {name: given[0] for name, given in parameters(make_belongings(admin)).items()}
    browser.get("/")
    waited = {}
    with held(admin), impatient():
        for route in all_routes():
            if "event" in route.path or not set(route.parameters) <= values.keys():
                continue
            client = program if route.path.startswith("api/v1/") else browser
            try:
                answer = client.get(route.url(values))
                said = b"".join(answer) if answer.streaming else answer.content
            except OperationalError as error:
                said = str(error).encode()
            if b"lock timeout" in said or b"database_busy" in said:
                waited[route.path] = said
    assert waited == {}
