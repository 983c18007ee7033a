"""Every write of a conversation's summary."""

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.chat.models import Conversation
from apps.chat.summary.budget import Budget
from apps.chat.summary.selectors import SUMMARY_FIELDS, FoldJob, fold_job_until


@transaction.atomic
def summary_store(*, job: FoldJob, text: str, by: str, budget: Budget) -> bool:
    """Puts the summary in place of the messages it was made from; False when they, or the summary before, have changed
    meanwhile (an edit, a purge, another summary): then nothing is written.

    `by` is the model that wrote it, or `extract`.
    """
    rows = Conversation.objects.unscoped().select_for_update()
    conversation = rows.filter(id=job.conversation_id).first()
    if conversation is None:
        return False
    now = fold_job_until(conversation, job.until, budget, anew=job.anew)
    if now.basis != job.basis or not now.turns:
        return False
    conversation.summary, conversation.summary_until = text, job.until
    conversation.summary_untrusted, conversation.summary_by = job.untrusted, by
    conversation.summary_at = timezone.now()
    _save(conversation)
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
    _save(conversation)
    return True


def summary_cut(*, conversation: Conversation, position: int) -> None:
    """Takes the summary away where a message that it stands for is replaced. Call it inside a transaction."""
    if position <= conversation.summary_until:
        summary_forget(user_id=conversation.user_id, conversation_id=conversation.id)


def _save(conversation: Conversation) -> None:
    conversation.save(update_fields=SUMMARY_FIELDS)
