"""Looking at a conversation keeps nobody from writing."""

import threading

from django.db import connection

from apps.accounts.models import User
from apps.chat.conversations.services import conversation_create
from apps.chat.models import Conversation
from apps.core.db.writing import one_view
from tests.waiting import PATIENCE


def rename_elsewhere(title: str) -> None:
    """A write from another connection, which gives up after a second."""

    def write() -> None:
        patience = (
            "PRAGMA busy_timeout = 1000" if connection.vendor == "sqlite" else "SET lock_timeout = 1000"
        )
        with connection.cursor() as cursor:
            cursor.execute(patience)
        Conversation.objects.unscoped().update(title=title)
        done.append(title)
        connection.close()

    done: list[str] = []
    thread = threading.Thread(target=write)
    thread.start()
    thread.join(PATIENCE)
    assert done == [title]


def test_a_view_stays_the_same_while_others_write(alice: User) -> None:
    place = conversation_create(user_id=alice.id, title="Before")

    def title() -> str:
        return Conversation.objects.for_user(alice).get(id=place.id).title

    with one_view():
        assert title() == "Before"
        rename_elsewhere("After")
        with one_view():
            assert title() == "Before"
        assert title() == "Before"
    assert title() == "After"


def test_one_can_write_again_after_a_view(alice: User) -> None:
    place = conversation_create(user_id=alice.id, title="Before")
    try:
        with one_view():
            raise KeyError
    except KeyError:
        place.title = "After"
        place.save()
    place.refresh_from_db()
    assert place.title == "After"
