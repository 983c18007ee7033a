"""The cast of every test: alice, who owns what is looked at; bob, who works beside her; charlie, a stranger to both; and
the instance's admin. Each signed in where a test asks for a client."""

import faulthandler
import gc
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterator
from copy import copy
from functools import cache
from typing import Any
from unittest.mock import patch

import httpx
import httpx2
import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from django.db import connection
from django.template import Template
from django.test import Client, TransactionTestCase
from django.test import client as test_client
from django.test.utils import ContextList
from httpx._transports import default as httpx_transports
from httpx2._transports import default as httpx2_transports
from hypothesis import settings as hypothesis

from apps.accounts.models import Preferences, User
from apps.accounts.services import token_create
from benchmarks import _scratch
from tests import forks
from tests.database import empty_tables
from tests.peers.anthropic_server import AnthropicServer
from tests.peers.prepared import migrated
from tests.peers.redis_server import redis_url  # noqa: F401  a fixture
from tests.writer import requests_refuse_unlocked

PASSWORD = "correct horse battery"
TEARDOWN_SECONDS = 120
DATABASE_FIXTURES = {
    "db",
    "transactional_db",
    "server",
    "site",
    "izzy",
    "running",
    "served",
    "model_server",
}
"""Fixtures with a database behind them, in this process or one of its own."""

# What is collected stays: Python need not look through all of it for garbage, now or later (`pytest_collection_finish`).
gc.disable()

# The same examples each time, and none is timed. For others: --hypothesis-profile default.
hypothesis.load_profile("ci")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that take long begin first, those with a time limit of their own before all, so that in the end no worker waits for
    another's longest test."""
    items.sort(key=lambda item: [item.get_closest_marker(name) is None for name in ("long", "timeout")])
    if "TEST_DATABASE_URL" in os.environ:
        same = [item for item in items if not _touches_a_database(item)]
        items[:] = [item for item in items if _touches_a_database(item)]
        config.hook.pytest_deselected(items=same)


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def _touches_a_database(item: pytest.Item) -> bool:
    """A test that does not is the same whatever the database."""
    fixtures = set(getattr(item, "fixturenames", ()))
    return item.get_closest_marker("django_db") is not None or bool(fixtures & DATABASE_FIXTURES)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """After a failure nothing limits a test any more, as somebody may be looking at it in a debugger. One that hangs then
    ends its process, which pytest-xdist replaces, and is named."""
    said = item.config.stash[fault_handler_stderr_fd_key]
    faulthandler.dump_traceback_later(TEARDOWN_SECONDS, exit=True, file=said)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """The test database is there before: see the next."""
    return True


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """On SQLite each process of a test run begins with a copy of the tables that one of them made."""
    if connection.vendor == "sqlite":
        shutil.copyfile(migrated() / "izzy.sqlite3", connection.settings_dict["TEST"]["NAME"])


@pytest.fixture(scope="session", autouse=True)
def _quick_flush() -> Iterator[None]:
    """A test that commits leaves the tables empty, as ever, but in less time."""
    with patch.object(TransactionTestCase, "_fixture_teardown", empty_tables):
        yield


@pytest.fixture(scope="session", autouse=True)
def _page_context_alone() -> Iterator[None]:
    """An answer has the context of its page. Django would add a copy for each part that is included in it, for a quarter of what
    a page takes."""

    def keep(kept: dict[str, Any], *, template: Template, context: Any, **_: Any) -> None:
        if "context" not in kept:
            kept |= {"templates": [template], "context": ContextList([copy(context)])}

    with patch.object(test_client, "store_rendered_templates", keep):
        yield


@pytest.fixture(scope="session", autouse=True)
def _certificates_once() -> Iterator[None]:
    """Each client of httpx would read all certificates of this world, for 20 ms."""
    with (
        patch.object(httpx_transports, "create_ssl_context", cache(httpx.create_ssl_context)),
        patch.object(httpx2_transports, "create_ssl_context", cache(httpx2.create_ssl_context)),
    ):
        yield


@pytest.fixture(scope="session", autouse=True)
def _quick_starts() -> None:
    if sys.platform == "linux":
        forks.install()


@pytest.fixture
def started_for_real(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process that the test starts begins as an operator's does, with an interpreter of its own."""
    monkeypatch.setattr(forks, "source", None)


@pytest.fixture(scope="session", autouse=True)
def _quick_scratch() -> Iterator[None]:
    """A benchmark's database begins as that of the tests does."""

    def copied(command: str, *, verbosity: int) -> None:
        shutil.copyfile(migrated() / "izzy.sqlite3", connection.settings_dict["NAME"])

    if connection.vendor != "sqlite":
        yield
        return
    with patch.object(_scratch, "call_command", copied):
        yield


@pytest.fixture(scope="session", autouse=True)
def _as_web_processes_do() -> Iterator[None]:
    with requests_refuse_unlocked():
        yield


@pytest.fixture(scope="module")
def peer() -> Iterator[AnthropicServer]:
    """A server of the Messages API on a thread of its own, as the model of servers that are processes: it answers turns by its
    script, and side jobs by itself."""
    with AnthropicServer.in_thread(turns_only=True) as server:
        yield server


def make_user(name: str, *, superuser: bool = False) -> User:
    user = User.objects.create_user(name, password=PASSWORD, is_superuser=superuser, is_staff=superuser)
    Preferences.objects.create(user=user)
    return user


@pytest.fixture
def alice(db: None) -> User:
    return make_user("alice")


@pytest.fixture
def bob(db: None) -> User:
    return make_user("bob")


@pytest.fixture
def charlie(db: None) -> User:
    return make_user("charlie")


@pytest.fixture
def admin(db: None) -> User:
    return make_user("admin", superuser=True)


@pytest.fixture
def sign_in() -> Callable[[User], Client]:
    """A browser in which the given user is signed in."""

    def signed_in(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return signed_in


@pytest.fixture
def api() -> Callable[..., Client]:
    """A program with a bearer token of the given user: `api(alice)`, `api(alice, "read")`."""

    def with_token(user: User, *scopes: str) -> Client:
        _, secret = token_create(user=user, name="test", scopes=scopes or ("read", "write"))
        return Client(headers={"authorization": f"Bearer {secret}"})

    return with_token
