import threading
from collections.abc import Callable
from functools import partial
from unittest.mock import AsyncMock
from uuid import UUID

import pytest
from django.db import DataError, IntegrityError, InterfaceError, OperationalError, connection
from django.test import Client

from apps.accounts.models import User
from apps.chat.conversations.folders import folder_create, folder_delete, folder_get
from apps.chat.conversations.services import conversation_create
from apps.chat.models import Folder
from apps.core.db import pool
from apps.core.db.pool import in_db, through_outage
from apps.core.db.writing import writing_for
from apps.core.errors import NotFound

Api = Callable[..., Client]

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


@pytest.mark.parametrize("way", ["program", "page"])
def test_a_request_is_answered_as_things_are_where_another_removes_meanwhile_what_it_points_to(
    alice: User, api: Api, sign_in: Api, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    folder, looks = folder_create(user_id=alice.pk, name="Trips"), []
    place = conversation_create(user_id=alice.pk)

    def remove() -> None:
        try:
            folder_delete(user_id=alice.pk, folder_id=folder.pk)
        finally:
            connection.close()

    def looked(user_id: UUID, folder_id: object) -> Folder:
        looks.append(folder_id)
        found = folder_get(user_id, folder_id)
        elsewhere = threading.Thread(target=remove)
        elsewhere.start()
        elsewhere.join()
        return found

    monkeypatch.setattr("apps.chat.api.folder_get", looked)
    chosen = partial(looked, alice.pk)
    monkeypatch.setattr("apps.chat.folders.views.folder_chosen", lambda request: chosen(folder.pk))
    if way == "program":
        body = {"folder": str(folder.pk)}
        client = api(alice, "write")
        answer = client.post("/api/v1/conversations/", body, content_type="application/json")
    else:
        answer = sign_in(alice).post(f"/c/{place.pk}/move/", {"folder": str(folder.pk)})
    refused = 404 if way == "program" else 422
    assert (answer.status_code, len(looks)) == (refused, 2), answer.content


async def test_what_has_committed_something_is_not_done_again(alice: User) -> None:
    asked = []

    def write() -> None:
        asked.append(User.objects.filter(pk=alice.pk).update(first_name="Alice"))
        folder_create(user_id=alice.pk, name="Trips")
        Folder.objects.create(user_id=UUID(int=1), name="of nobody")

    with writing_for(alice.pk), pytest.raises(IntegrityError):
        await in_db(write)
    assert len(asked) == 1


@pytest.mark.parametrize("error", [OperationalError("away"), InterfaceError("closed")])
async def test_what_must_not_be_lost_is_tried_again_while_the_database_is_away(error: Exception) -> None:
    work = AsyncMock(side_effect=[error, error, "stored"])
    assert await through_outage(work) == "stored"


@pytest.mark.parametrize("error", [IntegrityError("twice"), DataError("too long"), NotFound("gone")])
async def test_what_another_try_does_not_mend_is_not_tried_again(error: Exception) -> None:
    work = AsyncMock(side_effect=error)
    with pytest.raises(type(error)):
        await through_outage(work)
    work.assert_awaited_once()


async def test_a_database_that_stays_away_is_given_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "AWAY_SECONDS", 0.2)
    work = AsyncMock(side_effect=OperationalError("away"))
    with pytest.raises(OperationalError):
        await through_outage(work)
    assert work.await_count > 1
