"""The services a tool may use, as protocols, so that a handler runs without a database in its tests.

The apps further right implement them: `apps.memory` the memory, `apps.chat` the conversations. Every method is
asynchronous, belongs to one user (the implementation is made for that user), and raises `apps.core.errors.IzzyError`
with a message that the model can act on.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias
from uuid import UUID

Progress: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]
"""Sends a `tool_progress` event with the given data."""


class Before(Protocol):
    """What lies before the model in one conversation. Synchronous; asked at the moment of deciding."""

    @property
    def said(self) -> Callable[[], Sequence[str]]:
        """The user's messages in the conversation."""

    def own(self) -> Sequence[str]:
        """Those messages without what they quote of others."""

    @property
    def is_untrusted(self) -> bool:
        """Whether others' words are among it: of a tool, quoted by the user, or in a note that was brought up."""


class MemoryTools(Protocol):
    """One user's notes."""

    async def search(
        self,
        query: str,
        *,
        top_k: int,
        include_conversation: bool,
        category: str | None,
        as_of: str | None,
        threshold: float | None,
    ) -> list[dict[str, Any]]:
        """`{note_id, text, score, source, created_at}` of the best matches, best first, none below the threshold."""

    async def save(
        self,
        content: str,
        *,
        tags: list[str] | None,
        tier: str | None,
        importance: int | None,
        category: str | None,
    ) -> dict[str, Any]:
        """`{note_id, …}` of the new note."""

    async def update(self, note_id: str, content: str) -> dict[str, Any]:
        """Replaces the text; the id stays."""

    async def delete(self, note_id: str) -> dict[str, Any]:
        """Takes the note out of search at once."""

    async def recall(
        self, keywords: list[str], *, tier: str | None, tags: list[str] | None
    ) -> dict[str, Any]:
        """`{count, memories}`: the notes that contain a keyword, highest priority first, at most ten."""

    async def link(self, source_id: str, target_id: str, *, relation: str, weight: float) -> dict[str, Any]:
        """Links two notes; again with the same relation sets the weight."""

    async def related(self, note_id: str, *, depth: int, limit: int) -> dict[str, Any]:
        """`{count, memories}`: the notes within `depth` links, nearest first."""

    async def deep(self, query: str, *, progress: Progress, turn_id: UUID | None) -> dict[str, Any]:
        """`{searches, count, memories, summary?}`: what many searches side by side find about a question."""


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """What a command of the memory tool answers; `untrusted` where that shows what others wrote."""

    text: str
    untrusted: bool = False


class FileTools(Protocol):
    """One user's memory files."""

    async def run(self, fields: dict[str, Any]) -> FileAnswer:
        """The answer to one command of the memory tool, given its fields."""


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """What a run of a capability gave, or says of itself; `own_words` where nobody but its user and Izzy can have written that."""

    text: str
    own_words: bool = False


class CatalogTools(Protocol):
    """One user's capabilities."""

    async def lookup(self, *, name: str, query: str) -> dict[str, Any]:
        """`{found, id, name, description, status, input_schema, …}` of the one with that name, else of the best match;
        `others` are further matches, `{name, description}` each."""

    async def list(self, *, status: str, limit: int, offset: int) -> dict[str, Any]:
        """`{count, capabilities: [{name, description, status}]}` by name."""

    async def docs(self, name: str) -> RunAnswer:
        """The RUN.md of a capability."""

    async def execute(
        self,
        name: str,
        args: dict[str, Any],
        *,
        progress: Progress,
        tool_call_id: UUID,
        permission: dict[str, Any] | None,
    ) -> RunAnswer:
        """The result of a run in a fresh sandbox. `permission` is what the user has just allowed."""


class ConversationTools(Protocol):
    """One user's past conversations."""

    async def list(self, *, limit: int, offset: int) -> dict[str, Any]:
        """`{count, conversations: [{id, title, created_at, updated_at, …}]}`, newest first."""

    async def search(self, query: str, *, limit: int) -> dict[str, Any]:
        """`{count, results: [{conversation_id, title, role, text, score, created_at, …}]}`, best first."""

    async def read(self, conversation_id: str, *, limit: int, offset: int) -> dict[str, Any]:
        """`{id, title, messages: [{role, text, created_at}], …}`, oldest first."""

    async def delete(self, conversation_id: str) -> dict[str, Any]:
        """Deletes the conversation with its messages and passages."""
