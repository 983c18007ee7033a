"""Shared by the tests of memory: making notes and looking for traces of them."""

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

import pytest
from pytest_django import Settings

from apps.accounts.models import User
from apps.memory.models import Memory
from apps.memory.notes.creation import memory_create
from apps.memory.similarity import NOTES
from apps.search.selectors import search
from tests.chat.conftest import model as model
from tests.peers.anthropic_server import AnthropicServer

MakeNote = Callable[..., Memory]


@pytest.fixture
def note() -> MakeNote:
    """`note(alice, "text", tags=[…])`: a note of hers."""

    def make(user: User, content: str = "I am allergic to shellfish.", **fields: Any) -> Memory:
        return memory_create(user_id=user.pk, content=content, **fields)

    return make


@pytest.fixture
async def peer(settings: Settings) -> AsyncIterator[AnthropicServer]:
    """A loopback server that speaks the Messages API, as the instance's model."""
    async with AnthropicServer() as server:
        settings.ANTHROPIC_API_KEY = "key-of-the-tests"
        settings.ANTHROPIC_BASE_URL = server.url
        yield server


def found(user: User, query: str) -> list[UUID]:
    """The ids of the notes that search finds for a user, best first."""
    return [hit.source_id for hit in search(user.pk, query, top_k=20, scope=NOTES)]


def found_texts(user: User, query: str) -> list[str]:
    """The texts that search finds for a user, best first."""
    return [hit.text for hit in search(user.pk, query, top_k=20, scope=NOTES)]
