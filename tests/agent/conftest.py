from collections.abc import AsyncIterator
from typing import Any

import pytest

from apps.agent.offline import responder
from tests.agent.waiting import Shredder
from tests.peers.anthropic_server import AnthropicServer
from tests.peers.web_pages import WebPages


@pytest.fixture
async def peer(settings: Any) -> AsyncIterator[AnthropicServer]:
    """A Messages API server that the model client is pointed at."""
    async with AnthropicServer() as server:
        settings.ANTHROPIC_API_KEY = "key-of-the-tests"
        settings.ANTHROPIC_BASE_URL = server.url
        yield server


@pytest.fixture
async def web(settings: Any) -> AsyncIterator[WebPages]:
    """Pages that can be opened."""
    async with WebPages() as server:
        settings.IZZY_PRIVATE_HOSTS = [server.allowed]
        yield server


@pytest.fixture
def offline(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No model server; the offline model answers without pauses."""
    settings.ANTHROPIC_API_KEY = settings.ANTHROPIC_BASE_URL = ""
    monkeypatch.setattr(responder, "WORD_SECONDS", 0)


@pytest.fixture
def shredder() -> Shredder:
    return Shredder()
