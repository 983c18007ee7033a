"""Shared by the tests of memory: making notes and looking for traces of them."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from apps.accounts.models import User
from apps.memory.models import Memory
from apps.memory.notes.creation import memory_create
from apps.memory.similarity import NOTES
from apps.search.selectors import search
from tests.agent.conftest import peer as peer
from tests.chat.conftest import model as model

MakeNote = Callable[..., Memory]


@pytest.fixture
def note() -> MakeNote:
    """`note(alice, "text", tags=[…])`: a note of hers."""

    def make(user: User, content: str = "I am allergic to shellfish.", **fields: Any) -> Memory:
        return memory_create(user_id=user.pk, content=content, **fields)

    return make


def found(user: User, query: str) -> list[UUID]:
    """The ids of the notes that search finds for a user, best first."""
    return [hit.source_id for hit in search(user.pk, query, top_k=20, scope=NOTES)]


def found_texts(user: User, query: str) -> list[str]:
    """The texts that search finds for a user, best first."""
    return [hit.text for hit in search(user.pk, query, top_k=20, scope=NOTES)]
