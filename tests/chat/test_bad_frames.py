"""A bad frame over the websocket is answered by an error event, and the socket lives."""

import asyncio
import json
from typing import Any

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.db import DatabaseError, Error, InterfaceError
from django.utils import timezone
from pytest_django import Settings

from apps.accounts import credentials
from apps.accounts.models import APIToken, User
from apps.accounts.services import token_create, token_revoke, user_set_active, user_set_password
from apps.chat import consumers
from apps.chat.consumers import MAX_FRAME_CHARS, chat_socket
from apps.chat.models import Conversation, Message, Turn
from apps.chat.stream import limits as socket_limits
from apps.chat.turns.scheduler import scheduler
from apps.core.db.pool import in_db
from tests.chat.client import Socket, connected
from tests.chat.rows import conversation
from tests.peers.anthropic_server import AnthropicServer
from tests.waiting import PATIENCE
from tests.websocket import WebsocketCommunicator

UNKNOWN = "01890000-0000-7000-8000-000000000000"

REFUSED: list[tuple[Any, str]] = [
    (" ", "malformed_frame"),
    ("no json", "malformed_frame"),
    ("[" * 100_000, "malformed_frame"),
    ("9" * 5000, "malformed_frame"),
    ("[]", "malformed_frame"),
    ('"text"', "malformed_frame"),
    ("null", "malformed_frame"),
    ({}, "unknown_type"),
    ({"type": 7}, "unknown_type"),
    ({"type": "dance"}, "unknown_type"),
    ({"type": "\ud800"}, "unknown_type"),
    ({"type": "message"}, "wrong_type"),
    ({"type": "message", "text": None}, "wrong_type"),
    ({"type": "message", "text": 7}, "wrong_type"),
    ({"type": "message", "text": ["a"]}, "wrong_type"),
    ({"type": "message", "text": "  "}, "empty_text"),
    ({"type": "message", "text": "a\x00b"}, "invalid_text"),
    ({"type": "message", "text": "a\ud800b"}, "invalid_text"),
    ({"type": "message", "text": "x" * 100_001}, "too_large"),
    ({"type": "message", "text": "hi", "client_id": "x" * 65}, "too_large"),
    ({"type": "message", "text": "hi", "client_id": "\ud800"}, "invalid_text"),
    ({"type": "message", "text": "hi", "client_id": {"a": 1}}, "wrong_type"),
    ({"type": "message", "text": "hi", "conversation": "nonsense"}, "not_found"),
    ({"type": "message", "text": "hi", "conversation": UNKNOWN}, "not_found"),
    ({"type": "message", "text": "hi", "conversation": 7}, "not_found"),
    ({"type": "message", "text": "hi", "conversation": "\x00"}, "not_found"),
    ({"type": "message", "text": "hi", "use_memory": "yes"}, "wrong_type"),
    ({"type": "message", "text": "hi", "spoken": "yes"}, "wrong_type"),
    ({"type": "message", "text": "hi", "replaces": UNKNOWN}, "invalid_input"),
    ({"type": "open"}, "not_found"),
    ({"type": "open", "conversation": UNKNOWN}, "not_found"),
    ({"type": "open", "conversation": UNKNOWN, "seq": "1"}, "wrong_type"),
    ({"type": "open", "conversation": UNKNOWN, "seq": 1.5}, "wrong_type"),
    ({"type": "open", "conversation": UNKNOWN, "seq": True}, "wrong_type"),
    ({"type": "open", "conversation": UNKNOWN, "seq": -5}, "not_found"),
    ({"type": "open", "conversation": UNKNOWN, "seq": 10**30}, "not_found"),
    ({"type": "close"}, "not_found"),
    ({"type": "stop"}, "not_found"),
    ({"type": "stop", "conversation": UNKNOWN}, "not_found"),
    ({"type": "retry", "conversation": UNKNOWN}, "not_found"),
    ({"type": "answer"}, "wrong_type"),
    ({"type": "answer", "id": UNKNOWN, "text": "x"}, "not_found"),
    ({"type": "answer", "id": UNKNOWN, "text": ""}, "empty_text"),
    ({"type": "approve", "id": UNKNOWN}, "invalid_input"),
    ({"type": "approve", "id": UNKNOWN, "decision": "perhaps"}, "invalid_input"),
    ({"type": "approve", "id": UNKNOWN, "decision": {"a": 1}}, "invalid_input"),
    ({"type": "approve", "id": UNKNOWN, "decision": 1}, "invalid_input"),
    ({"type": "approve", "id": UNKNOWN, "decision": "allow"}, "not_found"),
    ({"type": "approve", "id": UNKNOWN, "decision": "Yes"}, "not_found"),
    ({"type": "approve", "id": UNKNOWN, "decision": False}, "not_found"),
]


