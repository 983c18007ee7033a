"""Shared by the chat's tests: a model server on the loopback, and a runner that is quiet when a test ends."""

from collections.abc import AsyncIterator

import pytest
from pytest_django import Settings

from apps.agent.web.page_parts import recent_pages
from apps.chat.turns.scheduler import scheduler
from tests.peers.anthropic_server import AnthropicServer
from tests.peers.web_pages import WebPages


@pytest.fixture(autouse=True)
def _transactional(transactional_db: None) -> None:
    """Turns use connections of their own, so every test here commits."""


@pytest.fixture
async def model(settings: Settings) -> AsyncIterator[AnthropicServer]:
    """A server that speaks the Messages API and is the instance's model; the runner is closed in the end."""
    async with AnthropicServer() as server:
        settings.ANTHROPIC_BASE_URL = server.url
        settings.ANTHROPIC_API_KEY = "key-for-tests"
        yield server
        await scheduler().close()


@pytest.fixture
async def runner() -> AsyncIterator[None]:
    """For tests without a model server: closes the runner in the end."""
    yield
    await scheduler().close()


@pytest.fixture
async def web(settings: Settings) -> AsyncIterator[WebPages]:
    """Pages that can be opened, of others."""
    recent_pages.clear()
    async with WebPages() as server:
        settings.IZZY_PRIVATE_HOSTS = [server.allowed]
        yield server
