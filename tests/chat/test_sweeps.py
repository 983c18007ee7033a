"""Sweeps do their work user by user: where it fails for one, the others' is done all the same."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.chat.attachments import services as attachments
from apps.chat.conversations import services as conversations
from apps.chat.conversations.services import conversation_create
from apps.chat.models import Attachment, Conversation, Turn, TurnEvent
from apps.chat.stream import events
from apps.chat.turns import queue

pytestmark = pytest.mark.django_db
LONG_AGO = timezone.now() - timedelta(days=30)


def hidden(user: User) -> None:
    conversation_create(user_id=user.pk)
    Conversation.objects.unscoped().update(deleted_at=LONG_AGO)


def running(user: User) -> None:
    place = conversation_create(user_id=user.pk)
    Turn.objects.create(user=user, conversation=place, position=1, state="running")


def unsent(user: User) -> None:
    attachments.attachment_add(user_id=user.pk, name="a.txt", body=b"words")
    Attachment.objects.unscoped().update(created_at=LONG_AGO)


def followed(user: User) -> None:
    place = conversation_create(user_id=user.pk)
    turn = Turn.objects.create(
        user=user, conversation=place, position=1, state="done", ended_at=LONG_AGO
    )
    TurnEvent.objects.create(
        conversation=place, turn=turn, seq=1, last_seq=1, type="response", payload="{}"
    )


@pytest.mark.parametrize(
    ("module", "name", "sweep", "prepare", "left"),
    [
        (
            conversations,
            "_delete_own",
            conversations.conversations_delete_pending,
            hidden,
            lambda user: Conversation.objects.unscoped().filter(user=user),
        ),
        (
            queue,
            "_interrupt_own",
            queue.turns_interrupt,
            running,
            lambda user: Turn.objects.unscoped().filter(user=user, state="running"),
        ),
        (
            attachments,
            "_prune_own",
            attachments.attachments_prune,
            unsent,
            lambda user: Attachment.objects.unscoped().filter(user=user),
        ),
        (
            events,
            "_prune_own",
            events.events_prune,
            followed,
            lambda user: TurnEvent.objects.filter(conversation__user=user),
        ),
    ],
)
def test_a_user_whose_rows_cannot_be_swept_keeps_no_other_waiting(
    alice: User,
    bob: User,
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    name: str,
    sweep: Callable[[], None],
    prepare: Callable[[User], None],
    left: Callable[[User], Any],
) -> None:
    for user in (alice, bob):
        prepare(user)
    work, tried = getattr(module, name), []

    def fails_at_first(whose: Any) -> None:
        tried.append(whose[0])
        if len(tried) == 1:
            raise OSError("this user's files cannot be read")
        work(whose)

    monkeypatch.setattr(module, name, fails_at_first)
    with pytest.raises(OSError, match="cannot be read"):
        sweep()
    one, other = (User.objects.get(pk=key) for key in tried)
    assert {one, other} == {alice, bob}
    assert left(one).exists()
    assert not left(other).exists()
    sweep()
    assert not left(one).exists()
