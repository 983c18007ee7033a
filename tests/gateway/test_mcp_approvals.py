"""Calls that can reach out wait for the user: on the page, or where a person answers in the client."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from mcp.types import ElicitResult

from apps.agent.services import TOO_LATE
from tests.gateway.mcp_site import MODES, Site, text_of

pytestmark = pytest.mark.long

HOSTS = {"hosts": ["example.com"], "secrets": []}


@pytest.fixture
def sender(site: Site) -> Iterator[str]:
    """A capability that may reach a host."""
    site.make("sender", permissions=HOSTS)
    yield "cap_sender"
    site.remove("sender")
    site.execute("delete from gateway_waitingcall")


@pytest.fixture
def page(site: Site) -> Iterator[httpx.Client]:
    """Alice's browser."""
    cookies = {"izzy_session": site.user.session}
    with httpx.Client(base_url=site.url, cookies=cookies, follow_redirects=True) as client:
        yield client


def decide(page: httpx.Client, decision: str, opened: str = "") -> str:
    """Presses a button of the one call that waits, on a page that may have been `opened` before; returns the page that comes."""
    text = opened or page.get("/calls/").text
    (target,) = {part.split('"')[0] for part in text.split('action="/calls/')[1:]}
    token = text.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
    form = {"decision": decision, "csrfmiddlewaretoken": token}
    answer = page.post(f"/calls/{target}", data=form, headers={"referer": str(page.base_url)})
    assert answer.status_code == 200, answer.text
    assert "Nothing waits" in answer.text
    return answer.text


@pytest.mark.parametrize("mode", [*MODES, "stdio"])
async def test_a_call_waits_and_runs_once_after_the_yes(
    site: Site, sender: str, page: httpx.Client, mode: str
) -> None:
    async with site.stdio() if mode == "stdio" else site.client(mode=mode) as client:
        waits = await client.call_tool(sender, {"text": "<the plan>"})
        assert waits.is_error
        assert "/calls/" in text_of(waits)
        assert "example.com" in text_of(waits)
        again = await client.call_tool(sender, {"text": "<the plan>"})
        assert again.is_error
        shown = await asyncio.to_thread(lambda: page.get("/calls/").text)
        assert "&lt;the plan&gt;" in shown
        assert shown.count("Allow once") == 1
        decide(page, "once")
        assert (await client.call_tool(sender, {"text": "another"})).is_error
        run = await client.call_tool(sender, {"text": "<the plan>"})
        assert "You said <the plan>" in text_of(run)
        assert not run.is_error
        assert (await client.call_tool(sender, {"text": "<the plan>"})).is_error


async def test_always_holds_for_this_token_and_version(
    site: Site, sender: str, page: httpx.Client
) -> None:
    async with site.client() as client, site.client("other") as other:
        assert (await client.call_tool(sender, {"text": "a"})).is_error
        decide(page, "always")
        assert not (await client.call_tool(sender, {"text": "b"})).is_error
        assert (await other.call_tool(sender, {"text": "b"})).is_error
        version = {"files": {"main.py": 'def run(args: dict) -> str:\n    return "new"\n'}}
        site.rest("PATCH", "capabilities/sender/", json=version)
        site.rest("POST", "capabilities/sender/approve/", json={})
        assert (await client.call_tool(sender, {"text": "b"})).is_error


async def test_a_no_holds_too(site: Site, sender: str, page: httpx.Client) -> None:
    async with site.client() as client:
        await client.call_tool(sender, {"text": "a"})
        decide(page, "no")
        declined = await client.call_tool(sender, {"text": "a"})
        assert declined.is_error
        assert "said no" in text_of(declined)


async def test_a_token_that_reaches_out_does_not_wait(site: Site, sender: str) -> None:
    async with site.client("reaching") as client:
        assert "You said a" in text_of(await client.call_tool(sender, {"text": "a"}))
    async with site.stdio("--reaches-out") as client:
        assert "You said a" in text_of(await client.call_tool(sender, {"text": "a"}))