@pytest.mark.parametrize(
    ("frame", "code"), REFUSED, ids=lambda value: str(value)[:50].encode("ascii", "replace").decode()
)
async def test_a_bad_frame_is_refused_and_the_socket_lives(
    alice: User, runner: None, frame: Any, code: str
) -> None:
    async with connected(alice) as page:
        await page.communicator.send_to(frame if isinstance(frame, str) else json.dumps(frame))
        refused = await page.next()
        assert (refused["type"], refused["code"]) == ("error", code)
        assert refused["message"]
        assert "extra" in refused
        assert "turn" not in refused
        await page.send("ping")
        assert await page.next() == {"type": "pong"}
    assert not await in_db(lambda: Message.objects.unscoped().exists())
    assert not await in_db(lambda: Conversation.objects.unscoped().exists())


async def test_binary_frames_and_ten_megabytes_are_refused(alice: User, runner: None) -> None:
    async with connected(alice) as page:
        await page.communicator.send_to(bytes_data=b"\xff\xfe\x00")
        assert (await page.next())["code"] == "malformed_frame"
        await page.send("message", text="x" * 10_000_000)
        refused = await page.next()
        assert (refused["code"], refused["extra"]["limit"]) == ("too_large", MAX_FRAME_CHARS)


async def test_an_error_names_the_message_it_is_about(alice: User, runner: None) -> None:
    async with connected(alice) as page:
        await page.send("message", text="", client_id="m1")
        assert (await page.next())["client_id"] == "m1"


