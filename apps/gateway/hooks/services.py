"""Izzy's part in an event of another program's hooks, and the answer to it."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.accounts.access import require_scope
from apps.accounts.models import APIToken, Scope
from apps.core.errors import Forbidden
from apps.gateway.hooks.capture import answer_keep, prompt_keep, prompts_keep, recent_texts
from apps.gateway.hooks.dialects import DIALECTS, Dialect, HookEvent, Kind
from apps.gateway.models import ClientSession
from apps.gateway.sessions import session_for, session_locked
from apps.gateway.surfacing import MOST_SHOWN, Block, block_again, block_for
from apps.gateway.typed import typed_text
from apps.memory.recall.injection import RECENT_TEXTS

logger = logging.getLogger(__name__)

GOES_ON = frozenset({"resume", "compact"})
"""How a session begins that was there before: what it had been shown is shown again."""
FORGOTTEN = "forgotten"
"""The mark of what a session was shown before its client compacted it."""


def hook_run(
    *, user_id: UUID, token: APIToken | None, dialect: Dialect, body: Mapping[str, Any]
) -> dict[str, Any]:
    """Does what is to be done at a client's event; the answer is as the client reads it, `{}` where Izzy has nothing to say.

    Context needs the scope `read`, keeping what was said `write`. InvalidInput for an event without a session, Forbidden.
    """
    if body.get("cursor_version"):  # Cursor also runs the hooks of Claude Code
        dialect = DIALECTS["cursor"]
    event = dialect.read(body)
    if event.kind is Kind.OTHER:
        return {}
    if event.kind in {Kind.STOP, Kind.END}:
        require_scope(token, Scope.WRITE)
    session = session_for(
        user_id=user_id,
        surface=ClientSession.Surface.HOOK,
        client=dialect.client,
        key=event.session,
        token=token,
    )
    match event.kind:
        case Kind.START:
            return dialect.answer(event, _opening(session, event))
        case Kind.PROMPT:
            context = _context(session, event)
            if _may_write(token):
                prompt_keep(session=session, event=event)
            return dialect.answer(event, context)
        case Kind.STOP:
            answer_keep(session=session, event=event)
        case Kind.END:
            prompts_keep(session=session)
        case Kind.COMPACTED:
            _forget(session)
    return {}


def _may_write(token: APIToken | None) -> bool:
    try:
        require_scope(token, Scope.WRITE)
    except Forbidden:
        return False
    return True


def _opening(session: ClientSession, event: HookEvent) -> str:
    """Standing notes; where the session goes on, also what it had been shown."""
    if event.source in GOES_ON:
        return _shown_again(session)
    known = [] if event.source == "clear" else session.shown
    return _shown(session, block_for(session.user_id, [], shown=known), keep=known)


def _context(session: ClientSession, event: HookEvent) -> str:
    """The notes worth bringing up beside the user's message; after a compaction first what the session had been shown."""
    prompt = typed_text(event.prompt)
    if not prompt:
        return ""
    again = _shown_again(session) if any(FORGOTTEN in item for item in session.shown) else ""
    texts = recent_texts(session, prompt, most=RECENT_TEXTS)
    proxied, shown = _proxied(session)
    conversation_id = session.conversation_id or (proxied.conversation_id if proxied else None)
    shown = [*session.shown, *shown]
    block = block_for(session.user_id, texts, shown=shown, conversation_id=conversation_id)
    return "\n".join(filter(None, [again, _shown(session, block, keep=session.shown)]))


def _shown_again(session: ClientSession) -> str:
    return _shown(session, block_again(session.user_id, session.shown), keep=[])


def _proxied(session: ClientSession) -> tuple[ClientSession | None, list[dict[str, Any]]]:
    """The session of the same name that goes through the Messages proxy, and what was brought up in it."""
    key = f"{session.key}@"
    proxied = ClientSession.objects.for_user(session.user_id).filter(
        surface=ClientSession.Surface.PROXY, client=session.client, key__startswith=key
    )
    found = proxied.order_by("-updated_at").first()
    blocks = found.turns.exclude(block="").values_list("shown", flat=True) if found else []
    return found, [entry for shown in blocks for entry in shown]


@transaction.atomic
def _shown(session: ClientSession, block: Block, *, keep: Sequence[Mapping[str, Any]]) -> str:
    """The block's text, once the session has it noted beside what it `keep`s; "" where another hook has shown something
    meanwhile: the same event comes twice where hooks are installed twice."""
    shown = [*keep, *block.shown][-MOST_SHOWN:]
    if shown == session.shown:
        return block.text
    row = session_locked(session)
    if row.shown != session.shown:
        return ""
    row.shown = session.shown = shown
    row.updated_at = timezone.now()
    row.save(update_fields=["shown", "updated_at"])
    return block.text


@transaction.atomic
def _forget(session: ClientSession) -> None:
    """The client has compacted the session: what it was shown is shown again at the next message."""
    row = session_locked(session)
    row.shown = [{**item, FORGOTTEN: True} for item in row.shown]
    row.save(update_fields=["shown"])
