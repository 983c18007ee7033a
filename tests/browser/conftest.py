"""A real server, a real Chromium, and a watch on its console: any error or refused inline script fails the test."""

import itertools
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    StorageState,
    expect,
    sync_playwright,
)

from tests.browser.server import Server

CHROMIUM = os.environ.get("IZZY_TEST_CHROMIUM", "/usr/bin/chromium")
PASSWORD = "correct horse battery"
OWNER = "alice"
NUMBERS = itertools.count(1)
PATIENCE = 30_000
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
            item.add_marker(pytest.mark.xdist_group("browser"))


@dataclass
class Watch:
    """What the console said that it should not have. `allowed` are patterns a test expects."""

    problems: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)

    def follow(self, page: Page) -> None:
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.problems.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    def check(self) -> None:
        left = [
            problem
            for problem in self.problems
            if not any(re.search(pattern, problem) for pattern in self.allowed)
        ]
        assert left == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not Path(CHROMIUM).exists():
        if os.environ.get("CI"):
            pytest.fail(f"{CHROMIUM} is missing")
        pytest.skip(f"{CHROMIUM} is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
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
    """`open_page(url, state=…, **context options)`: a page in a browser profile of its own, watched."""
    contexts: list[BrowserContext] = []

    def open_(url: str, state: StorageState | None = None, **options: Any) -> Page:
        context = browser.new_context(
            storage_state=state, **({"viewport": {"width": 1280, "height": 800}} | options)
        )
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        watch.follow(page)
        page.goto(url)
        return page

    yield open_
    for context in contexts:
        context.close()


def set_up(server: Server) -> StorageState:
    """Makes the first account over HTTP and gives its session."""
    with httpx.Client(
        base_url=server.url, headers={"Referer": server.url}, timeout=PATIENCE / 1000
    ) as client:
        token = server.setup_link.split("#")[1]
        post(client, "/setup/", {"token": token, "username": OWNER, "password": PASSWORD})
        return session_of(client, server)


def add_user(server: Server, owner: StorageState, name: str) -> StorageState:
    """The superuser adds a user, who signs in."""
    cookies = {cookie["name"]: cookie["value"] for cookie in owner["cookies"]}
    with httpx.Client(
        base_url=server.url, cookies=cookies, headers={"Referer": server.url}, timeout=PATIENCE / 1000
    ) as client:
        answer = post(client, "/settings/users/", {"username": name})
        password = re.search(r'<code id="secret">([^<]+)</code>', answer.text)
        assert password is not None, answer.text
    with httpx.Client(
        base_url=server.url, headers={"Referer": server.url}, timeout=PATIENCE / 1000
    ) as client:
        post(client, "/sign-in/", {"username": name, "password": password[1]})
        return session_of(client, server)


def post(client: httpx.Client, path: str, data: dict[str, str]) -> httpx.Response:
    """Sends a form as a browser would: with the token that came with the page."""
    token = re.search(
        r'name="csrfmiddlewaretoken" value="([^"]+)"', client.get(path, follow_redirects=True).text
    )
    assert token is not None
    answer = client.post(path, data=data | {"csrfmiddlewaretoken": token[1]}, follow_redirects=False)
    assert answer.status_code in {200, 302}, answer.text
    return answer


def session_of(client: httpx.Client, server: Server) -> StorageState:
    cookies = [
        {"name": cookie.name, "value": cookie.value or "", "url": server.url} for cookie in client.cookies.jar
    ]
    return {"cookies": cookies, "origins": []}  # type: ignore[typeddict-item]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One offline server for all tests that do not break it."""
    server = Server(tmp_path_factory.mktemp("izzy"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def owner(server: Server) -> StorageState:
    return set_up(server)


@pytest.fixture
def someone(server: Server, owner: StorageState) -> StorageState:
    """A user of this test's own, with no memories and no conversations."""
    return add_user(server, owner, f"user{next(NUMBERS)}")
