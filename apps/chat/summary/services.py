"""Every write of a conversation's summary and title: by the fast model, where there is one, in the background."""

import asyncio
import logging
import re
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, QuerySet
from django.utils import timezone

from apps.agent.model.client import ModelError, ModelRequest, complete, current_endpoint, model_for
from apps.agent.model.sdk import default_client
from apps.agent.turn.events import TitleMade
from apps.chat.models import Conversation, Message, MessageKind, TurnStatus
from apps.chat.prompt import prompt_text
from apps.chat.summary.selectors import (
    EXTRACT,
    SUMMARY_FIELDS,
    Budget,
    CompactJob,
    Need,
    compact_job,
    compact_job_until,
    extract,
)
from apps.chat.titles import clean_title
from apps.core.db.pool import in_db
from apps.core.db.prepared import prepared, prepared_update

logger = logging.getLogger(__name__)
PATIENCE = {Need.BUDGET: 600.0, Need.LIMIT: 45.0, Need.REFUSED: 60.0}
"""Seconds that the model has for all of it: a turn waits for the last two."""
WORDS_PER_TOKEN = 0.6
_SENTENCE = re.compile(r"[.!?…。！？]['\"”’)]*(?=\s|$)|\n")
_under_way: set[UUID] = set()
"""The conversations that this process sums up in the background now; one summary at a time is enough."""
TITLE_TOKENS = 40
TITLE_EXCERPT = 1500
TITLE_PROMPT = (
    "Give the conversation below a title of two to six words in the language of its user. "
    "Answer with the title alone: no quotes, no full stop."
)


async def conversation_compact_after(conversation_id: UUID) -> None:
    """After a turn: sums up what the conversation has outgrown. Whatever goes wrong, the next turn's end tries again."""
    if conversation_id in _under_way:
        return
    _under_way.add(conversation_id)
    try:
        await conversation_compact(conversation_id, Need.BUDGET)
    except Exception:  # the conversation goes on as it is
        logger.exception("conversation %s was not summed up", conversation_id)
    finally:
        _under_way.discard(conversation_id)


async def conversation_compact(conversation_id: UUID, need: Need) -> bool:
    """Sums the conversation up as far as it has to be. Whether what goes to the model has become shorter."""
    budget = Budget(settings.IZZY_HISTORY_TOKENS)
    offline = (await in_db(current_endpoint)).is_offline
    if offline and need == Need.BUDGET:
        return False
    rewrite = offline or need == Need.BUDGET
    job = await in_db(compact_job, conversation_id, need, budget, rewrite=rewrite)
    if job is None:
        return False
    text, by = (None, EXTRACT) if offline else (await _by_model(job, need, budget), model_for("fast"))
    if text is None:
        if need == Need.BUDGET:
            return False
        text, by = extract(job.earlier, job.turns, tokens=budget.summary), EXTRACT
    stored = await in_db(summary_store, job=job, text=text, by=by, budget=budget)
    if not stored:
        logger.info(
            "conversation %s changed while it was summed up; that summary is dropped", conversation_id
        )
    return stored


async def _by_model(job: CompactJob, need: Need, budget: Budget) -> str | None:
    """The model's summary, portion after portion; None when it fails, dawdles or has nothing to say."""
    summary = job.earlier
    try:
        async with asyncio.timeout(PATIENCE[need]):
            for run in job.runs:
                portion = "\n".join(job.texts[index] for index in run)
                earlier = f"<record>\n{summary}\n</record>\n\n" if summary else ""
                content = f"{earlier}<messages>\n{portion}\n</messages>\n\nWrite the new record."
                request = ModelRequest(
                    user_id=job.user_id,
                    purpose="summary",
                    model=model_for("fast"),
                    system=prompt_text("summary").replace(
                        "{words}", str(int(budget.summary * WORDS_PER_TOKEN))
                    ),
                    messages=[{"role": "user", "content": content}],
                    max_tokens=budget.summary,
                    conversation_id=job.conversation_id,
                )
                response = await complete(default_client(), request)
                summary = _whole(response.text.strip(), response.stop_reason)
                if not summary or response.stop_reason == "refusal":
                    logger.info("conversation %s: the model wrote no summary", job.conversation_id)
                    return None
    except ModelError as error:
        logger.info("conversation %s is not summed up: %s", job.conversation_id, error.message)
        return None
    except TimeoutError:
        logger.info("conversation %s is not summed up: the model is too slow", job.conversation_id)
        return None
    return summary


