"""Titles of conversations: from the first words at once, from the fast model when there is one."""

import logging
import re
from uuid import UUID

from django.db import transaction

from apps.agent.model.client import ModelError, ModelRequest, complete, current_endpoint, model_for
from apps.agent.model.sdk import default_client
from apps.agent.turn.events import TitleMade
from apps.chat.models import Conversation, MessageKind, Turn, TurnStatus
from apps.chat.stream.events import LoggedEvent
from apps.core.db.pool import in_db

logger = logging.getLogger(__name__)
MAX_CHARS = 60
_MARKUP = re.compile(r"[*_`#>\[\]]+|https?://\S+")
_SENTENCE = re.compile(r"(?<=[.!?…])\s")
_POLITE = re.compile(r"^(hi|hey|hello|please|izzy|ok|okay|so|well|um|hallo|bitte)\b[\s,.!:]+", re.IGNORECASE)
TITLE_TOKENS = 40
TITLE_EXCERPT = 1500
TITLE_PROMPT = (
    "Give the conversation below a title of two to six words in the language of its user. "
    "Answer with the title alone: no quotes, no full stop."
)


def heuristic_title(text: str) -> str:
    """The first sentence with a word in it, without markup and greeting, cut at a word to 60 characters."""
    plain = " ".join(_MARKUP.sub(" ", text).split())
    sentences = [part for part in _SENTENCE.split(plain) if re.search(r"\w", part)]
    title = sentences[0] if sentences else plain
    shorter = _POLITE.sub("", title)
    title = (shorter if len(shorter.split()) > 1 else title).rstrip(" .,;:!…")
    if len(title) > MAX_CHARS:
        title = title[:MAX_CHARS].rsplit(" ", 1)[0].rstrip(" .,;:") + "…"
    return title[:1].upper() + title[1:] or "New conversation"


def clean_title(text: str) -> str:
    """A model's proposal as a title: one line, no quotes, at most 60 characters; "" when it is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    title = " ".join(_MARKUP.sub(" ", lines[0]).split()).removeprefix("Title:").strip(" \"'“”«».")
    return title if 0 < len(title) <= MAX_CHARS else ""


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
    if turn is None or turn.state != TurnStatus.DONE or turn.conversation.title_by_user:
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
