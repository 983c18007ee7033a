"""Bringing in much holds up nobody: texts are read before the transaction that writes them begins."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from apps.accounts.models import User
from apps.chat.conversations.ingest import messages_ingest
from apps.core import text
from apps.memory.capture import windows
from apps.memory.models import CaptureWindow
from apps.memory.notes.creation import memory_bulk_create
from apps.search.embedders.static import StaticEmbedder
from apps.search.models import Passage
from apps.search.selectors import search
from apps.search.text import analysis
from apps.search.text.analysis import document_terms

SENTENCE = "The harbour master keeps a list of boats. > I am quoted, he said. "


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns what was worked out inside a transaction."""
    found: list[str] = []

    def watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if connection.in_atomic_block:
                found.append(name)
            return function(*args, **kwargs)

        return call

    monkeypatch.setattr(analysis, "chunk_text", watched("chunks", text.chunk_text))
    monkeypatch.setattr(analysis, "document_terms", watched("terms", document_terms))
    monkeypatch.setattr(windows, "chunk_text", watched("pieces", text.chunk_text))
    embed = watched("vectors", StaticEmbedder.embed_documents)
    monkeypatch.setattr(StaticEmbedder, "embed_documents", embed)
    return found


def test_messages_are_read_before_they_are_written(alice: User, inside: list[str]) -> None:
    given = [{"role": "user", "content": f"{number}. {SENTENCE * 60}"} for number in range(30)]

    done = messages_ingest(user_id=alice.pk, session="harbour", messages=given)

    assert inside == []
    assert len(done.added) == 30
    passages = Passage.objects.filter(user_id=alice.pk)
    assert passages.count() > 60
    assert not passages.filter(vector=None).exists()
    assert search(alice.pk, "boats of the harbour master", top_k=3)
    assert CaptureWindow.objects.for_user(alice).exists()


def test_what_has_come_before_is_not_read_again(alice: User, inside: list[str]) -> None:
    given = [{"role": "user", "content": SENTENCE * 60, "external_id": "1"}]
    first = messages_ingest(user_id=alice.pk, session="harbour", messages=given)
    again = messages_ingest(
        user_id=alice.pk, session="harbour", messages=[*given, {"role": "user", "content": "New."}]
    )

    assert (len(first.added), again.repeated, len(again.added)) == (1, 1, 1)
    assert inside == []


def test_so_are_many_notes(alice: User, inside: list[str]) -> None:
    notes = memory_bulk_create(
        user_id=alice.pk, drafts=[{"content": f"{number}. {SENTENCE * 30}"} for number in range(40)]
    )

    assert inside == []
    assert len(notes) == 40
    assert search(alice.pk, "boats of the harbour master", top_k=3)
