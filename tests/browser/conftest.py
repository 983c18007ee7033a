"""A real server, a real Chromium, and a watch on its console: any error or refused inline script fails the test."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    Playwright,
    StorageState,
    expect,
    sync_playwright,
)

from tests import waiting
from tests.browser.model import Model
from tests.browser.server import Server
from tests.peers.anthropic_server import AnthropicServer

WHOLE_CHROMIUM = "/usr/bin/chromium"
HEADLESS_CHROMIUM = "/usr/bin/chromium-headless-shell"
"""The same engine without a window: a page loads in a third of the work. It has no notifications."""
CHROMIUM = os.environ.get("IZZY_TEST_CHROMIUM") or (
    HEADLESS_CHROMIUM if Path(HEADLESS_CHROMIUM).exists() else WHOLE_CHROMIUM
)
SWITCHES = [
    "--no-sandbox",
    "--js-flags=--no-turbofan --no-maglev",  # no page stays long enough for its scripts to be worth optimizing
]
PASSWORD = "correct horse battery"
OWNER = "alice"
PATIENCE = int(1000 * waiting.PATIENCE)
"""Milliseconds: a busy machine is slow, and nothing here measures time."""

expect.set_options(timeout=PATIENCE)
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 780},
    "is_mobile": True,
    "has_touch": True,
    "device_scale_factor": 2,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.long)


@dataclass
class Watch:
    """Returns what the console said that it should not have. `allowed` are patterns a test expects."""

    problems: list[str] = field(default_factory=list)
    allowed: list[str] = field(
        default_factory=lambda: ["Service Worker registration blocked by Playwright"]
    )

    def follow(self, page: Page) -> None:
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.problems.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    def left(self) -> list[str]:
        return [
            problem
            for problem in self.problems
            if not any(re.search(pattern, problem) for pattern in self.allowed)
        ]

    def check(self) -> None:
        assert self.left() == []


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    """One for all tests here. Beside it no test may be asynchronous: the event loop of its thread is Playwright's."""
    with sync_playwright() as playwright:
        yield playwright


def _launch(playwright: Playwright, path: str) -> Browser:
    if not Path(path).exists():
        if os.environ.get("CI"):
            pytest.fail(f"{path} is missing")
        pytest.skip(f"{path} is not installed")
    return playwright.chromium.launch(executable_path=path, args=SWITCHES)


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    browser = _launch(playwright, CHROMIUM)
    yield browser
    browser.close()


@pytest.fixture
def whole_browser(playwright: Playwright) -> Iterator[Browser]:
    """Chromium with all that it has beside its engine: notifications."""
    browser = _launch(playwright, WHOLE_CHROMIUM)
    yield browser
    browser.close()


@pytest.fixture
def watch() -> Iterator[Watch]:
    watch = Watch()
    yield watch
    watch.check()


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, watch: Watch) -> Iterator[OpenPage]:
    """`open_page(url, state=…, within=…, **context options)`: a page in a profile of its own, watched, of `browser` or of
    the one that it is to be opened `within`."""
    contexts: list[BrowserContext] = []

    def open_(
        url: str, state: StorageState | None = None, within: Browser = browser, **options: Any
    ) -> Page:
        usual: dict[str, Any] = {
            "viewport": {"width": 1280, "height": 800},
            "reduced_motion": "reduce",  # nobody looks, and to paint a spinner for as long as a test waits is work
            "service_workers": "block",  # servers go and come back here, and the worker would complain of it
        }
        context = within.new_context(storage_state=state, **(usual | options))
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        watch.follow(page)
        page.goto(url)
        return page

    yield open_
    for context in contexts:
        for page in context.pages:
            with suppress(Error):  # it shows nothing any more
                if page.locator("main").count() > 1:
                    watch.problems.append(f"a page within a page: {page.url}")
        context.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One offline server for all tests that do not break it."""
    server = Server.prepared(tmp_path_factory.mktemp("izzy"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def owner(server: Server) -> StorageState:
    return server.owner


@pytest.fixture
def someone(server: Server) -> StorageState:
    """A user of this test's own, with no memories and no conversations."""
    return server.someone()


@pytest.fixture(scope="session")
def peer() -> Iterator[AnthropicServer]:
    with AnthropicServer.in_thread() as server:
        yield server


@pytest.fixture
def model(peer: AnthropicServer) -> Model:
    """The model of `model_server`, for this test."""
    model = Model()
    peer.fallback = model
    return model


@pytest.fixture(scope="session")
def model_server(tmp_path_factory: pytest.TempPathFactory, peer: AnthropicServer) -> Iterator[Server]:
    """One server with a model for all tests that do not break it."""
    settings = {"ANTHROPIC_BASE_URL": peer.url, "ANTHROPIC_API_KEY": "test-key"}
    server = Server.prepared(tmp_path_factory.mktemp("with-model"), settings)
    server.start()
    yield server
    server.stop()