async def test_an_unapproved_version_says_where_to_approve_it(site: Site) -> None:
    body = {
        "name": "asks_first",
        "description": "x",
        "input_schema": {"type": "object"},
        "files": {"main.py": "def run(args: dict) -> str:\n    return ''\n"},
        "permissions": HOSTS,
    }
    site.rest("POST", "capabilities/", json=body)
    async with site.client("reaching") as client:
        result = await client.call_tool("cap_asks_first", {})
        assert result.is_error
        assert "/capabilities/asks_first/" in text_of(result)
    site.remove("asks_first")


@pytest.mark.parametrize(
    ("mode", "action", "content", "runs"),
    [
        *[
            (mode, *answer)
            for mode in MODES
            for answer in (
                ("accept", {}, 1),
                ("accept", {"always": True}, 2),
                ("decline", None, 0),
                ("cancel", None, 0),
            )
        ],
        ("stdio legacy", "accept", {}, 1),
        ("stdio auto", "accept", {}, 1),
    ],
)
async def test_where_a_person_answers_they_are_asked_in_the_client(
    site: Site, sender: str, mode: str, action: Any, content: Any, runs: int
) -> None:
    asked = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action=action, content=content)

    *stdio, mode = mode.split()
    options: dict[str, Any] = {"mode": mode, "elicitation_callback": answer}
    connection = site.stdio("--person-answers", **options) if stdio else site.client("person", **options)
    async with connection as client:
        first = await client.call_tool(sender, {"text": "the plan"})
        assert first.is_error == (runs == 0)
        assert len(asked) == 1
        assert "the plan" in asked[0]
        assert "example.com" in asked[0]
        second = await client.call_tool(sender, {"text": "other"})
        assert second.is_error == (runs == 0)
        assert len(asked) == (1 if runs == 2 else 2)


async def test_what_does_not_show_in_the_input_is_named(
    site: Site, sender: str, page: httpx.Client
) -> None:
    hidden = "".join(chr(0xE0000 + ord(sign)) for sign in "the code is 1234")
    async with site.client() as client:
        assert (await client.call_tool(sender, {"text": f"Ada{hidden}"})).is_error
    assert "Ada⟨16 hidden characters⟩" in await asyncio.to_thread(lambda: page.get("/calls/").text)


@pytest.mark.parametrize("mode", MODES)
async def test_on_other_tokens_the_client_is_not_asked(site: Site, sender: str, mode: str) -> None:
    asked = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        asked.append(params)
        return ElicitResult(action="accept", content={})

    async with site.client(mode=mode, elicitation_callback=answer) as client:
        assert (await client.call_tool(sender, {"text": "a"})).is_error
    assert not asked


@pytest.mark.parametrize("content", [{}, {"always": True}])
async def test_a_yes_in_the_client_reaches_no_hosts_but_those_it_was_asked_for(
    site: Site, sender: str, page: httpx.Client, content: Any
) -> None:
    """A newer version, which the user has approved too, came while the client asked."""

    async def answer(context: Any, params: Any) -> ElicitResult:
        change = {"permissions": {"hosts": ["example.org"], "secrets": []}}
        await asyncio.to_thread(site.rest, "PATCH", "capabilities/sender/", json=change)
        await asyncio.to_thread(site.rest, "POST", "capabilities/sender/approve/", json={})
        return ElicitResult(action="accept", content=content)

    async with site.client("person", mode="legacy", elicitation_callback=answer) as client:
        result = await client.call_tool(sender, {"text": "a"})
    assert result.is_error
    assert "version 2 asks to reach example.org" in text_of(result)
    assert "sender" not in await asyncio.to_thread(lambda: page.get("/grants/").text)


async def test_whose_yes_or_no_came_too_late_is_told(
    site: Site, sender: str, page: httpx.Client
) -> None:
    async with site.client() as client:
        assert (await client.call_tool(sender, {"text": "a"})).is_error
    opened = await asyncio.to_thread(lambda: page.get("/calls/").text)
    assert "decided" not in decide(page, "no", opened)
    assert TOO_LATE in decide(page, "once", opened)
