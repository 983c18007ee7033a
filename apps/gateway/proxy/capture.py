"""Capture of a request and its answer into Izzy's conversations: the person's typed words, and the answer's."""

import logging
import re
from uuid import UUID

from django.db import transaction

from apps.accounts.selectors import preferences_for
from apps.chat.conversations.ingest import MAX_CONTENT_CHARS, messages_ingest
from apps.chat.models import Conversation
from apps.core.errors import IzzyError
from apps.core.text import storable, truncated
from apps.gateway.models import ClientSession, ProxyTurn
from apps.gateway.proxy.answer import Answer
from apps.gateway.proxy.memory import Plan
from apps.gateway.surfacing import CLOSING, OPENING, holds_untrusted, shown_notes

logger = logging.getLogger(__name__)
TITLE_CHARS = 80
_REPEATED = re.compile(f"{OPENING}.*?(?:{CLOSING}|$)", re.DOTALL)


def exchange_capture(plan: Plan, answer: Answer) -> None:
    """Takes in what was typed and, where the answer is whole, its text; each once, however often it is asked for."""
    if plan.session is None or answer.status != 200:
        return
    _remember(plan, answer)
    said = _said(plan, answer)
    if not plan.captures or not said or not preferences_for(plan.token.user_id).use_memory:
        return
    session = plan.name or plan.session.key
    try:
        taken = messages_ingest(
            user_id=plan.token.user_id,
            session=session,
            messages=said,
            channel=plan.client,
            shown=shown_notes(plan.shown),
        )
    except IzzyError as error:
        logger.warning("what was said through the proxy was not taken in: %s", error.code)
        return
    if plan.session.conversation_id != taken.conversation_id:
        _keep_conversation(plan, plan.session, taken.conversation_id)


@transaction.atomic
def _remember(plan: Plan, answer: Answer) -> None:
    if plan.session is None:
        return
    if answer.others_words and not plan.session.tainted:
        plan.session.tainted = True
        plan.session.save(update_fields=["tainted"])
    if plan.turn_id and answer.id:
        turns = ProxyTurn.objects.for_user(plan.token.user_id).filter(pk=plan.turn_id)
        turns.update(reply_id=answer.id[:128])


def _said(plan: Plan, answer: Answer) -> list[dict[str, str]]:
    """As `messages_ingest` takes it: a tool's message before the answer says that others' words came before it."""
    said: list[dict[str, str]] = []
    if plan.typed:
        said.append(_message(plan, "user", plan.typed))
    words = str(storable(answer.text)).strip() if answer.complete and answer.readable else ""
    words = _REPEATED.sub("", words).strip()
    if words:
        tainted = plan.tainted or answer.others_words or holds_untrusted(plan.shown)
        if tainted or (plan.session and plan.session.tainted):
            said.append({"role": "tool"})
        said.append(_message(plan, "assistant", words))
    return said


def _message(plan: Plan, role: str, text: str) -> dict[str, str]:
    return {
        "role": role,
        "content": text[:MAX_CONTENT_CHARS],
        "external_id": f"{role}-{plan.key}",
    }


@transaction.atomic
def _keep_conversation(plan: Plan, session: ClientSession, conversation_id: UUID) -> None:
    """The session's conversation; one that was named after the session is named after what was typed first."""
    user_id = plan.token.user_id
    rows = ClientSession.objects.for_user(user_id).filter(pk=session.pk)
    rows.update(conversation_id=conversation_id)
    if plan.typed:
        mine = Conversation.objects.owned_by(user_id).filter(
            pk=conversation_id, title=plan.name or session.key
        )
        mine.update(title=truncated(" ".join(plan.typed.split()), TITLE_CHARS), title_by_user=False)