def _whole(text: str, stop_reason: str) -> str:
    """The text up to its last whole sentence, where the model was cut off."""
    if stop_reason != "max_tokens":
        return text
    ends = [match.end() for match in _SENTENCE.finditer(text)]
    return text[: ends[-1]].strip() if ends else text


@transaction.atomic
def summary_store(*, job: CompactJob, text: str, by: str, budget: Budget) -> bool:
    """Puts the summary in place of the messages it was made from; False when they, or the summary before, have changed
    meanwhile (an edit, a purge, another summary): then nothing is written.

    `by` is the model that wrote it, or `extract`.
    """
    rows = Conversation.objects.unscoped().select_for_update()
    conversation = rows.filter(id=job.conversation_id).first()
    if conversation is None:
        return False
    now = compact_job_until(conversation, job.until, budget, anew=job.anew)
    if now.basis != job.basis or not now.turns:
        return False
    conversation.summary, conversation.summary_until = text, job.until
    conversation.summary_untrusted, conversation.summary_by = job.untrusted, by
    conversation.summary_at = timezone.now()
    conversation.save(update_fields=SUMMARY_FIELDS)
    return True


@transaction.atomic
def summary_forget(*, user_id: UUID, conversation_id: UUID) -> bool:
    """Takes the conversation's summary away; whether there was one.

    The messages it stood for go to the model again, as they are then, until they are summed up anew: after the next
    turn, or before its first request where they exceed the limit.
    """
    rows = Conversation.objects.for_user(user_id).select_for_update()
    conversation = rows.filter(id=conversation_id).first()
    if conversation is None or not conversation.summary_until:
        return False
    conversation.summary, conversation.summary_until = "", 0
    conversation.summary_untrusted, conversation.summary_by = False, ""
    conversation.summary_at = None
    conversation.save(update_fields=SUMMARY_FIELDS)
    return True


def summary_cut(*, conversation: Conversation, position: int) -> None:
    """Takes the summary away where a message that it stands for is replaced. Call it inside a transaction."""
    if position <= conversation.summary_until:
        summary_forget(user_id=conversation.user_id, conversation_id=conversation.id)


async def conversation_title_make(conversation_id: UUID, turn_id: UUID) -> TitleMade | None:
    """Has the fast model name the conversation after its first turn. None where there is no model, or no need."""
    request = await in_db(_title_request, turn_id)
    if request is None:
        return None
    try:
        response = await complete(default_client(), request)
    except ModelError as error:
        logger.info("no title for turn %s: %s", turn_id, error.message)
        return None
    return await in_db(_title_store, conversation_id, turn_id, clean_title(response.text))


def _title_request(turn_id: UUID) -> ModelRequest | None:
    said = _first_words(turn_id)
    if len(said) < 2 or current_endpoint().is_offline:
        return None
    lines = [f"{message.role}: {message.text[:TITLE_EXCERPT]}" for message in said]
    return ModelRequest(
        user_id=said[0].user_id,
        purpose="title",
        model=model_for("fast"),
        system=TITLE_PROMPT,
        messages=[{"role": "user", "content": "\n\n".join(lines)}],
        max_tokens=TITLE_TOKENS,
        conversation_id=said[0].conversation_id,
        turn_id=turn_id,
    )


@prepared
def _first_words(turn_id: UUID) -> QuerySet[Message]:
    """The question and the answer of a turn that is done, where its conversation may be named."""
    said = Message.objects.unscoped().filter(turn_id=turn_id, kind=MessageKind.TEXT).exclude(text="")
    named = said.filter(turn__state=TurnStatus.DONE, conversation__title_by_user=False)
    return named.only("role", "text", "user_id", "conversation_id").order_by("position")[:2]


@transaction.atomic
def _title_store(conversation_id: UUID, turn_id: UUID, title: str) -> TitleMade | None:
    return TitleMade(title) if title and _rename(conversation_id, turn_id, title) else None


@prepared_update
def _rename(
    conversation_id: UUID, turn_id: UUID, title: str
) -> tuple[QuerySet[Conversation], dict[str, Any]]:
    """Not where the turn has given way meanwhile: it is no longer what the conversation is about."""
    unnamed = Conversation.objects.unscoped().filter(id=conversation_id, title_by_user=False)
    in_force = Message.objects.unscoped().filter(turn_id=turn_id, superseded_by=None)
    return unnamed.filter(Exists(in_force)), {"title": title}
