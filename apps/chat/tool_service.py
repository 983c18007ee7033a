"""Past conversations of one user as the tools see them: implements `apps.agent.protocols.ConversationTools`."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from apps.agent.models import ToolCall
from apps.chat.models import Conversation, Message
from apps.chat.selectors.conversations import conversation_get, conversations_for, messages_counted
from apps.chat.selectors.messages import readable_messages
from apps.chat.services.deletion import conversation_delete
from apps.chat.summary.transcript import shortened
from apps.core.database import in_db
from apps.core.errors import Conflict, NotFound
from apps.core.text import clean_text
from apps.memory.models import CaptureWindow
from apps.search.documents import Hit, Scope, Source
from apps.search.selectors import search

SUMMARY_CHARS = 300
QUOTED_CHARS = 1500
READ_CHARS = 16_000
"""So many characters of messages are read at once; a longer message is shortened."""
MAX_QUERY_CHARS = 10_000


class PastConversations:
    """The conversations of one user; `current_id` is the one that is going on."""

    def __init__(self, *, user_id: UUID, current_id: UUID | None = None) -> None:
        self.user_id = user_id
        self.current_id = current_id

    async def list(self, *, limit: int, offset: int) -> dict[str, Any]:
        """`{count, conversations: [{id, title, created_at, updated_at, messages, summary?, current?, untrusted?}]}`,
        newest first.

        `summary` is the beginning of that of a long one, unless it sums up what others wrote. `untrusted`: the title
        was made by a model that may have had others' words before it.
        """
        return await in_db(self._list, limit, offset)

    async def search(self, query: str, *, limit: int) -> dict[str, Any]:
        """`{count, results: [{conversation_id, title, role, text, score, created_at, current?}]}`, best first."""
        return await in_db(self._search, query, limit)

    async def read(self, conversation_id: str, *, limit: int, offset: int) -> dict[str, Any]:
        """`{id, title, created_at, count, offset, messages: [{role, text, created_at}]}`, oldest first.

        At most `limit` messages, and no more than fit into a tool's result; the next page begins after the last one.
        """
        return await in_db(self._read, conversation_id, limit, offset)

    async def delete(self, conversation_id: str) -> dict[str, Any]:
        """Deletes another conversation with its messages and passages; Conflict for the one going on."""
        return await in_db(self._delete, conversation_id)

    def _list(self, limit: int, offset: int) -> dict[str, Any]:
        rows = conversations_for(self.user_id, channel=None)
        listed = list(rows[offset : offset + limit])
        counts = messages_counted(self.user_id, [row.id for row in listed])
        foreign = self._foreign([row.id for row in listed if not row.title_by_user])
        return {
            "count": rows.count(),
            "conversations": [
                self._entry(row, counts.get(row.id, 0)) | ({"untrusted": True} if row.id in foreign else {})
                for row in listed
            ],
        }

    def _foreign(self, conversations: Sequence[UUID]) -> set[UUID]:
        """Those of the conversations in which a tool read, or the user quoted, what others wrote."""
        wanted = {"conversation_id__in": conversations}
        read = ToolCall.objects.owned_by(self.user_id).filter(untrusted=True, **wanted)
        quoted = CaptureWindow.objects.for_user(self.user_id).filter(tainted=True, **wanted)
        ids = {key for rows in (read, quoted) for key in rows.values_list("conversation_id", flat=True)}
        return {key for key in ids if key is not None}

    def _search(self, query: str, limit: int) -> dict[str, Any]:
        text = clean_text(query, field="query", max_chars=MAX_QUERY_CHARS)
        hits = search(self.user_id, text, top_k=limit, scope=Scope(sources=frozenset({Source.CONVERSATION})))
        said = Message.objects.owned_by(self.user_id).filter(conversation__deleted_at=None)
        said = said.select_related("conversation")
        known = said.in_bulk([hit.source_id for hit in hits])
        found = [self._said(hit, known[hit.source_id]) for hit in hits if hit.source_id in known]
        return {"count": len(found), "results": found}

    def _said(self, hit: Hit, message: Message) -> dict[str, Any]:
        entry = {
            "conversation_id": str(message.conversation_id),
            "title": str(message.conversation),
            "role": message.speaker or message.role,
            "text": shortened(hit.text, QUOTED_CHARS),
            "score": hit.score,
            "created_at": message.created_at.isoformat(timespec="minutes"),
        }
        return entry | ({"current": True} if message.conversation_id == self.current_id else {})

    def _entry(self, row: Conversation, messages: int) -> dict[str, Any]:
        entry = {
            "id": str(row.id),
            "title": str(row),
            "created_at": row.created_at.isoformat(timespec="minutes"),
            "updated_at": row.updated_at.isoformat(timespec="minutes"),
            "messages": messages,
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
            "messages": _fitting(rows[offset : offset + limit].iterator(chunk_size=20)),
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


def _fitting(rows: Iterable[Message]) -> list[dict[str, str]]:
    """The first of these messages, together at most READ_CHARS long; at least one."""
    found: list[dict[str, str]] = []
    room = READ_CHARS
    for row in rows:
        text = shortened(row.text, READ_CHARS)
        room -= len(text)
        if found and room < 0:
            break
        found.append(
            {
                "role": row.speaker or row.role,
                "text": text,
                "created_at": row.created_at.isoformat(timespec="minutes"),
            }
        )
    return found
