"""Belongings that are made once for a module: each test finds them as they were made, as it is undone on its own."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from django.db import transaction
from pytest_django import DjangoDbBlocker

from apps.search.index import cache as searched
from tests.conftest import make_user
from tests.site.belongings import Belongings, make_belongings

Standing = Callable[[], AbstractContextManager[None]]


@pytest.fixture(scope="module")
def standing(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Standing:
    """Rows made within stand there until it ends, below the transactions of the tests."""

    @contextmanager
    def below() -> Iterator[None]:
        with django_db_blocker.unblock(), transaction.atomic():
            yield
            transaction.set_rollback(True)

    return below


@pytest.fixture(scope="module")
def _hers(standing: Standing) -> Iterator[Belongings]:
    with standing():
        yield make_belongings(make_user("alice"))


@pytest.fixture
def hers(_hers: Belongings, db: None) -> Iterator[Belongings]:
    """Alice's, in modules that ask for no other alice."""
    yield _hers
    searched.forget()  # the number of a change that was undone counts another one in the next test
