"""Shared by the builder's tests: a model server on the loopback, and a pool of builds of the test's own."""

from collections.abc import AsyncIterator

import pytest
from pytest_django import Settings

from apps.builder.runner import job
from apps.builder.runner.pool import BuildPool
from tests.peers.anthropic_server import AnthropicServer


@pytest.fixture(autouse=True)
def _transactional(transactional_db: None) -> None:
    """Builds use connections of their own, so every test here commits."""


@pytest.fixture(autouse=True)
def _patience(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that fails is asked again at once. Who expects no answer to a question sets a shorter time for it."""
    settings.IZZY_BUILD_ANSWER_SECONDS = 60.0
    monkeypatch.setattr(job, "RETRY_SECONDS", (0.01, 0.01, 0.01))


@pytest.fixture
async def model(settings: Settings) -> AsyncIterator[AnthropicServer]:
    """A server that speaks the Messages API and is the instance's model."""
    async with AnthropicServer() as server:
        settings.ANTHROPIC_BASE_URL = server.url
        settings.ANTHROPIC_API_KEY = "key-for-tests"
        yield server


@pytest.fixture
async def pool() -> AsyncIterator[BuildPool]:
    """The builds of this test's process; what still runs in the end is stopped."""
    pool = BuildPool(runner="the-test")
    yield pool
    pool.stop()
    await pool.run()
