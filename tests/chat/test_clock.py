"""A clock that is set back between two starts: what was said keeps its order, and nothing is left waiting."""

from datetime import timedelta
from types import SimpleNamespace
from uuid import UUID

import pytest
from django.db import transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.agent.turn.events import Response
from apps.chat.audit_log.selectors import decision_log
from apps.chat.conversations.services import conversation_create
from apps.chat.models import Conversation, Turn, TurnStatus
from apps.chat.turns.queue import conversation_take, work_next
from apps.chat.turns.scheduler import conversations_left
from apps.chat.turns.services import message_send
from apps.chat.turns.store import TurnOutcome, turn_finish
from apps.core import ids


def send(place: Conversation, text: str) -> UUID:
    return message_send(user_id=place.user_id, text=text, conversation=str(place.pk)).turn_id


def run_next(place: Conversation) -> UUID | None:
    turn_id = work_next(place.pk, None).turn_id
    assert turn_id is not None
    with transaction.atomic():
        turn_finish(TurnOutcome(turn_id=turn_id, state=TurnStatus.DONE, event=Response(text="Yes.")), 5)
    return turn_id


def test_turns_keep_their_order(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    place = conversation_create(user_id=alice.pk)
    first = send(place, "First")
    yesterday = int((timezone.now() - timedelta(days=1)).timestamp() * 1e9)
    monkeypatch.setattr(ids, "_last_stamp", 0)
    monkeypatch.setattr(ids, "time", SimpleNamespace(time_ns=lambda: yesterday))
    second = send(place, "Second")
    assert second < first
    conversation_take(place.pk)
    assert [run_next(place), run_next(place)] == [first, second]
    place.refresh_from_db()
    assert [turn["said"] for turn in decision_log(place)["turns"]] == ["First", "Second"]


def test_a_message_from_the_future_is_answered_all_the_same(alice: User) -> None:
    place = conversation_create(user_id=alice.pk)
    send(place, "Hello")
    Turn.objects.unscoped().update(created_at=timezone.now() + timedelta(hours=1))
    assert conversations_left() == [place.pk]
