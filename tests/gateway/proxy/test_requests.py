"""Access to the proxy: who may ask with whose key, what goes upstream of a request, and what a token may spend."""

import asyncio
import gzip
import json
import logging
import re
from datetime import date

import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from apps.accounts.models import User
from apps.agent.models import ModelCall
from apps.core.db.pool import in_db
from apps.gateway.models import ProxySpending
from apps.gateway.proxy.ledger import spending_prune
from tests.gateway.proxy.driving import INSTANCE_KEY, OWN_KEY, Proxy
from tests.peers.anthropic_server import Reply, failure, reply

pytestmark = pytest.mark.django_db(transaction=True)

NONE = {"authorization": "", "x-izzy-token": ""}


async def test_the_clients_own_key_goes_upstream_and_izzys_token_does_not(proxy: Proxy) -> None:
    await proxy.ask("Hello.", headers={"x-api-key": proxy.secret, "x-else": f"Bearer {proxy.secret}"})
    seen = proxy.upstream.requests[-1]
    assert seen.headers["authorization"] == f"Bearer {OWN_KEY}"
    assert proxy.secret not in repr(seen)


async def test_headers_go_through_as_they_came_but_for_those_of_the_connection(proxy: Proxy) -> None:
    passed = {
        "anthropic-version": "2026-10-21", "anthropic-beta": "oauth-2025-04-20,future-2027-01-01", "x-app": "cli",
        "user-agent": "tests/1", "accept-encoding": "gzip, br", "anthropic-future": "yes",
    }  # fmt: skip
    dropped = {
        "cookie": "a=b",
        "te": "trailers",
        "connection": "x-hop",
        "x-hop": "1",
        "x-izzy-session": "s",
    }
    await proxy.send("POST", "/v1/messages?beta=true", b"{}", {**passed, **dropped})
    seen = proxy.upstream.requests[-1]
    assert seen.path == "/v1/messages?beta=true"
    expected = {"host", "content-length", "authorization"} | passed.keys()
    assert seen.headers.keys() == expected
    assert all(seen.headers[name] == value for name, value in passed.items())


@pytest.mark.parametrize("place", ["authorization", "x-api-key"])
async def test_without_a_key_of_its_own_a_client_uses_the_instances(
    proxy: Proxy, alice: User, place: str
) -> None:
    await proxy.token(alice, "write", "proxy")
    scheme = "Bearer " if place == "authorization" else ""
    await proxy.ask("Hello.", headers={**NONE, place: f"{scheme}{proxy.secret}"})
    seen = proxy.upstream.requests[-1]
    assert seen.headers[place] == f"{scheme}{INSTANCE_KEY}"
    assert proxy.secret not in repr(seen)


async def test_that_needs_the_scope_proxy(proxy: Proxy) -> None:
    answered = await proxy.ask("Hello.", headers={"authorization": ""})
    assert answered.status == 403
    assert answered.json["error"]["type"] == "permission_error"
    assert not proxy.upstream.requests


@pytest.mark.parametrize(
    "headers",
    [
        NONE,
        {"x-izzy-token": ""},
        {"x-izzy-token": "izzy_wrong"},
        {"x-izzy-token": "sk-ant-x"},
        {**NONE, "x-api-key": f"izzy_{'x' * 43}"},
    ],
)
async def test_who_has_no_token_is_told_so_as_anthropic_does(
    proxy: Proxy, headers: dict[str, str]
) -> None:
    answered = await proxy.ask("Hello.", headers=headers)
    assert answered.status == 401
    assert answered.json["type"] == "error"
    assert answered.json["error"]["type"] == "authentication_error"
    assert not proxy.upstream.requests


async def test_an_instance_without_a_key_says_what_to_do(proxy: Proxy, alice: User) -> None:
    await proxy.token(alice, "proxy")
    with override_settings(ANTHROPIC_API_KEY="", ANTHROPIC_BASE_URL=""):
        answered = await proxy.ask("Hello.", headers={"authorization": ""})
    assert (answered.status, answered.json["error"]["type"]) == (401, "authentication_error")
    assert "X-Izzy-Token" in answered.json["error"]["message"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "HEAD"])
async def test_other_addresses_are_passed_on_with_the_clients_key_alone(
    proxy: Proxy, alice: User, method: str
) -> None:
    answered = await proxy.send(method, "/v1/files/file_1?limit=2")
    assert answered.status == 404
    assert (proxy.upstream.requests[-1].method, proxy.upstream.requests[-1].path) == (
        method,
        "/v1/files/file_1?limit=2",
    )
    await proxy.token(alice, "write", "proxy")
    answered = await proxy.send(method, "/v1/files/file_1", headers={"authorization": ""})
    assert (answered.status, len(proxy.upstream.requests)) == (403, 1)


async def test_models_are_listed_with_either_key(proxy: Proxy, alice: User) -> None:
    own = await proxy.send("GET", "/v1/models?limit=1000")
    await proxy.token(alice, "read", "proxy")
    theirs = await proxy.send("GET", "/v1/models/claude-haiku-5-5", headers={"authorization": ""})
    assert [model["id"] for model in own.json["data"]] == proxy.upstream.models
    assert theirs.json["id"] == "claude-haiku-5-5"


