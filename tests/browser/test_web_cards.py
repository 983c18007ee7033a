"""Searching the web and reading a page, as their cards show it: with a real search server, real pages, and as events."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, StorageState, expect

from tests.browser.chat import Chat
from tests.browser.model import Model
from tests.browser.recorded import Recording
from tests.browser.server import Server
from tests.browser.test_recorded_events import Stage, stage  # noqa: F401  a fixture
from tests.peers.anthropic_server import AnthropicServer, reply, tool
from tests.peers.searxng_server import SearchServer


@pytest.fixture(scope="module")
def web() -> Iterator[SearchServer]:
    """A search engine that has pages too, in a thread with a loop of its own."""
    with SearchServer.in_thread() as server:
        yield server


@pytest.fixture(scope="module")
def web_server(
    tmp_path_factory: pytest.TempPathFactory,
    peer: AnthropicServer,
    web: SearchServer,
) -> Iterator[Server]:
    settings = {
        "ANTHROPIC_BASE_URL": peer.url,
        "ANTHROPIC_API_KEY": "test-key",
        "SEARXNG_URL": web.url(""),
        "IZZY_PRIVATE_HOSTS": f"garden.test:{web.port}=127.0.0.1",
    }
    server = Server.prepared(tmp_path_factory.mktemp("with-web"), settings)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def web_owner(web_server: Server) -> StorageState:
    return web_server.owner


@pytest.fixture
def chat(
    model: Model,
    web_server: Server,
    web_owner: StorageState,
    open_page: Callable[..., Page],
) -> Chat:
    return Chat(open_page(web_server.url, state=web_owner))


def test_pages_that_were_found_are_links(chat: Chat, model: Model, web: SearchServer) -> None:
    model.add(reply(tool("web_search", {"query": "growing tomatoes"})), reply("Sun and water."))
    turn = chat.say("How do tomatoes grow?")
    card = chat.tool("Searched the web", turn)
    expect(card.locator(".tool-detail")).to_have_text("growing tomatoes")
    found = card.locator(".web-found li")
    expect(found).to_have_count(2)
    link = found.first.get_by_role("link", name="Tomatoes")
    expect(link).to_have_attribute("href", "https://garden.test/tomatoes")
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    expect(found.first).to_contain_text("garden.test · 2 days ago")
    expect(found.first).to_contain_text("Sun and water.")


def test_a_page_that_was_read_is_named_and_shown(
    chat: Chat,
    model: Model,
    web: SearchServer,
) -> None:
    url = f"http://garden.test:{web.port}/article"
    model.add(reply(tool("open_page", {"url": url})), reply("Two litres a day."))
    turn = chat.say("What does the page say?")
    card = chat.tool("Read a page", turn)
    expect(card.locator(".tool-detail")).to_have_text(f"garden.test:{web.port}/article")
    expect(card.get_by_role("link", name="Growing tomatoes & beans")).to_have_attribute("href", url)
    expect(card.locator("pre")).to_contain_text("Tomatoes want sun")
    expect(card.locator("pre")).not_to_contain_text("<page")
    chat.page.reload()
    expect(chat.tool("Read a page").locator("pre")).to_contain_text("Tomatoes want sun")


def test_a_yes_for_the_conversation_is_a_chip_that_can_be_taken_back(
    chat: Chat,
    model: Model,
    web: SearchServer,
) -> None:
    article, other = (
        f"http://garden.test:{web.port}/article",
        f"http://garden.test:{web.port}/article?x=1",
    )
    model.add(
        reply(tool("open_page", {"url": article})),
        reply(tool("open_page", {"url": other})),
        reply("Sun."),
    )
    turn = chat.send("How do I grow tomatoes?")
    chat.wait_for(turn, "waiting")
    card = chat.page.get_by_role("region", name="Izzy asks for permission")
    expect(card).to_contain_text(f"garden.test:{web.port} and nothing else")
    card.get_by_role("button", name="In this conversation").click()
    chat.wait_for(turn, "done")
    chip = chat.page.locator("#grants form")
    expect(chip).to_contain_text("open page")
    expect(chip).to_contain_text("allowed in this conversation until")

    model.add(reply(tool("open_page", {"url": f"{other}&y=2"})), reply("Sun."))
    expect(chat.say("Sure?")).to_contain_text("Allowed in this conversation, with this:")
    chat.page.reload()
    expect(chip).to_have_count(1)
    expect(chat.last).to_contain_text("Allowed in this conversation, with this:")

    chip.get_by_role("button", name="Take back").click()
    expect(chip).to_have_count(0)
    model.add(reply(tool("open_page", {"url": f"{other}&y=3"})), reply("Sun."))
    turn = chat.send("Really?")
    chat.wait_for(turn, "waiting")
    chat.page.get_by_role("button", name="No", exact=True).click()
    chat.wait_for(turn, "done")


def test_a_private_address_is_refused_in_words(chat: Chat, model: Model, web: SearchServer) -> None:
    url = f"http://127.0.0.1:{web.port}/article"
    model.add(reply(tool("open_page", {"url": url})), reply("I cannot read that."))
    turn = chat.say("Read my router's page")
    expect(chat.tool("Reading a page: failed", turn)).to_contain_text("not on the public internet")


def test_a_search_within_the_answer_stands_before_its_text(stage: Stage) -> None:  # noqa: F811
    record = Recording()
    stage.begin(record)
    found = (
        '[Notice]\n{"query": "tomatoes", "results": [{"title": "Tomatoes", "url": "https://garden.test/"}, '
        '{"title": "No page", "url": "javascript:alert(1)"}]}'
    )
    call = {"id": "c1", "name": "web_search"}
    stage.play(
        record.event("text_delta", "turn-1", text="Let me look."),
        record.event("tool_start", "turn-1", **call, input={"query": "tomatoes"}, server=True),
        record.event("tool_progress", "turn-1", **call, data={"status": "found", "count": 2}),
    )
    expect(stage.chat.last.locator(".tool-progress")).to_have_text("Found 2 pages")
    stage.play(
        record.event("tool_result", "turn-1", **call, result=found, is_error=False, duration_ms=5),
        record.event("text_delta", "turn-1", text=" Two litres."),
    )
    flow = stage.chat.last.locator(".flow > *")
    expect(flow).to_have_count(2)
    expect(flow.nth(0).locator(".tool-title")).to_have_text("Searched the web")
    expect(flow.nth(1)).to_have_text("Let me look. Two litres.")
    card = stage.chat.tool("Searched the web")
    expect(card.get_by_role("link")).to_have_count(1)
    expect(card.locator(".web-found li").last).to_contain_text("No page")
