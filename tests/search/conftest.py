"""Shared by the tests of search: saving texts as notes and messages, and an embedding server."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from apps.accounts.models import User
from apps.core.ids import uuid7
from apps.search import spaces
from apps.search.documents import Document, Source
from apps.search.index import cache
from apps.search.proactive import concern, encoder_lesson
from apps.search.selectors import search
from apps.search.services import documents_index
from tests.peers.ollama_server import OllamaPeer, ollama_server
from tests.waiting import PATIENCE

DAY = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _fresh_memory() -> Iterator[None]:
    """No index and no grudge against an embedder from another test."""
    cache.forget()
    spaces.forget_queries()
    encoder_lesson._lessons.clear()
    spaces.note_up()
    yield
    cache.forget()


@pytest.fixture
def ollama(settings: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[OllamaPeer]:
    """An embedding server that OLLAMA_URL points to, with IZZY_EMBEDDER set to one of its models; however busy the machine
    is, it is waited for. It learns from a few examples, not thousands."""
    monkeypatch.setattr(spaces, "ANSWER_SECONDS", PATIENCE)
    monkeypatch.setattr(concern, "ENCODER_EXAMPLES", 200)
    monkeypatch.setattr(encoder_lesson, "MOST_NOTES", 40)
    with ollama_server() as peer:
        settings.OLLAMA_URL = peer.url  # type: ignore[attr-defined]
        settings.IZZY_EMBEDDER = "ollama:nomic-embed-text"  # type: ignore[attr-defined]
        yield peer


@pytest.fixture
def minilm(settings: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The encoder that comes along, waited for however busy the machine is."""
    monkeypatch.setattr(spaces, "ANSWER_SECONDS", PATIENCE)
    settings.IZZY_EMBEDDER = "minilm"  # type: ignore[attr-defined]


def note(text: str, **fields: object) -> Document:
    """A note as a document; `fields` replace what it has by default."""
    values: dict[str, object] = {"source": Source.MEMORY, "source_id": uuid7(), "happened_at": DAY}
    return Document(text=text, **(values | fields))  # type: ignore[arg-type]


def save(user: User, *texts: str, **fields: object) -> list[UUID]:
    """Save notes of a user; returns their ids."""
    documents = [note(text, **fields) for text in texts]
    documents_index(user_id=user.pk, documents=documents)
    return [document.source_id for document in documents]


def say(user: User, *lines: tuple[str, str], start: datetime = DAY, name: str = "") -> UUID:
    """Save a conversation of (speaker, text), a minute apart; external ids are `name` and the place from 0."""
    conversation = uuid7()
    documents_index(
        user_id=user.pk,
        documents=[
            note(
                text,
                source=Source.CONVERSATION,
                conversation_id=conversation,
                position=place,
                speaker=speaker,
                external_id=f"{name}{place}",
                happened_at=start + timedelta(minutes=place),
            )
            for place, (speaker, text) in enumerate(lines)
        ],
    )
    return conversation


def found(user: User, query: str, **options: object) -> list[str]:
    """The texts that a search finds, best first."""
    return [hit.text for hit in search(user.pk, query, **options)]  # type: ignore[arg-type]


def whose_indexes() -> set[UUID]:
    """The users of whom this process holds an index."""
    return {key[0] for key, entry in cache._entries.items() if entry.index is not None}
