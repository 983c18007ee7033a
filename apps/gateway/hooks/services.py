"""Izzy's part in an event of another program's hooks: the answer to it, and what is kept of the session."""

import hashlib
import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.accounts.access import require_scope
from apps.accounts.models import APIToken, Scope
from apps.chat.conversations.ingest import MAX_CONTENT_CHARS, messages_ingest
from apps.chat.conversations.services import conversation_rename
from apps.chat.models import Message, Role
from apps.core.db.writing import writing_for
from apps.core.errors import Forbidden
from apps.core.ids import uuid7
from apps.core.text import truncated
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


MOST_WAITING = 50
UNANSWERED = timedelta(hours=1)
"""A message that has waited so long for its answer is kept without one."""
TITLE_CHARS = 60
SLICE = 200


@transaction.atomic
def prompt_keep(*, session: ClientSession, event: HookEvent) -> None:
    """Notes what the user typed, to be kept with its answer; the same message of a turn once."""
    text = typed_text(event.prompt)
    if not text:
        return
    row = session_locked(session)
    last = row.prompts[-1] if row.prompts else {"turn": "", "text": ""}
    again = event.turn == last["turn"] if event.turn else text == last["text"]
    if not again:
        prompt = {
            "turn": event.turn or uuid7().hex,
            "text": text[:MAX_CONTENT_CHARS],
            "at": timezone.now().isoformat(),
        }
        row.prompts = [*row.prompts, prompt][-MOST_WAITING:]
    row.updated_at = timezone.now()
    row.save(update_fields=["prompts", "updated_at"])


def answer_keep(*, session: ClientSession, event: HookEvent) -> None:
    """Keeps the messages that waited, and the assistant's answer to the last. Idempotent, as hooks may run twice.

    Nobody knows what the assistant has read before it answered: its words count as others'.
    """
    session.refresh_from_db(fields=["prompts", "conversation_id"])
    waiting = list(session.prompts)
    turn = event.turn or (waiting[-1]["turn"] if waiting else "")
    asked = typed_text(event.prompt)  # where the client repeats it
    if not waiting and (asked or not turn):
        turn, waiting = _turn_asked(session, event, asked)
    messages = _asked(waiting)
    if event.reply.strip():
        digest = hashlib.sha256(event.reply.encode()).hexdigest()
        messages += [
            {"role": "tool"},  # what follows counts as said after it
            {
                "role": "assistant",
                "content": event.reply[:MAX_CONTENT_CHARS],
                "external_id": f"{turn}:{digest}",
            },
        ]
    _keep(session, messages, kept=waiting)


def prompts_keep(*, session: ClientSession) -> None:
    """Keeps the messages that wait for an answer which will not come."""
    session.refresh_from_db(fields=["prompts", "conversation_id"])
    _keep(session, _asked(session.prompts), kept=session.prompts)


def unanswered_keep() -> None:
    """Sweep: keeps messages whose program was not heard of again."""
    old = ClientSession.objects.unscoped().filter(updated_at__lt=timezone.now() - UNANSWERED)
    for session in old.filter(surface=ClientSession.Surface.HOOK).exclude(prompts=[])[:SLICE]:
        try:
            with writing_for(session.user_id):
                prompts_keep(session=session)
        except Exception:  # whatever is wrong with one session, the others' are kept
            logger.exception("what was said in session %s was not kept", session.pk)


def recent_texts(session: ClientSession, prompt: str, *, most: int) -> list[str]:
    """The session's last messages, oldest first, up to now."""
    texts = _said(session).exclude(text="").order_by("-position").values_list("text", flat=True)
    kept = list(texts[:most])[::-1]
    return [*kept, *(each["text"] for each in session.prompts), prompt][-most:]


def _turn_asked(
    session: ClientSession, event: HookEvent, asked: str
) -> tuple[str, list[dict[str, Any]]]:
    """The turn of an answer to nothing that waits, and the message that it answers unless that is kept."""
    last = _said(session).filter(role=Role.USER).order_by("-position").first()
    if last is not None and asked in ("", last.text):
        return last.external_id, []
    turn = event.turn or hashlib.sha256(f"{event.prompt}\n{event.reply}".encode()).hexdigest()
    at = timezone.now().isoformat()
    return turn, [{"turn": turn, "text": asked[:MAX_CONTENT_CHARS], "at": at}] if asked else []


def _said(session: ClientSession) -> QuerySet[Message]:
    rows = Message.objects.owned_by(session.user_id)
    if session.conversation_id is None:
        return rows.none()
    return rows.filter(conversation_id=session.conversation_id, superseded_by=None)


def _asked(prompts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "role": "user",
            "content": prompt["text"],
            "external_id": prompt["turn"],
            "created_at": prompt["at"],
        }
        for prompt in prompts
    ]


def _keep(
    session: ClientSession, messages: list[dict[str, Any]], *, kept: Collection[dict[str, Any]]
) -> None:
    if not messages:
        return
    ingested = messages_ingest(
        user_id=session.user_id, session=session.key, channel=session.client, messages=messages
    )
    _session_keep(session, ingested.conversation_id, {prompt["turn"] for prompt in kept}, messages)


@transaction.atomic
def _session_keep(
    session: ClientSession, conversation_id: UUID, turns: set[str], messages: list[dict[str, Any]]
) -> None:
    row = session_locked(session)
    if row.conversation_id != conversation_id:
        title = " ".join(str(messages[0].get("content", "")).split())
        if title:
            conversation_rename(
                user_id=row.user_id,
                conversation_id=conversation_id,
                title=truncated(title, TITLE_CHARS),
            )
        row.conversation_id = conversation_id
    row.prompts = [prompt for prompt in row.prompts if prompt["turn"] not in turns]
    row.tainted = row.tainted or any(message["role"] == "tool" for message in messages)
    row.updated_at = timezone.now()
    row.save(update_fields=["conversation_id", "prompts", "tainted", "updated_at"])
