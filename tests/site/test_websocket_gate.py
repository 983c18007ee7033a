"""Access to the websocket: who gets there, and that a stranger there sees nothing of others."""

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.access import is_own_origin
from apps.accounts.models import User
from apps.accounts.services import token_create
from apps.chat.models import Conversation
from apps.core.db.pool import in_db
from apps.core.jobs.leases import LEASE
from izzysite.asgi import application
from tests.site.belongings import MARK, Belongings, make_belongings, rows_of
from tests.waiting import PATIENCE
from tests.websocket import WebsocketCommunicator

pytestmark = pytest.mark.django_db(transaction=True)

HOST = (b"host", b"127.0.0.1:8000")
OWN = (b"origin", b"http://127.0.0.1:8000")


def cookie_of(user: User) -> tuple[bytes, bytes]:
    client = Client()
    client.force_login(user)
    return (
        b"cookie",
        f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}".encode(),
    )


async def connects(*headers: tuple[bytes, bytes], path: str = "/ws/chat/") -> bool:
    communicator = WebsocketCommunicator(application, path, headers=[HOST, *headers])
    connected, _ = await communicator.connect(timeout=PATIENCE)
    await communicator.disconnect(timeout=PATIENCE)
    return bool(connected)


async def test_the_cookie_opens_it_from_this_sites_own_pages_only(alice: User) -> None:
    cookie = await sync_to_async(cookie_of)(alice)
    assert await connects(cookie, OWN)
    assert not await connects(cookie)
    for origin in (
        b"http://evil.example",
        b"http://localhost:8000",
        b"http://127.0.0.1:9000",
        b"null",
        b"",
        b"http://[",
        b"\xff",
    ):
        assert not await connects(cookie, (b"origin", origin)), origin


async def test_behind_tls_a_page_that_came_in_the_clear_does_not_open_it(
    alice: User, settings: Settings
) -> None:
    settings.TLS = True
    cookie = await sync_to_async(cookie_of)(alice)
    assert not await connects(cookie, OWN)
    assert not is_own_origin("http://izzy.example", "izzy.example")
    assert is_own_origin("https://127.0.0.1:8000", "127.0.0.1:8000")


async def test_without_session_or_token_it_stays_shut(alice: User) -> None:
    assert not await connects(OWN)
    assert not await connects(OWN, (b"cookie", b"izzy_session=nonsense"))


async def test_a_token_opens_it_from_anywhere_and_a_wrong_one_never(alice: User) -> None:
    _, secret = await in_db(token_create, user=alice, name="x", scopes=["read", "write"])
    assert await connects((b"authorization", f"Bearer {secret}".encode()))
    assert await connects(
        (b"authorization", f"Bearer {secret}".encode()), (b"origin", b"http://evil.example")
    )
    cookie = await sync_to_async(cookie_of)(alice)
    assert not await connects((b"authorization", b"Bearer izzy_wrong"), cookie, OWN)


async def test_other_addresses_are_refused(alice: User) -> None:
    cookie = await sync_to_async(cookie_of)(alice)
    for path in ("/ws/", "/ws/chat/x/", "/", "/ws/%00"):
        assert not await connects(cookie, OWN, path=path), path


@pytest.mark.parametrize(
    ("origin", "host", "own"),
    [
        ("http://localhost:8000", "localhost:8000", True),
        ("http://localhost", "localhost:80", True),
        ("https://izzy.example.org", "izzy.example.org", True),
        ("https://izzy.example.org", "127.0.0.1:8000", True),
        ("http://rebound.example:8000", "rebound.example:8000", False),
        ("http://localhost:8000", "127.0.0.1:8000", False),
        ("http://localhost:99999999", "localhost", False),
        ("file://", "localhost", False),
    ],
)
def test_which_origins_are_this_site(settings: Settings, origin: str, host: str, own: bool) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://izzy.example.org"]
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1", "izzy.example.org"]
    assert is_own_origin(origin, host) is own


def frames(hers: Belongings) -> list[dict[str, Any]]:
    """Every frame of the protocol, pointed at alice's rows."""
    conversation, call = str(hers.conversation), str(hers.tool_call)
    return [
        {"type": "open", "conversation": conversation},
        {"type": "open", "conversation": conversation, "seq": 0},
        {"type": "message", "conversation": conversation, "text": "hello", "client_id": "c1"},
        {
            "type": "message",
            "conversation": conversation,
            "text": "x",
            "client_id": "c2",
            "replaces": str(hers.message),
        },
        {"type": "retry", "conversation": conversation, "client_id": "c3"},
        {"type": "stop", "conversation": conversation},
        {"type": "answer", "id": call, "text": "yes"},
        {"type": "approve", "id": call, "decision": "allow"},
    ]


def run_elsewhere(hers: Belongings) -> None:
    """So that this process does not go on with what her conversation waits for, in her name, meanwhile."""
    until = (
        timezone.now() + 3 * LEASE
    )  # One that reaches much further counts as left from before the clock was set back.
    conversations = Conversation.objects.for_user(hers.owner).filter(id=hers.conversation)
    assert conversations.update(runner="elsewhere", lease_until=until)


async def test_bob_gets_errors_and_nothing_of_alices_through_the_socket(alice: User, bob: User) -> None:
    hers = await in_db(make_belongings, alice)
    await in_db(run_elsewhere, hers)
    before = await in_db(rows_of, alice)
    cookie = await sync_to_async(cookie_of)(bob)
    communicator = WebsocketCommunicator(application, "/ws/chat/", headers=[HOST, OWN, cookie])
    assert (await communicator.connect(timeout=PATIENCE))[0]
    for frame in frames(hers):
        await communicator.send_json_to(frame)
        answer = await communicator.receive_json_from(timeout=PATIENCE)
        assert (answer["type"], answer["code"]) == ("error", "not_found"), (frame, answer)
        assert MARK not in json.dumps(answer)
    await communicator.send_json_to({"type": "ping"})
    assert (await communicator.receive_json_from(timeout=PATIENCE))["type"] == "pong"
    await communicator.disconnect(timeout=PATIENCE)
    assert await in_db(rows_of, alice) == before


async def test_malformed_frames_are_errors_and_the_socket_stays_open(alice: User) -> None:
    cookie = await sync_to_async(cookie_of)(alice)
    communicator = WebsocketCommunicator(application, "/ws/chat/", headers=[HOST, OWN, cookie])
    assert (await communicator.connect(timeout=PATIENCE))[0]
    texts = [
        " ",
        "{",
        "[]",
        "null",
        '"x"',
        "{}",
        '{"type": 7}',
        '{"type": "unknown"}',
        '{"type": "open"}',
        "[" * 50_000,
    ]
    texts += [
        '{"type": "message", "text": "\\ud800", "client_id": "x"}',
        '{"type": "message", "text": ["x"], "client_id": "x"}',
    ]
    texts += [
        '{"type": "open", "conversation": 7}',
        '{"type": "answer", "id": null}',
        '{"type": "stop", "conversation": "x"}',
    ]
    for text in texts:
        await communicator.send_to(text_data=text)
        answer = await communicator.receive_json_from(timeout=PATIENCE)
        assert answer["type"] == "error", text
        assert {"code", "message"} <= set(answer)
    await communicator.send_to(bytes_data=b"\xff\x00")
    assert (await communicator.receive_json_from(timeout=PATIENCE))["type"] == "error"
    await communicator.send_json_to({"type": "ping"})
    assert (await communicator.receive_json_from(timeout=PATIENCE))["type"] == "pong"
    await communicator.disconnect(timeout=PATIENCE)
