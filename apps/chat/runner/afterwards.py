"""Work after a turn: its messages become searchable, the conversation gets its title."""

import logging
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.agent.client import ModelError, ModelRequest, complete
from apps.agent.endpoint import current_endpoint, model_for
from apps.agent.events import TitleMade
from apps.agent.sdk import default_client
from apps.chat.indexing import document_of
from apps.chat.log import LoggedEvent
from apps.chat.models import OPEN_STATES, Conversation, Message, MessageKind, Turn, TurnState
from apps.chat.titles import clean_title
from apps.core.beforehand import beforehand
from apps.core.database import in_db
from apps.search.documents import Document
from apps.search.services import documents_index, documents_prepare

logger = logging.getLogger(__name__)

INDEX_BATCH = 500
UNINDEXED_AGE = timedelta(minutes=1)
TITLE_TOKENS = 40
TITLE_EXCERPT = 1500
TITLE_PROMPT = (
    "Give the conversation below a title of two to six words in the language of its user. "
    "Answer with the title alone: no quotes, no full stop."
)


def turn_index(turn_id: UUID) -> None:
    """Makes what was said in the turn searchable, unless its conversation is one without memory."""
    rows = Message.objects.unscoped().filter(turn_id=turn_id, indexed=False)
    messages_index(list(rows.select_related("conversation")))


def messages_index(messages: list[Message]) -> None:
    """Writes the passages of these messages (of any users) and marks them as done.

    A long text is cut and read before the transaction, which would hold up everybody else's meanwhile.
    """
    by_user: dict[UUID, list[Document]] = {}
    for message in messages:
        documents = by_user.setdefault(message.user_id, [])
        if message.conversation.use_memory and message.superseded_by_id is None and message.text:
            documents.append(document_of(message))
    with beforehand():
        for user_id, documents in by_user.items():
            documents_prepare(user_id=user_id, texts=[document.text for document in documents])
        _passages_write(by_user, [message.id for message in messages])


@transaction.atomic
def _passages_write(by_user: dict[UUID, list[Document]], message_ids: list[UUID]) -> None:
    """Leaves out what was replaced or deleted meanwhile."""
    rows = Message.objects.unscoped().filter(id__in=message_ids)
    there = set(rows.filter(superseded_by=None).values_list("id", flat=True))
    for user_id, documents in by_user.items():
        documents_index(user_id=user_id, documents=[doc for doc in documents if doc.source_id in there])
    rows.update(indexed=True)


def messages_index_pending() -> None:
    """Sweep: indexes what a crash left out, of turns that have ended. A message that fails does not keep back others."""
    rows = (
        Message.objects.unscoped()
        .filter(indexed=False, kind=MessageKind.TEXT, created_at__lt=timezone.now() - UNINDEXED_AGE)
        .exclude(turn__state__in=OPEN_STATES)
        .select_related("conversation")
        .order_by("id")
    )
    batch = list(rows[:INDEX_BATCH])
    while batch:
        if not _indexed(batch):
            for message in batch:
                _indexed([message])
        batch = list(rows.filter(id__gt=batch[-1].id)[:INDEX_BATCH])


def _indexed(messages: list[Message]) -> bool:
    try:
        messages_index(messages)
    except Exception:  # whatever is wrong with one message, the others are to be found
        logger.exception("%d messages from %s on were not indexed", len(messages), messages[0].id)
        return False
    return True


async def conversation_title_make(turn_id: UUID) -> LoggedEvent | None:
    """Has the fast model name the conversation after its first turn. None where there is no model, or no need."""
    request = await in_db(_title_request, turn_id)
    if request is None:
        return None
    try:
        response = await complete(default_client(), request)
    except ModelError as error:
        logger.info("no title for turn %s: %s", turn_id, error.message)
        return None
    return await in_db(_title_store, turn_id, clean_title(response.text))


def _title_request(turn_id: UUID) -> ModelRequest | None:
    turn = Turn.objects.unscoped().select_related("conversation").filter(id=turn_id).first()
    if turn is None or turn.state != TurnState.DONE or turn.conversation.title_by_user:
        return None
    conversation = turn.conversation
    if conversation.turns.filter(position__lt=turn.position).exists() or current_endpoint().is_offline:
        return None
    said = turn.messages.filter(kind=MessageKind.TEXT).exclude(text="").order_by("position")
    lines = [f"{role}: {text[:TITLE_EXCERPT]}" for role, text in said.values_list("role", "text")[:2]]
    if len(lines) < 2:
        return None
    return ModelRequest(
        user_id=turn.user_id,
        purpose="title",
        model=model_for("fast"),
        system=TITLE_PROMPT,
        messages=[{"role": "user", "content": "\n\n".join(lines)}],
        max_tokens=TITLE_TOKENS,
        conversation_id=conversation.id,
        turn_id=turn.id,
    )


@transaction.atomic
def _title_store(turn_id: UUID, title: str) -> LoggedEvent | None:
    unnamed = Conversation.objects.unscoped().filter(turns__id=turn_id, title_by_user=False)
    if not title or not unnamed.update(title=title):
        return None
    return LoggedEvent.of(turn_id, TitleMade(title))
