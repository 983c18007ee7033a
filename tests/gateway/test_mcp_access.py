"""Access to /mcp: who gets in, what a token may do there, and when a connection ends."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from mcp import MCPError

from apps.accounts.access import token_digest
from tests.gateway.mcp_site import MODES, SLOW, Site, text_of
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.long

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
SAVE = {
    "jsonrpc": "2.0",
    "id": 3,
    "method": "tools/call",
    "params": {"name": "memory_save", "arguments": {"content": "x"}},
}


def opened(site: Site, who: str = "alice") -> str:
    """The id of a new session."""
    answer = site.post(INITIALIZE, who)
    assert answer.status_code == 200, answer.text
    session = answer.headers["mcp-session-id"]
    assert site.post(INITIALIZED, who, **{"mcp-session-id": session}).status_code == 202
    return str(session)


@pytest.mark.parametrize("authorization", ["", "Bearer izzy_wrong", "Basic YTpi"])
def test_without_a_valid_token_the_answer_says_where_to_read_how(site: Site, authorization: str) -> None:
    headers = {"authorization": authorization} if authorization else {}
    answer = httpx.post(f"{site.url}/mcp", json=INITIALIZE, headers=headers, timeout=PATIENCE)
    assert answer.status_code == 401
    challenge = answer.headers["www-authenticate"]
    metadata = f"{site.url}/.well-known/oauth-protected-resource/mcp"
    assert challenge.startswith("Bearer ")
    assert f'resource_metadata="{metadata}"' in challenge
    assert ('error="invalid_token"' in challenge) == bool(authorization)
    told = httpx.get(metadata, timeout=PATIENCE).json()
    assert told["resource"] == f"{site.url}/mcp"
    assert told["scopes_supported"] == ["read", "write"]
    resource = f"{site.url}/.well-known/oauth-protected-resource"
    assert httpx.get(resource, timeout=PATIENCE).json() == told


@pytest.mark.parametrize("mode", MODES)
async def test_the_client_is_told_that_its_token_is_wrong(site: Site, mode: str) -> None:
    with pytest.raises(BaseException) as raised:
        async with site.client("izzy_wrong", mode):
            pass
    assert "unknown, expired or revoked" in repr(raised.value)


@pytest.mark.parametrize("mode", MODES)
async def test_a_token_that_reads_is_offered_what_reads(site: Site, mode: str) -> None:
    site.make("runner")
    async with site.client("reader", mode) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == [
            "conversation_search",
            "deep_memory",
            "memory_search",
        ]
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        assert not (await client.call_tool("memory_search", {"query": "x"})).is_error
        for name in ("memory_save", "memory_delete", "memory", "cap_runner"):
            with pytest.raises(MCPError, match="lacks the scope write"):
                await client.call_tool(name, {})
    site.remove("runner")


def test_a_call_beyond_the_scope_is_answered_403(site: Site) -> None:
    session = opened(site, "reader")
    answer = site.post(SAVE, "reader", **{"mcp-session-id": session})
    assert answer.status_code == 403
    challenge = answer.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert 'scope="write"' in challenge
    assert answer.json()["id"] == 3
    assert site.post(INITIALIZE, "proxy").status_code == 403  # it does not even read


async def test_stdio_can_be_read_only(site: Site) -> None:
    async with site.stdio("--read-only") as client:
        assert len((await client.list_tools()).tools) == 3
        result = await client.call_tool("memory_save", {"content": "x"})
        assert result.is_error
        assert "lacks the scope write" in text_of(result)


def test_pages_of_other_sites_and_other_names_are_refused(site: Site) -> None:
    assert site.post(INITIALIZE, origin="https://evil.example").status_code == 403
    assert site.post(INITIALIZE, origin="null").status_code == 403
    assert site.post(INITIALIZE, host="evil.example").status_code == 400
    assert site.post(INITIALIZE, origin=site.url).status_code == 200


def test_a_session_belongs_to_its_token(site: Site) -> None:
    session = opened(site)
    headers = {"mcp-session-id": session}
    assert site.post(LIST, **headers).status_code == 200
    for who in ("bob", "other"):
        assert site.post(LIST, who, **headers).status_code == 404
    assert site.post(LIST, **{"mcp-session-id": "0" * 32}).status_code == 404
    whose = {"authorization": f"Bearer {site.tokens['alice']}"}
    ended = httpx.delete(f"{site.url}/mcp", headers=whose | headers, timeout=PATIENCE)
    assert ended.status_code == 200
    assert site.post(LIST, **headers).status_code == 404


async def test_a_revoked_token_ends_what_is_open(site: Site) -> None:
    site.make("sleeper", SLOW)
    session = opened(site, "leaving")
    headers = {
        "authorization": f"Bearer {site.tokens['leaving']}",
        "accept": "application/json, text/event-stream",
        "mcp-session-id": session,
    }
    call = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "cap_sleeper"}}
    async with httpx.AsyncClient(timeout=PATIENCE) as http:
        stream = asyncio.create_task(http.get(f"{site.url}/mcp", headers=headers))
        calling = asyncio.create_task(http.post(f"{site.url}/mcp", json=call, headers=headers))
        running = "select count(*) from capabilities_execution where state = 'running'"
        await until(lambda: site.server.rows(running) == [(1,)])
        revoke = "update accounts_apitoken set revoked_at = '2026-01-01' where digest = ?"
        site.execute(revoke, token_digest(site.tokens["leaving"]))
        await asyncio.gather(stream, calling, return_exceptions=True)
    await until(lambda: site.server.rows(running) == [(0,)])
    assert site.post(LIST, "leaving", **{"mcp-session-id": session}).status_code == 401
    site.remove("sleeper")


def test_a_user_has_so_many_sessions_and_the_quietest_makes_room(site: Site) -> None:
    first = opened(site, "bob")
    sessions = [opened(site, "bob") for _ in range(50)]
    answers = [site.post(LIST, "bob", **{"mcp-session-id": each}).status_code for each in sessions]
    assert answers == [200] * 50
    assert site.post(LIST, "bob", **{"mcp-session-id": first}).status_code == 404


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'{"jsonrpc": "2.0"}', json.dumps([LIST]).encode(), b"\xff" * 10],
)
@pytest.mark.parametrize("who", ["alice", "reader"])
@pytest.mark.parametrize("version", ["", "2025-06-18", "2026-07-28", "1999-01-01"])
def test_what_is_no_request_is_refused(site: Site, body: bytes, who: str, version: str) -> None:
    headers = {
        "authorization": f"Bearer {site.tokens[who]}",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
    } | ({"mcp-protocol-version": version} if version else {})
    answer = httpx.post(f"{site.url}/mcp", content=body, headers=headers, timeout=PATIENCE)
    assert answer.status_code in {400, 404}, answer.text


def test_too_large_a_request_is_refused(site: Site) -> None:
    arguments: dict[str, Any] = {"content": "x" * 5_000_000}
    body = {**SAVE, "params": {"name": "memory_save", "arguments": arguments}}
    assert site.post(body).status_code == 413
    assert site.post(body, "reader").status_code == 413
