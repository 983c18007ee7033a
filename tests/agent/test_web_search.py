"""Searches that Izzy makes itself, with SearXNG or Brave; and what is said where there is neither."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from apps.accounts.models import User
from apps.accounts.secrets import secret_values
from apps.agent.model.client import Endpoint
from apps.agent.models import ModelCall
from apps.agent.selectors import conversation_untrusted
from apps.agent.tools.base import ToolFailure, find_tool
from apps.agent.tools.results import UNTRUSTED
from apps.agent.web import engines
from apps.agent.web.search import Engine, check_search, engine_for, try_search
from apps.core.db.pool import in_db
from apps.core.health import State
from tests.agent.turns import Turn
from tests.agent.web import Caller
from tests.peers.anthropic_server import AnthropicServer, reply, tool
from tests.peers.searxng_server import SearchServer


@pytest.fixture
async def server() -> AsyncIterator[SearchServer]:
    async with SearchServer() as running:
        yield running


@pytest.fixture
def searxng(server: SearchServer, settings: Any) -> SearchServer:
    settings.SEARXNG_URL = server.url("")
    return server


@pytest.fixture
def brave(server: SearchServer, settings: Any, monkeypatch: pytest.MonkeyPatch) -> SearchServer:
    settings.BRAVE_API_KEY = "key-of-the-tests"
    settings.IZZY_PRIVATE_HOSTS = [f"127.0.0.1:{server.port}"]
    monkeypatch.setattr(engines, "BRAVE_URL", server.url("/res/v1/web/search"))
    return server


@pytest.fixture
def caller() -> Caller:
    return Caller()


@pytest.fixture(params=["searxng", "brave"])
def engine(request: pytest.FixtureRequest) -> SearchServer:
    """Each of the two."""
    found: SearchServer = request.getfixturevalue(request.param)
    return found


async def test_pages_are_found_and_counted(engine: SearchServer, caller: Caller) -> None:
    found = await caller.search("  growing\ntomatoes ")
    assert found["results"] == [
        {
            "title": "Tomatoes",
            "url": "https://garden.test/tomatoes",
            "text": "Sun and water.",
            "age": "2 days ago",
        },
        {"title": "Beans", "url": "https://garden.test/beans", "text": "Poles."},
    ]
    assert engine.queries[0]["q"] == "growing tomatoes"
    assert [data["status"] for data in caller.progress] == ["searching", "found"]
    assert caller.progress[1]["count"] == 2


async def test_marks_repeats_and_what_is_no_page_are_left_out(
    engine: SearchServer, caller: Caller
) -> None:
    engine.results = [
        {
            "title": "<strong>Tom</strong>atoes &amp; beans",
            "url": "https://a.test/",
            "content": "x" * 5000,
        },
        {"title": "again", "url": "https://a.test/", "content": "y"},
        {"title": "script", "url": "javascript:alert(1)", "content": "z"},
        {"title": None, "url": "https://b.test/", "content": None},
    ]
    found = (await caller.search("x"))["results"]
    assert [page["url"] for page in found] == ["https://a.test/", "https://b.test/"]
    assert found[0]["title"] == "Tomatoes & beans"
    assert len(found[0]["text"]) == engines.TEXT_CHARS


async def test_no_more_than_asked_for(engine: SearchServer, caller: Caller) -> None:
    assert len((await caller.search("x", count=1))["results"]) == 1


async def test_nothing_found_is_no_failure(engine: SearchServer, caller: Caller) -> None:
    engine.results = []
    assert (await caller.search("x"))["results"] == []
    assert caller.progress[1] == {"status": "found", "count": 0}


async def test_recent_pages_alone(searxng: SearchServer, caller: Caller) -> None:
    await caller.search("x", recency="week")
    assert searxng.queries[0] == {"q": "x", "format": "json", "time_range": "week"}


async def test_recent_pages_alone_with_brave(brave: SearchServer, caller: Caller) -> None:
    await caller.search("x", recency="week", count=3)
    assert brave.queries[0].items() >= {"freshness": "pw", "count": "3"}.items()


@pytest.mark.parametrize("status", [429, 500, 302])
async def test_an_engine_that_refuses_is_a_failure_that_says_what_to_do(
    engine: SearchServer, caller: Caller, status: int
) -> None:
    engine.status = status
    with pytest.raises(ToolFailure, match="without a search"):
        await caller.search("x")
    assert len(engine.asked) == 1


async def test_a_searxng_without_json_is_told(searxng: SearchServer, caller: Caller) -> None:
    searxng.status = 403
    with pytest.raises(ToolFailure, match=r"search\.formats"):
        await caller.search("x")
    searxng.page("/search", "<html>")
    with pytest.raises(ToolFailure, match=r"search\.formats"):
        await caller.search("x")


async def test_a_wrong_key_is_told(brave: SearchServer, caller: Caller, settings: Any) -> None:
    settings.BRAVE_API_KEY = "another-key-here"
    with pytest.raises(ToolFailure, match="BRAVE_API_KEY"):
        await caller.search("x")


async def test_an_answer_without_end_is_given_up(searxng: SearchServer, caller: Caller) -> None:
    searxng.stream("/search", b'{"results": [' + b" " * 60_000)
    with pytest.raises(ToolFailure, match="far too much"):
        await caller.search("x")


async def test_an_engine_that_is_not_there(server: SearchServer, caller: Caller, settings: Any) -> None:
    settings.SEARXNG_URL = "http://127.0.0.1:1"
    with pytest.raises(ToolFailure, match="cannot be reached"):
        await caller.search("x")


async def test_the_engines_address_is_allowed_for_searching_alone(
    searxng: SearchServer, caller: Caller
) -> None:
    """The operator named it, so a search may go to the private network; a page may not."""
    await caller.search("x")
    with pytest.raises(Exception, match="not on the public internet"):
        await caller.open(searxng.url("/search"))


async def test_without_an_engine_it_says_what_to_configure(caller: Caller, settings: Any) -> None:
    with pytest.raises(ToolFailure, match=r"SEARXNG_URL .* BRAVE_API_KEY"):
        await caller.search("x")
    settings.IZZY_WEB_SEARCH = "off"
    with pytest.raises(ToolFailure, match="turned off"):
        await caller.search("x")


@pytest.mark.parametrize(
    ("setting", "anthropic", "searxng_url", "brave_key", "expected"),
    [
        ("auto", True, "http://s", "key", Engine.ANTHROPIC),
        ("auto", False, "http://s", "key", Engine.SEARXNG),
        ("auto", False, "", "key", Engine.BRAVE),
        ("auto", False, "", "", Engine.NONE),
        ("brave", True, "http://s", "key", Engine.BRAVE),
        ("searxng", True, "http://s", "key", Engine.SEARXNG),
        ("searxng", True, "", "key", Engine.NONE),
        ("anthropic", False, "http://s", "", Engine.SEARXNG),
        ("off", True, "http://s", "key", Engine.NONE),
    ],
)
def test_which_engine_is_used(
    settings: Any, setting: str, anthropic: bool, searxng_url: str, brave_key: str, expected: Engine
) -> None:
    settings.IZZY_WEB_SEARCH, settings.SEARXNG_URL, settings.BRAVE_API_KEY = (
        setting,
        searxng_url,
        brave_key,
    )
    kind = ModelCall.Endpoint.ANTHROPIC if anthropic else ModelCall.Endpoint.CUSTOM
    assert engine_for(Endpoint(kind)) == expected


@pytest.mark.django_db
def test_the_doctor_names_the_engine_and_no_password(settings: Any) -> None:
    settings.SEARXNG_URL = "http://user:secret@search.home:8888"
    assert check_search().message == "The web is searched with SearXNG at http://search.home:8888."
    settings.SEARXNG_URL = ""
    assert "SEARXNG_URL" in check_search().hint
    assert check_search().state == State.NOT_SET_UP


@pytest.mark.django_db
def test_the_instance_page_tries_a_search(admin: User, settings: Any, sign_in: Any) -> None:
    page = sign_in(admin).post("/settings/instance/test/web%20search/").content.decode()
    assert "No search engine is configured" in page
    settings.SEARXNG_URL = "http://127.0.0.1:1"
    page = sign_in(admin).post("/settings/instance/test/web%20search/").content.decode()
    assert "SearXNG cannot be reached" in page
    assert "Tell the user" not in page


@pytest.mark.django_db
def test_a_search_that_works_is_said_to_work(settings: Any) -> None:
    with SearchServer.in_thread() as server:
        settings.SEARXNG_URL = server.url("")
        result = try_search()
    assert (result.ok, result.message) == (True, "SearXNG answers: 2 pages found.")


@pytest.mark.django_db
def test_the_key_is_scrubbed(alice: User, settings: Any) -> None:
    settings.BRAVE_API_KEY = "BSA-of-the-tests"
    assert "BSA-of-the-tests" in secret_values(alice.pk)


@pytest.mark.django_db(transaction=True)
async def test_the_model_gets_the_results_as_untrusted_and_the_conversation_is_tainted(
    alice: User, searxng: SearchServer, peer: AnthropicServer
) -> None:
    search = find_tool("web_search")
    assert search is not None
    peer.add(reply(tool("web_search", {"query": "tomatoes"})), reply("Sun and water."))
    turn = Turn(alice, [search])
    await turn.run()
    (result,) = turn.store.results
    assert result["content"].startswith(UNTRUSTED)
    assert len(json.loads(result["content"].removeprefix(UNTRUSTED))["results"]) == 2
    assert await in_db(
        conversation_untrusted, user_id=alice.pk, conversation_id=turn.state.conversation_id
    )