@pytest.mark.parametrize("path", ["/v1/../api/v1/memories/", "/v1/%2e%2e/x", "/v1/./messages"])
async def test_an_address_that_leaves_v1_is_refused(proxy: Proxy, path: str) -> None:
    assert (await proxy.send("GET", path)).status == 404
    assert not proxy.upstream.requests


async def test_a_token_in_the_address_is_refused(proxy: Proxy) -> None:
    assert (await proxy.send("GET", f"/v1/models?key={proxy.secret}")).status == 400
    assert not proxy.upstream.requests


async def test_redirects_are_not_followed(proxy: Proxy) -> None:
    proxy.upstream.add(
        Reply(status=307, body=b"", headers={"location": f"{proxy.upstream.url}/v1/models"})
    )
    answered = await proxy.ask("Hello.")
    assert answered.status == 307
    assert len(proxy.upstream.requests) == 1


async def test_what_the_proxy_cannot_read_goes_upstream_as_it_is(proxy: Proxy) -> None:
    for body in (
        b'{"model": "x", "messages": "no"}',
        b'{"messages": [{"role": "user", "content": "a", "content": "b"}], "max_tokens": 1, "model": "x"}',
    ):
        await proxy.send("POST", "/v1/messages", body)
        assert proxy.upstream.requests[-1].body == body


async def test_a_server_that_is_away_is_an_error_of_anthropics_shape(proxy: Proxy, alice: User) -> None:
    await proxy.token(alice, "write", "proxy")
    with override_settings(IZZY_PROXY_UPSTREAM="http://127.0.0.1:9"):
        answered = await proxy.ask("Hello.", headers={"authorization": ""})
    assert (answered.status, answered.json["error"]["type"]) == (502, "api_error")
    assert not await ModelCall.objects.for_user(alice).aexists()  # nothing was spent


@pytest.mark.parametrize("answered", [1, 0])
async def test_a_connection_closed_as_it_is_used_again_is_replaced_and_no_other(
    proxy: Proxy, answered: int
) -> None:
    """`answered` requests over a connection are, and the next one finds it closed."""
    asked = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        for number in range(answered + 1):
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            await reader.readexactly(int(length[1]) if length else 0)
            asked += 1
            if number < answered:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        with override_settings(IZZY_PROXY_UPSTREAM=f"http://{host}:{port}"):
            statuses = [(await proxy.ask("Hello.")).status for _ in range(3)]
    # Answered, not answered, once more and answered, and the same again; or not answered each time and asked but once.
    assert (statuses, asked) == (([200] * 3, 5) if answered else ([502] * 3, 3))


async def test_a_setting_names_another_upstream(proxy: Proxy) -> None:
    with override_settings(
        ANTHROPIC_BASE_URL="http://127.0.0.1:9", IZZY_PROXY_UPSTREAM=f"{proxy.upstream.url}/v1/.."
    ):
        await proxy.send("GET", "/v1/models")
    assert proxy.upstream.requests[-1].path.endswith("/v1/models")


# --- The instance's key ---


async def test_an_answer_counts_against_the_day_and_in_the_ledger(proxy: Proxy, alice: User) -> None:
    token = await proxy.token(alice, "write", "proxy", proxy_daily_tokens=100)
    usage = {"input_tokens": 30, "output_tokens": 20, "cache_read_input_tokens": 45}
    proxy.upstream.add(reply("One.", usage=usage), reply("Two.", usage=usage))
    for stream in (False, True):
        assert (
            await proxy.ask(f"Hello {stream}.", headers={"authorization": ""}, stream=stream)
        ).status == 200
    answered = await proxy.ask("A third.", headers={"authorization": ""})
    assert (answered.status, answered.json["error"]["type"]) == (429, "rate_limit_error")
    assert 0 < int(answered.headers["retry-after"]) <= 86_400
    assert len(proxy.upstream.requests) == 2
    calls = [call async for call in ModelCall.objects.for_user(alice)]
    assert {(call.purpose, call.endpoint, call.error_code) for call in calls} == {
        ("proxy", "custom", "")
    }
    assert [call.cache_read_tokens for call in calls] == [45, 45]
    assert (await ProxySpending.objects.for_user(alice).aget()).tokens >= 100
    assert (await proxy.ask("With my own key.")).status == 200  # that one is not limited
    await ProxySpending.objects.for_user(alice).aupdate(day=date(2026, 1, 1))
    assert (await proxy.ask("The next day.", headers={"authorization": ""})).status == 200
    assert token.proxy_daily_tokens == 100
    await in_db(spending_prune)
    days = [row.day async for row in ProxySpending.objects.for_user(alice)]
    assert days == [timezone.now().date()]


