"""The notes of one user as the tools see them (`apps.agent.protocols.MemoryTools`)."""

from typing import Any
from uuid import UUID


class NoteTools:
    """Implements MemoryTools for one user; `conversation_id` is what `include_conversation` searches beside the notes."""

    def __init__(
        self, *, user_id: UUID, conversation_id: UUID | None = None, message_id: UUID | None = None
    ) -> None:
        self.user_id = user_id
        self.conversation_id = conversation_id
        self.message_id = message_id

    async def search(
        self, query: str, *, top_k: int, include_conversation: bool, category: str | None, as_of: str | None
    ) -> list[dict[str, Any]]:
        """`{note_id, text, score, source, created_at, faded?}`, best first; counts the access."""
        raise NotImplementedError

    async def save(
        self,
        content: str,
        *,
        tags: list[str] | None,
        tier: str | None,
        importance: int | None,
        category: str | None,
    ) -> dict[str, Any]:
        """`{note_id, message}`"""
        raise NotImplementedError

    async def update(self, note_id: str, content: str) -> dict[str, Any]:
        """`{note_id, message}`"""
        raise NotImplementedError

    async def delete(self, note_id: str) -> dict[str, Any]:
        """`{note_id, message}`"""
        raise NotImplementedError
