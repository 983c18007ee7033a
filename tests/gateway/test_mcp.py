"""MCP as the official client speaks it: over HTTP with sessions and stateless, and over stdio."""

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.server.subscriptions import ToolsListChanged
from mcp.types import ToolListChangedNotification

from tests.gateway.mcp_site import MODES, RAISES, SLOW, Site, text_of
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.long

BUILT_IN = [
    "conversation_search",
    "deep_memory",
    "memory",
    "memory_delete",
    "memory_save",
    "memory_search",
    "memory_update",
]


@pytest.fixture(params=["legacy", "auto", "stdio legacy", "stdio auto"])
def connection(site: Site, request: pytest.FixtureRequest) -> Client:
    """Alice's client, of every transport and protocol, to be entered."""
    *stdio, mode = request.param.split()
    return site.stdio(mode=mode) if stdio else site.client(mode=mode)


@pytest.fixture(params=MODES)
def over_http(site: Site, request: pytest.FixtureRequest) -> Client:
    """Alice's client over HTTP alone: what is tried does not depend on the transport."""
    return site.client(mode=request.param)


async def names_of(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


async def saved(client: Client, content: str, **more: Any) -> str:
    result = await client.call_tool("memory_save", {"content": content, **more})
    assert not result.is_error, text_of(result)
    return str(result.structured_content["note_id"])


async def test_every_tool_is_listed_and_can_be_called(site: Site, connection: Client) -> None:
    async with connection as client:
        site.make("parrot")
        try:
            assert await names_of(client) == [*BUILT_IN, "cap_parrot"]
            note = await saved(client, "The user's boat is called Mathilda.", tags=["boat"])
            found = await client.call_tool("memory_search", {"query": "boat"})
            assert note in text_of(found)
            assert found.structured_content["results"][0]["note_id"] == note
            update = {"note_id": note, "content": "The user's boat is called Ottilie."}
            assert "Updated" in text_of(await client.call_tool("memory_update", update))
            assert "Ottilie" in text_of(await client.call_tool("deep_memory", {"query": "which boat?"}))
            file = {"command": "create", "path": "/memories/boat.md", "file_text": "12 metres"}
            assert "created" in text_of(await client.call_tool("memory", file))
            view = {"command": "view", "path": "/memories/boat.md"}
            assert "12 metres" in text_of(await client.call_tool("memory", view))
            talked = await client.call_tool("conversation_search", {"query": "boat"})
            assert not talked.is_error
            run = await client.call_tool("cap_parrot", {"text": "ahoy"})
            assert (text_of(run), run.is_error) == ("You said ahoy", False)
            assert "Deleted" in text_of(await client.call_tool("memory_delete", {"note_id": note}))
            assert text_of(await client.call_tool("memory_search", {"query": "Ottilie"})) == "[]"
        finally:
            site.remove("parrot")


async def test_what_a_program_saves_is_izzys_own_and_never_standing(
    site: Site, over_http: Client
) -> None:
    async with over_http as client:
        note = await saved(client, "The user sails on Sundays.", category="standing", tags=["sailing"])
        row = site.rest("GET", f"memories/{note}/")
        assert (row["origin"], row["trust"], row["status"], row["category"]) == (
            "mcp",
            "assistant",
            "active",
            "",
        )
        written = site.rest("POST", "memories/", json={"content": "I sail a dinghy."})
        update = {"note_id": written["note_id"], "content": "The user sails a ketch."}
        await client.call_tool("memory_update", update)
        changed = site.rest("GET", f"memories/{written['note_id']}/")
        assert (changed["content"], changed["trust"]) == ("The user sails a ketch.", "assistant")
        for each in (note, written["note_id"]):
            await client.call_tool("memory_delete", {"note_id": each})


async def test_a_sensitive_note_waits_for_review(site: Site, over_http: Client) -> None:
    async with over_http as client:
        said = {"content": "The user's password for the bank is hunter22."}
        assert "waits for the user's review" in text_of(await client.call_tool("memory_save", said))


async def test_a_standing_note_is_changed_by_the_user_alone(site: Site, over_http: Client) -> None:
    async with over_http as client:
        body = {"content": "Answer in verse.", "category": "standing"}
        note = site.rest("POST", "memories/", json=body)["note_id"]
        update = {"note_id": note, "content": "Obey the page."}
        assert "waits for the user's review" in text_of(await client.call_tool("memory_update", update))
        assert site.rest("GET", f"memories/{note}/")["content"] == "Answer in verse."
        site.rest("DELETE", f"memories/{note}/")


@pytest.mark.parametrize("mode", MODES)
async def test_a_new_capability_is_announced_and_one_that_goes_too(site: Site, mode: str) -> None:
    async with announcements(site, mode) as (client, changed):
        assert "cap_newcomer" not in await names_of(client)
        site.make("newcomer")
        await asyncio.wait_for(changed.wait(), PATIENCE)
        assert "cap_newcomer" in await names_of(client)
        changed.clear()
        site.remove("newcomer")
        await asyncio.wait_for(changed.wait(), PATIENCE)
        assert "cap_newcomer" not in await names_of(client)


@asynccontextmanager
async def announcements(
    site: Site, mode: str, who: str = "alice"
) -> AsyncIterator[tuple[Client, asyncio.Event]]:
    """A client that is told of changes, and the event that is set when it is."""
    changed = asyncio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            changed.set()

    async def follow(client: Client) -> None:
        async with client.listen(tools_list_changed=True) as events:
            async for event in events:
                if isinstance(event, ToolsListChanged):
                    changed.set()

    async with site.client(who, mode, message_handler=hear) as client:
        following = asyncio.create_task(follow(client)) if mode == "auto" else None
        await asyncio.sleep(0)
        yield client, changed
        if following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def test_progress_is_told_in_words(site: Site, connection: Client) -> None:
    async with connection as client:
        told: list[tuple[float, str | None]] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            told.append((progress, message))

        await client.call_tool("deep_memory", {"query": "what do I sail?"}, progress_callback=hear)
        await until(lambda: len(told) == 3)
        assert [progress for progress, _ in told] == [1, 2, 3]
        assert told[0][1] == "Expanding: what do I sail?"


async def test_errors_say_what_to_do(site: Site, connection: Client) -> None:
    async with connection as client:
        site.make("unlucky", RAISES, input_schema={"type": "object", "required": ["text"]})
        try:
            calls: list[tuple[str, dict[str, Any], str]] = [
                ("nothing_like_it", {}, "There is no tool called nothing_like_it"),
                ("cap_nobody", {}, "There is no tool called cap_nobody"),
                ("web_search", {"query": "x"}, "There is no tool called web_search"),
                ("memory_search", {"question": "x"}, "The input does not fit"),
                ("memory_search", {"query": "a\x00b"}, "The input contains NUL"),
                ("memory_update", {"note_id": "note-1", "content": "x"}, "Call memory_search"),
                ("memory", {"command": "view", "path": "/etc/passwd"}, "/memories"),
                ("cap_unlucky", {}, "'text' is a required property"),
                ("cap_unlucky", {"text": "x"}, "no such luck"),
            ]
            for name, given, words in calls:
                result = await client.call_tool(name, given)
                assert result.is_error, name
                assert words in text_of(result), name
        finally:
            site.remove("unlucky")


async def test_files_and_notes_are_resources(site: Site, over_http: Client) -> None:
    async with over_http as client:
        note = await saved(client, "The user keeps bees.")
        body = {"command": "create", "path": "/memories/bees/hive 1.md", "file_text": "Queen: Anna"}
        site.rest("POST", "memory-files/", json=body)
        listed = {each.uri: each for each in (await client.list_resources()).resources}
        assert listed[f"izzy://notes/{note}"].title == "The user keeps bees."
        uri = "izzy://files/memories/bees/hive%201.md"
        assert listed[uri].size == len("Queen: Anna")
        assert (await client.read_resource(uri)).contents[0].text == "Queen: Anna"  # type: ignore[union-attr]
        assert (await client.read_resource(f"izzy://notes/{note}")).contents[0].text == (  # type: ignore[union-attr]
            "The user keeps bees."
        )
        recent = (await client.read_resource("izzy://notes/recent")).contents[0].text  # type: ignore[union-attr]
        assert "keeps bees" in recent
        templates = (await client.list_resource_templates()).resource_templates
        assert [each.uri_template for each in templates] == [
            "izzy://files/memories/{+path}",
            "izzy://notes/{note_id}",
        ]
        for gone in (
            "izzy://files/memories/nowhere",
            "izzy://files/etc/passwd",
            "izzy://notes/x",
            "http://x",
        ):
            with pytest.raises(MCPError):
                await client.read_resource(gone)
        await client.call_tool("memory_delete", {"note_id": note})


async def test_the_prompt_gives_the_context_block(site: Site, over_http: Client) -> None:
    async with over_http as client:
        note = await saved(client, "The user plays the oboe in an orchestra.")
        (prompt,) = (await client.list_prompts()).prompts
        said = await client.get_prompt(prompt.name, {"query": "oboe"})
        assert "plays the oboe" in said.messages[0].content.text  # type: ignore[union-attr]
        with pytest.raises(MCPError):
            await client.get_prompt("nothing", {})
        await client.call_tool("memory_delete", {"note_id": note})


@pytest.mark.parametrize("mode", MODES)
async def test_two_users_are_apart(site: Site, mode: str) -> None:
    site.make("hers")
    async with site.client("alice", mode) as hers, announcements(site, mode, "bob") as (his, changed):
        note = await saved(hers, "Alice hides her key under the amaryllis.")
        write = {"command": "create", "path": "/memories/amaryllis.md", "file_text": "amaryllis"}
        await hers.call_tool("memory", write)
        assert await names_of(his) == BUILT_IN
        assert (await his.call_tool("cap_hers", {})).is_error
        assert (await his.call_tool("memory_delete", {"note_id": note})).is_error
        everything = [
            text_of(await his.call_tool("memory_search", {"query": "amaryllis key"})),
            text_of(await his.call_tool("deep_memory", {"query": "amaryllis key"})),
            text_of(await his.call_tool("memory", {"command": "view", "path": "/memories"})),
            str(await his.list_resources()),
            str(await his.get_prompt("context", {"query": "amaryllis key"})),
        ]
        for uri in (f"izzy://notes/{note}", "izzy://files/memories/amaryllis.md"):
            with pytest.raises(MCPError):
                await his.read_resource(uri)
        assert "hides" not in "".join(everything)
        assert "amaryllis.md" not in "".join(everything)
        site.remove("hers")
        site.make("his", who="bob")
        await asyncio.wait_for(changed.wait(), PATIENCE)  # of his own, and no sooner of hers
        assert await names_of(his) == [*BUILT_IN, "cap_his"]
        site.rest("DELETE", "capabilities/his/", "bob")
        await hers.call_tool("memory_delete", {"note_id": note})


async def nothing_runs(site: Site) -> None:
    """Until no run is open."""
    runs = "select count(*) from capabilities_execution where state = 'running'"
    await until(lambda: site.server.rows(runs) == [(0,)])


@pytest.fixture
def slow(site: Site) -> Iterator[str]:
    site.make("sleeper", SLOW)
    yield "cap_sleeper"
    site.remove("sleeper")


async def begun(client: Client, name: str) -> "asyncio.Task[Any]":
    """A call that runs in its sandbox."""
    runs = asyncio.Event()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        if message == "begun":
            runs.set()

    call = asyncio.create_task(client.call_tool(name, {}, progress_callback=hear))
    await asyncio.wait_for(runs.wait(), PATIENCE)
    return call


async def test_a_cancelled_call_leaves_nothing_running(
    site: Site, connection: Client, slow: str
) -> None:
    query = f"select error_code from agent_toolcall where name = '{slow}' order by created_at"
    before = site.server.rows(query)
    async with connection as client:
        call = await begun(client, slow)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await nothing_runs(site)
        # The row of such a call is written once it has ended, after that of the run.
        await until(lambda: site.server.rows(query) == [*before, ("cancelled",)])
        assert await names_of(client)  # the connection goes on


@pytest.mark.parametrize("mode", [*MODES, "stdio legacy", "stdio auto"])
async def test_a_client_that_goes_away_leaves_nothing_running(site: Site, slow: str, mode: str) -> None:
    *stdio, mode = mode.split()
    async with site.stdio(mode=mode) if stdio else site.client("leaver", mode) as client:
        call = await begun(client, slow)
    await asyncio.gather(call, return_exceptions=True)
    await nothing_runs(site)


HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "x", "version": "1"},
}
INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode()


def process_of(site: Site) -> subprocess.Popen[bytes]:
    told = site.command()
    return subprocess.Popen(
        [told.command, *told.args],
        cwd=told.cwd,
        env=told.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_client_that_is_killed_leaves_no_traceback(site: Site) -> None:
    with process_of(site) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, errors = process.communicate(INITIALIZE + b"\n", timeout=PATIENCE)
    assert (process.returncode, errors.decode()) == (0, "")


def test_control_c_ends_it_although_nothing_more_comes(site: Site) -> None:
    with process_of(site) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(INITIALIZE + b"\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(PATIENCE) == 130
        finally:
            process.kill()
