import threading

import pytest

from apps.accounts.models import User
from apps.core.db.pool import in_db
from apps.core.errors import NotFound

pytestmark = pytest.mark.django_db(transaction=True)


async def test_it_sees_and_stores_rows_from_its_own_thread(alice: User) -> None:
    def rename() -> int:
        assert threading.current_thread().name.startswith("izzy-db")
        return User.objects.filter(pk=alice.pk).update(first_name="Alice")

    assert await in_db(rename) == 1
    assert await in_db(lambda: User.objects.get(pk=alice.pk).first_name) == "Alice"


async def test_what_the_function_raises_is_raised_to_the_caller() -> None:
    def fail() -> None:
        raise NotFound("gone")

    with pytest.raises(NotFound, match="gone"):
        await in_db(fail)
