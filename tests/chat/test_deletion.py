"""Long conversations and accounts with many are deleted slice by slice: others write in between, nobody sees a half, and a
crash in the middle leaves nothing behind."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.db import connection, connections
from django.db.models import Model
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.services import user_delete, user_set_active, users_delete_pending
from apps.agent.models import ModelCall, ToolCall
from apps.chat.conversations.handover import messages_capture_pending, messages_index_pending
from apps.chat.conversations.ingest import messages_ingest
from apps.chat.conversations.services import (
    conversation_create,
    conversation_delete,
    conversation_hide,
    conversation_restore,
    conversations_delete_pending,
)
from apps.chat.models import Conversation, Message, Turn, TurnEvent
from apps.chat.turns.queue import conversation_take, work_next
from apps.chat.turns.scheduler import conversations_left
from apps.chat.turns.services import message_send
from apps.core.db import writing
from apps.core.errors import Conflict, Forbidden, NotFound
from apps.core.jobs.leases import LeaseLost
from apps.memory.models import CaptureWindow, MemoryUse, UsedIn
from apps.memory.notes.creation import memory_create
from apps.search.backends import Stem, backend
from apps.search.documents import Scope, Source
from apps.search.models import IndexOwner, Passage, Tombstone
from apps.search.selectors import search
from tests.conftest import PASSWORD

MANY = 450
OF_A_USER: list[type[Model]] = [Conversation, Message, Turn, TurnEvent, ToolCall, ModelCall, Passage]

Api = Callable[..., Client]


class Killed(BaseException):
    """The process is gone."""


def a_long_talk(user: User, session: str = "s", number: int = MANY) -> UUID:
    said = [{"role": "user", "content": f"Albatross {place}"} for place in range(number)]
    return messages_ingest(user_id=user.pk, session=session, messages=said).conversation_id


def left() -> dict[str, int]:
    counts = {model.__name__: model._base_manager.count() for model in OF_A_USER}
    return {name: count for name, count in counts.items() if count}


def in_between(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> list[int]:
    """Has another thread `act` between two slices; how often it did."""
    done: list[int] = []

    def pause(seconds: float) -> None:
        assert not connection.in_atomic_block
        with ThreadPoolExecutor(1) as pool:
            pool.submit(with_own_connection).result(timeout=60)
        done.append(1)

    def with_own_connection() -> None:
        try:
            act()
        finally:
            connections.close_all()

    monkeypatch.setattr(writing, "time", SimpleNamespace(sleep=pause))
    return done


def killed_in_between(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> None:
    def kill(seconds: float) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(writing, "time", SimpleNamespace(sleep=kill))
        with pytest.raises(Killed):
            work()


def test_others_write_while_a_long_conversation_goes_and_nobody_sees_half_of_it(
    alice: User, bob: User, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, program = a_long_talk(alice), api(alice)

    def meanwhile() -> None:
        conversation_create(user_id=bob.pk)
        assert program.get("/api/v1/conversations/").json()["count"] == 0
        assert program.get("/api/v1/conversations/?q=Albatross").json()["count"] == 0
        assert program.get(f"/api/v1/conversations/{place}/").status_code == 404

    done = in_between(monkeypatch, meanwhile)
    conversation_delete(user_id=alice.pk, conversation_id=place)
    assert len(done) >= MANY // writing.SLICE
    assert left() == {"Conversation": len(done)}
    assert not Conversation.objects.for_user(alice).exists()


def test_what_a_crash_left_of_a_conversation_is_out_of_sight_and_goes_with_the_next_sweep(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = a_long_talk(alice)
    killed_in_between(monkeypatch, lambda: conversation_delete(user_id=alice.pk, conversation_id=place))
    assert 0 < Message.objects.unscoped().count() < MANY
    assert not Conversation.objects.for_user(alice).exists()
    again = a_long_talk(alice, number=2)
    assert again != place
    conversations_delete_pending()
    assert left() == {"Conversation": 1, "Message": 2, "Passage": 2}
    assert [row.pk for row in Conversation.objects.for_user(alice)] == [again]


def test_nobody_runs_or_continues_a_conversation_that_is_being_deleted(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = conversation_create(user_id=alice.pk).pk
    message_send(user_id=alice.pk, text="Hello", conversation=str(place))
    Turn.objects.unscoped().update(created_at="2020-01-01T00:00:00Z")
    assert conversation_take(place)
    monkeypatch.setattr("apps.chat.conversations.services._slice", lambda *given: False)
    conversation_delete(user_id=alice.pk, conversation_id=place)
    with pytest.raises(LeaseLost):
        work_next(place, None)
    with pytest.raises(LeaseLost):
        Conversation.lease_extend(place)
    assert conversation_take(place, "other") is None
    assert conversations_left() == []
    with pytest.raises(NotFound):
        message_send(user_id=alice.pk, text="Hello?", conversation=str(place))


def a_life(user: User) -> None:
    """Two conversations, one with a turn, and what the agent notes of it."""
    a_long_talk(user)
    place = conversation_create(user_id=user.pk)
    sent = message_send(user_id=user.pk, text="Hello", conversation=str(place.pk))
    conversation_take(place.pk)
    work_next(place.pk, None)
    TurnEvent.objects.create(
        conversation=place, turn_id=sent.turn_id, seq=1, last_seq=1, type="turn_started"
    )
    ToolCall.objects.create(
        user=user, conversation_id=place.pk, turn_id=sent.turn_id, round=1, position=0, name="think"
    )
    ModelCall.objects.create(
        user=user, turn_id=sent.turn_id, purpose="chat", model="m", endpoint="custom"
    )


def test_others_write_while_an_account_goes_whose_user_can_no_longer_get_in(
    alice: User, bob: User, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_life(alice)
    his = a_long_talk(bob, number=3)
    number = IndexOwner.objects.get(user=alice).number
    program = api(alice)

    def meanwhile() -> None:
        conversation_create(user_id=bob.pk)
        assert not Client().login(username="alice", password=PASSWORD)
        assert program.get("/api/v1/conversations/").status_code == 401
        with pytest.raises(Forbidden):
            message_send(user_id=alice.pk, text="From an open socket")
        with pytest.raises(Conflict):
            user_set_active(user=User.objects.get(pk=alice.pk), active=True)

    done = in_between(monkeypatch, meanwhile)
    user_delete(user=alice)
    assert len(done) >= 2 * (MANY // writing.SLICE)
    assert left() == {"Conversation": 1 + len(done), "Message": 3, "Passage": 3}
    assert not User.objects.filter(username="alice").exists()
    assert not Tombstone.objects.exists()
    assert len(backend.postings(number, [Stem("albatross")])[0]) == 0
    assert Conversation.objects.for_user(bob).filter(pk=his).exists()


def test_what_a_crash_left_of_an_account_goes_with_the_next_sweep(
    alice: User, admin: User, sign_in: Callable[[User], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    a_life(alice)
    killed_in_between(monkeypatch, lambda: user_delete(user=alice))
    assert Message.objects.unscoped().exists()
    assert "being deleted" in sign_in(admin).get("/settings/users/").content.decode()
    users_delete_pending()
    assert left() == {}
    assert list(User.objects.all()) == [admin]


@pytest.mark.parametrize("name", ["conversation", "message", "turn"])
def test_what_is_deleted_in_the_admin_is_not_found_by_search_any_more(
    alice: User, admin: User, sign_in: Callable[[User], Client], name: str
) -> None:
    place = a_long_talk(alice, number=2)
    turn = Turn.objects.create(user=alice, conversation_id=place)
    Message.objects.unscoped().update(turn=turn)
    key = {"conversation": place, "turn": turn.pk, "message": Message.objects.unscoped()[0].pk}[name]
    sign_in(admin).post(f"/admin/chat/{name}/{key}/delete/", {"post": "yes"})
    kept = 1 if name == "message" else 0
    assert (Message.objects.unscoped().count(), Passage.objects.count()) == (kept, kept)


# --- Brought back ---------------------------------------------------------------------------------------------------


def found(user: User) -> list[str]:
    scope = Scope(sources=frozenset({Source.CONVERSATION}))
    return [hit.text for hit in search(user.pk, "albatross", scope=scope)]


def test_a_conversation_that_was_deleted_on_its_page_is_brought_back_whole(
    alice: User, bob: User, api: Api, sign_in: Callable[[User], Client]
) -> None:
    place = a_long_talk(alice, number=3)
    browser, other = sign_in(alice), sign_in(bob)
    row = browser.post(f"/c/{place}/delete/", headers={"HX-Request": "true"}).content.decode()
    assert f"/c/{place}/restore/" in row
    assert "Deleted “<bdi>s</bdi>”" in row
    assert found(alice) == []
    assert api(alice).get(f"/api/v1/conversations/{place}/").status_code == 404
    conversations_delete_pending()
    assert other.post(f"/c/{place}/restore/").status_code == 404
    assert browser.post(f"/c/{place}/restore/")["Location"] == f"/c/{place}/"
    assert api(alice).get(f"/api/v1/conversations/{place}/messages/").json()["count"] == 3
    Message.objects.unscoped().update(created_at=timezone.now() - timedelta(hours=1))
    messages_index_pending()
    assert len(found(alice)) == 3
    assert a_long_talk(alice, number=3) == place


def test_what_waited_to_be_read_of_it_waits_again(alice: User) -> None:
    place = a_long_talk(alice, number=3)
    assert CaptureWindow.objects.for_user(alice).get().state == "waiting"
    conversation_hide(user_id=alice.pk, conversation_id=place)
    assert CaptureWindow.objects.for_user(alice).get().segments == []
    conversation_restore(user_id=alice.pk, conversation_id=place)
    Message.objects.unscoped().update(created_at=timezone.now() - timedelta(hours=1))
    messages_capture_pending()
    newest = CaptureWindow.objects.for_user(alice).order_by("id").last()
    assert newest is not None
    assert [segment["text"] for segment in newest.segments] == [
        f"Albatross {place}" for place in range(3)
    ]


def test_after_a_while_it_is_gone_for_good(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.chat.conversations.services.UNDO_FOR", timedelta(0))
    place = a_long_talk(alice, number=3)
    kept = memory_create(user_id=alice.pk, content="Watches birds.")
    use = MemoryUse(user=alice, memory=kept, conversation_id=place, used_in=UsedIn.SEARCHED)
    use.question = use.reason = "Albatross 1"
    use.save()
    conversation_hide(user_id=alice.pk, conversation_id=place)
    with pytest.raises(NotFound):
        conversation_restore(user_id=alice.pk, conversation_id=place)
    conversations_delete_pending()
    assert set(left()) == {"Passage"}, "the note's own"
    for model in apps.get_models():
        for row in model._base_manager.values_list():
            assert "albatross" not in str(row).lower(), model.__name__


def test_its_session_may_be_used_again_before_it_is_gone(alice: User) -> None:
    old = a_long_talk(alice, number=1)
    conversation_hide(user_id=alice.pk, conversation_id=old)
    assert a_long_talk(alice, number=1) != old
    conversation_restore(user_id=alice.pk, conversation_id=old)
    assert Conversation.objects.for_user(alice).count() == 2


def test_what_was_not_deleted_or_at_once_cannot_be_brought_back(alice: User) -> None:
    here, gone = a_long_talk(alice, number=1), a_long_talk(alice, "t", number=1)
    conversation_delete(user_id=alice.pk, conversation_id=gone)
    for place in (here, gone):
        with pytest.raises(NotFound):
            conversation_restore(user_id=alice.pk, conversation_id=place)
