"""Past conversations of one user as the tools see them: implements `apps.agent.protocols.ConversationTools`."""

from typing import Any
from uuid import UUID

from apps.chat.models import Conversation
from apps.chat.selectors.conversations import conversation_get, conversations_for, with_counts
from apps.chat.selectors.messages import readable_messages
from apps.chat.services.conversations import conversation_delete
from apps.chat.summary.transcript import shortened
from apps.core.database import in_db
from apps.core.errors import Conflict, NotFound

SUMMARY_CHARS = 300


class PastConversations:
    """The conversations of one user; `current_id` is the one that is going on."""

    def __init__(self, *, user_id: UUID, current_id: UUID | None = None) -> None:
        self.user_id = user_id
        self.current_id = current_id

    async def list(self, *, limit: int, offset: int) -> dict[str, Any]:
        """`{count, conversations: [{id, title, created_at, updated_at, messages, summary?, current?}]}`, newest first.

        `summary` is the beginning of that of a long one, unless it sums up what others wrote.
        """
        return await in_db(self._list, limit, offset)

    async def read(self, conversation_id: str, *, limit: int, offset: int) -> dict[str, Any]:
        """`{id, title, created_at, count, offset, messages: [{role, text, created_at}]}`, oldest first."""
        return await in_db(self._read, conversation_id, limit, offset)

    async def delete(self, conversation_id: str) -> dict[str, Any]:
        """Deletes another conversation with its messages and passages; Conflict for the one going on."""
        return await in_db(self._delete, conversation_id)

    def _list(self, limit: int, offset: int) -> dict[str, Any]:
        rows = conversations_for(self.user_id, channel=None)
        return {
            "count": rows.count(),
            "conversations": [self._entry(row) for row in with_counts(rows)[offset : offset + limit]],
        }

    def _entry(self, row: Conversation) -> dict[str, Any]:
        entry = {
            "id": str(row.id),
            "title": str(row),
            "created_at": row.created_at.isoformat(timespec="minutes"),
            "updated_at": row.updated_at.isoformat(timespec="minutes"),
            "messages": getattr(row, "visible_messages", 0),
        }
        if row.summary and not row.summary_untrusted:
            entry["summary"] = shortened(" ".join(row.summary.split()), SUMMARY_CHARS)
        return entry | ({"current": True} if row.id == self.current_id else {})

    def _read(self, conversation_id: str, limit: int, offset: int) -> dict[str, Any]:
        conversation = self._find(conversation_id)
        rows = readable_messages(conversation).exclude(text="")
        return {
            "id": str(conversation.id),
            "title": str(conversation),
            "created_at": conversation.created_at.isoformat(timespec="minutes"),
            "count": rows.count(),
            "offset": offset,
            "messages": [
                {
                    "role": row.speaker or row.role,
                    "text": row.text,
                    "created_at": row.created_at.isoformat(timespec="minutes"),
                }
                for row in rows[offset : offset + limit]
            ],
        }

    def _delete(self, conversation_id: str) -> dict[str, Any]:
        conversation = self._find(conversation_id)
        if conversation.id == self.current_id:
            raise Conflict("That is the conversation you are in; the user can delete it from the list.")
        conversation_delete(user_id=self.user_id, conversation_id=conversation.id)
        return {"deleted": str(conversation.id), "title": str(conversation)}

    def _find(self, conversation_id: str) -> Conversation:
        try:
            return conversation_get(self.user_id, conversation_id)
        except NotFound:
            raise NotFound(
                f"There is no conversation with the id {conversation_id!r}. Call conversation_list for the ids."
            ) from None
