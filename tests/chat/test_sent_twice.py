"""The same message several times at once, on a database where what another process is storing is not seen yet."""

from collections.abc import Callable

import pytest

from apps.accounts.models import User
from apps.chat.models import Conversation, Message, Turn
from apps.chat.turns import services as turns
from apps.chat.turns.services import Sent, message_send, turn_retry

pytestmark = pytest.mark.django_db


def new(user: User) -> Sent:
    return message_send(user_id=user.id, text="hi", client_id="same")


def in_place(user: User) -> Sent:
    first = Message.objects.for_user(user).earliest("position")
    return message_send(
        user_id=user.id,
        text="hi",
        client_id="same",
        conversation=str(first.conversation_id),
        replaces=str(first.id),
    )


def again(user: User) -> Sent:
    place = Conversation.objects.for_user(user).get().id
    return turn_retry(user_id=user.id, conversation_id=place, client_id="same")


def the_last_that_fits(user: User) -> Sent:
    place = str(Conversation.objects.for_user(user).get().id)
    return message_send(user_id=user.id, text="hi", client_id="same", conversation=place)


@pytest.mark.parametrize("send", [new, in_place, again, the_last_that_fits])
def test_it_is_one_message_and_one_turn(
    alice: User, monkeypatch: pytest.MonkeyPatch, send: Callable[[User], Sent]
) -> None:
    if send is not new:
        message_send(user_id=alice.id, text="before")
        Turn.objects.for_user(alice).update(state="done")
    monkeypatch.setattr(turns, "MAX_QUEUED", 1)
    look, first_looks = turns._sent_before, iter([True, True])
    # Whoever looks first finds nothing: the other is committed between the look and the write.
    monkeypatch.setattr(
        turns, "_sent_before", lambda *who: None if next(first_looks, False) else look(*who)
    )
    first, second = send(alice), send(alice)
    assert (second.turn_id, second.message_id, second.repeated) == (
        first.turn_id,
        first.message_id,
        True,
    )
    assert Turn.objects.for_user(alice).filter(client_id="same").count() == 1
    assert Conversation.objects.for_user(alice).count() == 1