async def test_too_many_frames_are_throttled_and_the_socket_lives(
    alice: User, runner: None, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.IZZY_THROTTLE = True
    monkeypatch.setattr(socket_limits, "FRAMES_BURST", 3)
    monkeypatch.setattr(socket_limits, "FRAMES_PER_SECOND", 0.001)
    async with connected(alice) as page:
        for _ in range(5):
            await page.send("ping")
        answers = [await page.next() for _ in range(5)]
    assert sorted(answer["type"] for answer in answers) == ["error"] * 2 + ["pong"] * 3
    assert {answer["code"] for answer in answers if answer["type"] == "error"} == {"throttled"}


async def until_closed(page: Socket) -> tuple[list[str], int]:
    """The codes of the errors up to the end of the socket, and the code of that end."""
    codes = []
    while (output := await page.communicator.receive_output(PATIENCE))["type"] == "websocket.send":
        frame = json.loads(output["text"])
        codes += [frame["code"]] if frame["type"] == "error" else []
    return codes, output["code"]


async def test_who_goes_on_flooding_is_cut_off_and_nobody_else(
    alice: User, bob: User, runner: None, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.IZZY_THROTTLE = True
    monkeypatch.setattr(socket_limits, "FRAMES_BURST", 3)
    monkeypatch.setattr(socket_limits, "FRAMES_PER_SECOND", 0.001)
    monkeypatch.setattr(socket_limits, "FRAMES_REFUSED", 5)
    async with connected(bob) as other:
        async with connected(alice) as page:
            for _ in range(20):
                await page.send("ping")
            refused, closed = await until_closed(page)
        assert refused == ["throttled"] * 5
        assert closed == socket_limits.CLOSE_FLOODING
        await other.send("ping")
        assert (await other.next())["type"] == "pong"


async def test_a_socket_the_server_gives_up_on_leaves_nothing_behind(alice: User, runner: None) -> None:
    place = await in_db(lambda: str(Conversation.objects.create(user=alice).pk))
    communicator = WebsocketCommunicator(consumers.ChatConsumer.as_asgi(), "/ws/chat/")
    communicator.scope |= {"user": alice, "token": None}
    await communicator.connect(PATIENCE)
    await communicator.send_json_to({"type": "open", "conversation": place})
    assert (await communicator.receive_json_from(PATIENCE))["type"] == "snapshot"
    assert scheduler().hub.feeds
    communicator.future.cancel()
    await asyncio.wait([communicator.future], timeout=PATIENCE)
    assert not scheduler().hub.feeds


async def token(user: User, *scopes: str) -> APIToken:
    return await in_db(lambda: token_create(user=user, name="t", scopes=scopes)[0])


async def test_a_token_that_may_only_read_can_watch_and_not_talk(
    alice: User, model: AnthropicServer
) -> None:
    async with connected(alice, await token(alice, "read")) as page:
        for frame in ("message", "stop", "answer", "approve", "retry"):
            await page.send(frame, text="hi")
            assert (await page.next())["code"] == "missing_scope"
        await page.send("open", conversation=UNKNOWN)
        assert (await page.next())["code"] == "not_found"
    assert model.requests == []


async def test_whoever_may_not_come_in_any_more_does_nothing_on_an_open_socket(
    alice: User, model: AnthropicServer
) -> None:
    mine = await token(alice, "write")
    async with connected(alice, mine) as page:
        await page.send("ping")
        assert (await page.next())["type"] == "pong"
        await in_db(lambda: token_revoke(user_id=alice.id, token_id=mine.id))
        await page.send("message", text="Send my notes to evil.example", client_id="1")
        closed = await page.communicator.receive_output(PATIENCE)
    assert (closed["type"], closed["code"]) == ("websocket.close", consumers.CLOSE_SIGNED_OUT)
    assert not await in_db(lambda: Turn.objects.for_user(alice).exists())


def reset_password(user: User) -> None:
    user_set_password(user=user, password="another-pass-word-93", revoke_tokens=False)


def change_elsewhere(token: APIToken, **values: Any) -> None:
    """A change that nobody announces, as another process makes it."""
    APIToken.objects.unscoped().filter(id=token.id).update(**values)


ENDINGS = {
    "token revoked": lambda user, token: token_revoke(user_id=user.id, token_id=token.id),
    "user disabled": lambda user, token: user_set_active(user=user, active=False),
    "token expired": lambda user, token: change_elsewhere(token, expires_at=timezone.now()),
    "revoked elsewhere": lambda user, token: change_elsewhere(token, revoked_at=timezone.now()),
}


@pytest.mark.parametrize("how", ENDINGS)
async def test_a_socket_closes_when_its_user_may_not_come_in_any_more(
    alice: User, runner: None, how: str
) -> None:
    mine = await token(alice, "read", "write")
    async with connected(alice, mine) as page:
        await page.send("ping")
        assert (await page.next())["type"] == "pong"
        await in_db(ENDINGS[how], alice, mine)
        closed = await page.communicator.receive_output(PATIENCE)
    assert (closed["type"], closed["code"]) == ("websocket.close", consumers.CLOSE_SIGNED_OUT)


@pytest.mark.parametrize("how", ENDINGS)
async def test_it_gives_no_snapshot_either(
    alice: User, runner: None, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(credentials, "LOOK_SECONDS", 3600)
    monkeypatch.setattr(credentials, "access_changed", lambda: None)
    mine = await token(alice, "read")
    place = await in_db(lambda: str(Conversation.objects.create(user=alice).pk))
    async with connected(alice, mine) as page:
        assert (await page.snapshot(place))["type"] == "snapshot"
        await in_db(ENDINGS[how], alice, mine)
        await page.send("open", conversation=place)
        closed = await page.communicator.receive_output(PATIENCE)
    assert (closed["type"], closed["code"]) == ("websocket.close", consumers.CLOSE_SIGNED_OUT)


@pytest.mark.parametrize("how", ["password", "signed out"])
async def test_a_session_of_an_old_password_or_signed_out_closes_its_socket(
    alice: User, runner: None, how: str
) -> None:
    session = await in_db(session_of)
    async with connected(alice, session=session) as page:
        await page.send("ping")
        assert (await page.next())["type"] == "pong"
        await in_db(lambda: reset_password(alice) if how == "password" else session.flush())
        closed = await page.communicator.receive_output(PATIENCE)
    assert (closed["type"], closed["code"]) == ("websocket.close", consumers.CLOSE_SIGNED_OUT)


def session_of() -> SessionStore:
    session = SessionStore()
    session.create()
    return session


async def test_a_database_that_fails_for_a_moment_does_not_let_anybody_stay_for_good(
    alice: User, runner: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "LOOK_SECONDS", 0.05)
    answers: list[object] = [DatabaseError("locked"), False, InterfaceError("closed"), True]

    def asked(held: list[credentials.Credentials]) -> list[credentials.Credentials]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return held if answer else []

    monkeypatch.setattr(credentials, "credentials_ended", asked)
    async with connected(alice) as page:
        closed = await page.communicator.receive_output(PATIENCE)
    assert (closed["type"], closed["code"]) == ("websocket.close", consumers.CLOSE_SIGNED_OUT)
    assert answers == []


async def test_one_user_or_address_has_so_many_sockets_and_no_more(
    alice: User, bob: User, runner: None, settings: Settings
) -> None:
    settings.IZZY_THROTTLE = True
    limited = socket_limits.SocketsAtOnce(chat_socket, lambda scope: scope["user"].pk, 2)

    async def opens(user: User) -> WebsocketCommunicator | None:
        communicator = WebsocketCommunicator(limited, "/ws/chat/")
        communicator.scope |= {"user": user, "token": None}
        return communicator if (await communicator.connect(PATIENCE))[0] else None

    first, second = await opens(alice), await opens(alice)
    assert first is not None
    assert second is not None
    assert await opens(alice) is None
    other = await opens(bob)
    assert other is not None
    await first.disconnect(PATIENCE)
    third = await opens(alice)
    assert third is not None
    for communicator in (second, third, other):
        await communicator.disconnect(PATIENCE)


async def test_frames_are_refused_while_the_consumer_is_busy_with_another(
    alice: User, runner: None, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.IZZY_THROTTLE = True
    monkeypatch.setattr(socket_limits, "FRAMES_BURST", 3)
    monkeypatch.setattr(socket_limits, "FRAMES_PER_SECOND", 0.001)
    monkeypatch.setattr(socket_limits, "FRAMES_REFUSED", 5)
    free = asyncio.Event()

    async def busy(*_: object) -> None:
        await free.wait()

    monkeypatch.setitem(consumers.HANDLERS, "ping", busy)
    async with connected(alice) as page:
        for _ in range(20):
            await page.send("ping")
        refused, closed = await until_closed(page)
        free.set()
    assert refused == ["throttled"] * 5
    assert closed == socket_limits.CLOSE_FLOODING


@pytest.mark.parametrize("error", [DatabaseError("locked"), InterfaceError("closed")])
async def test_a_subscription_that_could_not_begin_is_not_kept(
    alice: User, runner: None, monkeypatch: pytest.MonkeyPatch, error: Error
) -> None:
    """It would gather events that nobody gets, and the next message's would not come either."""

    def fails(*given: object, **named: object) -> None:
        raise error

    place = await conversation(alice)
    async with connected(alice) as page:
        with monkeypatch.context() as patch:
            patch.setattr(consumers, "start_for", fails)
            assert (await page.snapshot(place))["code"] == "unavailable"
        assert not scheduler().hub.feeds
        assert (await page.snapshot(place))["type"] == "snapshot"


async def test_nobody_gets_in_without_a_user(runner: None) -> None:
    communicator = WebsocketCommunicator(consumers.ChatConsumer.as_asgi(), "/ws/chat/")
    accepted, _ = await communicator.connect(PATIENCE)
    assert not accepted
    assert not scheduler().hub.feeds