async def test_another_token_has_a_limit_of_its_own(proxy: Proxy, alice: User) -> None:
    await proxy.token(alice, "write", "proxy", proxy_daily_tokens=1)
    for expected in (200, 429):
        assert (await proxy.ask("Hello.", headers={"authorization": ""})).status == expected
    await proxy.token(alice, "write", "proxy", proxy_daily_tokens=1)
    assert (await proxy.ask("Hello.", headers={"authorization": ""})).status == 200


async def test_what_was_cut_off_counts_by_what_had_come(proxy: Proxy, alice: User) -> None:
    await proxy.token(alice, "write", "proxy")
    proxy.upstream.add(
        reply("many words " * 40, cut_after=60, usage={"input_tokens": 7, "output_tokens": 1})
    )
    assert (await proxy.ask("Hello.", headers={"authorization": ""}, stream=True)).cut
    call = await ModelCall.objects.for_user(alice).aget()
    assert (call.input_tokens, call.error_code) == (7, "cut")
    assert call.output_tokens > 30


@pytest.mark.parametrize("begun", [False, True])
async def test_an_answer_without_a_count_counts_by_what_was_sent(
    proxy: Proxy, alice: User, begun: bool
) -> None:
    """The client goes away before anything comes; or the upstream breaks off within an answer in one piece."""
    asked = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower())
        await reader.readexactly(int(length[1]) if length else 0)
        if begun:
            writer.write(b'HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{"type": "message", ')
            await writer.drain()
        else:
            asked.set()
            await reader.read()
        writer.close()

    await proxy.token(alice, "write", "proxy", proxy_daily_tokens=2_000)
    picture = {"type": "base64", "media_type": "image/png", "data": "A" * 400_000}
    content = [{"type": "text", "text": "word " * 1_000}, {"type": "image", "source": picture}]
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        with override_settings(IZZY_PROXY_UPSTREAM=f"http://{host}:{port}"):
            said = {"role": "user", "content": content}
            answered = await proxy.ask(said, headers={"authorization": ""}, leaves=asked)
    assert (answered.status, answered.cut) == ((200, True) if begun else (0, False))
    call = await ModelCall.objects.for_user(alice).aget()
    assert call.error_code == "cut"
    assert 2_500 < call.input_tokens < 3_500
    assert (call.output_tokens > 0) == begun
    assert (await proxy.ask("Hello.", headers={"authorization": ""})).status == 429


async def test_a_request_that_the_upstream_drops_counts_nothing(proxy: Proxy, alice: User) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower())
        await reader.readexactly(int(length[1]) if length else 0)
        writer.close()

    await proxy.token(alice, "write", "proxy", proxy_daily_tokens=100)
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        with override_settings(IZZY_PROXY_UPSTREAM=f"http://{host}:{port}"):
            for _ in range(2):
                answered = await proxy.ask("word " * 1_000, headers={"authorization": ""})
                assert answered.status == 502
    assert not await ModelCall.objects.for_user(alice).aexists()


async def test_a_packed_answer_counts_too_and_stays_packed(proxy: Proxy, alice: User) -> None:
    await proxy.token(alice, "write", "proxy")
    message = reply("Packed.", usage={"input_tokens": 11, "output_tokens": 5}).message(
        "claude-sonnet-5-5", 9
    )
    packed = gzip.compress(json.dumps(message).encode())
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    proxy.upstream.add(Reply(body=packed, headers=headers))
    answered = await proxy.ask("Hello.", headers={"authorization": "", "accept-encoding": "br, gzip"})
    assert proxy.upstream.requests[-1].headers["accept-encoding"] == "gzip"
    assert answered.body == packed
    call = await ModelCall.objects.for_user(alice).aget()
    assert (call.input_tokens, call.output_tokens) == (11, 5)


async def test_an_error_of_the_endpoint_goes_into_the_ledger(proxy: Proxy, alice: User) -> None:
    await proxy.token(alice, "write", "proxy")
    proxy.upstream.add(failure(529, "overloaded_error"))
    assert (await proxy.ask("Hello.", headers={"authorization": ""})).status == 529
    call = await ModelCall.objects.for_user(alice).aget()
    assert (call.error_code, call.input_tokens) == ("overloaded_error", 0)


async def test_keys_are_in_no_row_and_no_log(
    proxy: Proxy, alice: User, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await proxy.ask("Hello.")
    with override_settings(IZZY_PROXY_UPSTREAM="http://127.0.0.1:9"):
        await proxy.ask("Hello?")
    await proxy.token(alice, "write", "proxy")
    await proxy.ask("Hello.", headers={"authorization": ""})
    rows = await in_db(_everything)
    for secret in (OWN_KEY, INSTANCE_KEY, proxy.secret):
        assert secret not in caplog.text
        assert secret not in rows


def _everything() -> str:
    with connection.cursor() as cursor:
        names = connection.introspection.django_table_names(only_existing=True)
        rows = []
        for name in names:
            cursor.execute(f'SELECT * FROM "{name}"')
            rows.append(repr(cursor.fetchall()))
    return "\n".join(rows)
