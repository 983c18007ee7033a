"""Memory beside a request: which blocks its turns had before, which one is new, and the rows of both. Synchronous."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.accounts.access import has_scope
from apps.accounts.models import APIToken, ProxyMemory, Scope
from apps.accounts.selectors import uses_memory
from apps.chat.models import Message
from apps.core.db.prepared import prepared
from apps.core.ids import parse_id, uuid7
from apps.core.text import storable
from apps.gateway.models import ClientSession, ProxyTurn
from apps.gateway.proxy.body import MessagesBody
from apps.gateway.proxy.words import holds_others_words, last_typed, recent_texts, typed_text
from apps.gateway.sessions import session_for
from apps.gateway.surfacing import Block, block_for
from apps.memory.models import UsedIn
from apps.memory.notes.selectors import note_texts
from apps.memory.notes.uses import uses_record

SESSION_HEADERS = ((b"x-izzy-session", ""), (b"x-claude-code-session-id", "claude-code"))
"""Headers that name a session, and the program whose they are."""
PROXY = "proxy"
Surface = ClientSession.Surface
_NAME = re.compile(r"[\x21-\x7e]{1,150}")
BEGUN_ANEW = timedelta(hours=1)
"""After this time a first message that was sent before begins a conversation of its own: no cache holds the old one."""
TOUCH = timedelta(hours=1)
QUERY_CHARS = 4_000


@dataclass(slots=True)
class Plan:
    """A request's share in memory: the blocks it gets, and what it leaves there.

    `stored` are the blocks by the place of their message, `shown` what stands in them or was shown by the program's hooks in the
    session of the same name, `notes` how the notes among it read now.
    `session` is None where it is new; then `copies` are the turns that it takes over from the one that it forks off.
    """

    token: APIToken
    body: MessagesBody
    place: int  # of the newest message of the user
    client: str
    name: str  # by which the client calls its session, "" where it does not
    session: ClientSession | None
    conversation_id: UUID | None  # where what was said before is kept, by the hooks too
    stored: Mapping[int, str]
    shown: Sequence[dict[str, Any]]
    notes: Mapping[UUID, str]
    wants_block: bool
    captures: bool
    tainted: bool
    copies: Sequence[ProxyTurn] = ()
    turn_id: UUID | None = None
    texts: list[str] = field(default_factory=list)

    @property
    def key(self) -> str:
        return self.body.keys[self.place]

    @property
    def typed(self) -> str:
        """The words that the person typed into the newest message."""
        return str(storable(typed_text(self.body.messages[self.place])))


def plan_of(token: APIToken, body: MessagesBody, headers: Mapping[bytes, bytes]) -> Plan | None:
    """Reads the rows of a request; None where there is nothing of the user's in it."""
    place = body.newest
    if place is None or not body.messages[place].content:
        return None
    client, name = _named(headers)
    session, turns, hooks = _session(token, body, client, name)
    hooked = hooks.shown if hooks else []
    known = {at: turns[key] for at, key in body.keys.items() if key in turns}
    # Where it names the answer before, the endpoint holds the turns before.
    replayed = turns.values() if body.previous_reply else known.values()
    blocks = [turn for turn in replayed if turn.block]
    notes = _clean(token.user_id, blocks, beside=hooked)
    typed_at = last_typed(body)
    looked_for = any(
        turn.surfaced for at, turn in known.items() if typed_at is not None and at >= typed_at
    )
    injects = token.proxy_memory in {ProxyMemory.BOTH, ProxyMemory.INJECT} and _may(token, Scope.READ)
    captures = token.proxy_memory in {ProxyMemory.BOTH, ProxyMemory.CAPTURE} and _may(token, Scope.WRITE)
    return Plan(
        token=token,
        body=body,
        place=place,
        client=client,
        name=name,
        session=session,
        conversation_id=next(
            (one.conversation_id for one in (session, hooks) if one and one.conversation_id), None
        ),
        stored={at: turn.block for at, turn in known.items() if turn.block},
        shown=[*(entry for turn in blocks for entry in turn.shown), *hooked],
        notes=notes,
        wants_block=injects and typed_at is not None and not looked_for,
        captures=captures,
        tainted=holds_others_words(body),
        copies=list(known.values()) if session is None else (),
        texts=[str(storable(text))[-QUERY_CHARS:] for text in recent_texts(body)],
    )


def new_block(plan: Plan) -> Block:
    """The block to add to the newest message. `turn_store` notes that it was brought up."""
    return block_for(
        plan.token.user_id,
        plan.texts,
        shown=plan.shown,
        texts=plan.notes,
        conversation_id=plan.conversation_id,
        record=False,
        use_memory=uses_memory(plan.token.user),
    )


@transaction.atomic
def turn_store(plan: Plan, block: Block | None) -> None:
    """Stores the session and the turn; `block` is None where none was looked for. Fills in the plan's session and turn."""
    if plan.session is None:
        plan.session = _session_make(plan)
    session, now = plan.session, timezone.now()
    if block is not None:
        plan.shown = [*plan.shown, *block.shown]
        uses_record(
            used_in=UsedIn.SURFACED,
            user_id=plan.token.user_id,
            reasons=block.reasons,
            question=plan.texts[-1] if plan.texts else "",
            conversation_id=plan.conversation_id,
        )
    if plan.tainted > session.tainted or now - session.updated_at > TOUCH:
        session.tainted, session.updated_at = session.tainted or plan.tainted, now
        session.save(update_fields=["tainted", "updated_at"])
    if plan.name and not plan.body.previous_reply and block is None and not plan.typed:
        return
    turn, created = ProxyTurn.objects.for_user(session.user_id).get_or_create(
        session=session,
        key=plan.key,
        defaults={
            "user_id": session.user_id,
            "chain": "" if plan.name else plan.body.chains[-1],
            "position": len(plan.body.messages),
            **_values(block),
        },
    )
    if not created and block is not None and not turn.surfaced:
        ProxyTurn.objects.for_user(session.user_id).filter(pk=turn.pk).update(**_values(block))
    plan.turn_id = turn.pk


def _values(block: Block | None) -> dict[str, Any]:
    if block is None:
        return {}
    return {"block": block.text, "shown": list(block.shown), "surfaced": True}


def _session_make(plan: Plan) -> ClientSession:
    user_id = plan.token.user_id
    session = session_for(
        user_id=user_id,
        surface=Surface.PROXY,
        client=plan.client,
        key=_key(plan.name, plan.token) if plan.name else f"chain-{uuid7()}",
        token=plan.token,
    )
    ProxyTurn.objects.bulk_create(
        ProxyTurn(
            user_id=user_id,
            session=session,
            key=turn.key,
            position=turn.position,
            block=turn.block,
            shown=turn.shown,
            surfaced=turn.surfaced,
        )
        for turn in plan.copies
    )
    return session


def _named(headers: Mapping[bytes, bytes]) -> tuple[str, str]:
    """The program, and what it calls its session ("" where it does not)."""
    agent = headers.get(b"user-agent", b"").lower()
    guess = "claude-code" if agent.startswith(b"claude-cli") else PROXY
    for header, client in SESSION_HEADERS:
        if value := headers.get(header, b"").strip():
            name = value.decode("latin-1")
            fits = _NAME.fullmatch(name)
            return client or guess, name if fits else sha256(value).hexdigest()
    return guess, ""


def _key(name: str, token: APIToken) -> str:
    return f"{name}@{token.pk.hex}"


def _may(token: APIToken, scope: Scope) -> bool:
    return has_scope(token, scope) or has_scope(token, Scope.PROXY)


def _session(
    token: APIToken, body: MessagesBody, client: str, name: str
) -> tuple[ClientSession | None, dict[str, ProxyTurn], ClientSession | None]:
    """The session (None where it begins with this request), by their keys the turns that the request agrees with, and the
    session of the same name that the program's hooks tell of."""
    if name:
        named = _sessions_named(token.user_id, client, _key(name, token), name)
        rows = {row.surface: row for row in named}
        session, hooks = rows.get(Surface.PROXY), rows.get(Surface.HOOK)
        return session, _by_key(session) if session else {}, hooks
    of_token = ProxyTurn.objects.owned_by(token.user_id).filter(session__token=token)
    of_token = of_token.select_related("session")
    if body.previous_reply:
        found = of_token.filter(reply_id=body.previous_reply[:128]).order_by("pk").first()
        return (found.session, _by_key(found.session), None) if found else (None, {}, None)
    newest = of_token.filter(chain__in=body.chains).order_by("-position", "pk").first()
    if newest is None:
        return None, {}, None
    whole = len(body.messages)
    is_first = newest.position == whole and all(one.role != "assistant" for one in body.messages)
    if is_first and timezone.now() - newest.created_at > BEGUN_ANEW:
        return None, {}, None
    turns = _by_key(newest.session)
    agreed = {key: turn for key, turn in turns.items() if turn.position <= newest.position}
    # What goes on from an older request than the newest is a fork.
    is_fork = newest.position < whole and len(agreed) < len(turns)
    return None if is_fork else newest.session, agreed, None


@prepared
def _sessions_named(user_id: UUID, client: str, key: str, name: str) -> QuerySet[ClientSession]:
    """The proxy's session of this key, and the one of this name that hooks tell of."""
    named = Q(surface=Surface.PROXY, key=key) | Q(surface=Surface.HOOK, key=name)
    return ClientSession.objects.for_user(user_id).filter(named, client=client).order_by()


def _by_key(session: ClientSession) -> dict[str, ProxyTurn]:
    return {turn.key: turn for turn in _turns(session.user_id, session.pk)}


@prepared
def _turns(user_id: UUID, session_id: UUID) -> QuerySet[ProxyTurn]:
    rows = ProxyTurn.objects.owned_by(user_id).filter(session_id=session_id).order_by()
    return rows.only("user", "session", "key", "position", "block", "shown", "surfaced")


def _clean(
    user_id: UUID, turns: Collection[ProxyTurn], *, beside: Sequence[dict[str, Any]]
) -> dict[UUID, str]:
    """Takes lines out of blocks whose notes or messages were deleted since, for good: their bytes stay the same from then on.

    Returns the texts of the notes that are there, also of those among what was shown `beside`.
    """
    entries = [entry for turn in turns for entry in turn.shown]
    notes = {parse_id(entry["id"]) for entry in [*entries, *beside] if "source" not in entry}
    words = {parse_id(entry["id"]) for entry in entries if "source" in entry}
    texts = dict(note_texts(user_id, list(notes))) if notes else {}
    there = set(texts)
    if words:
        there.update(_messages_left(user_id, list(words)))
    if there >= notes | words:
        return texts
    for turn in turns:
        stays = [parse_id(entry["id"]) in there for entry in turn.shown]
        if not all(stays):
            turn.block, turn.shown = (
                _without(turn.block, stays),
                [entry for entry, kept in zip(turn.shown, stays, strict=True) if kept],
            )
            turn.save(update_fields=["block", "shown"])
    return texts


@prepared
def _messages_left(user_id: UUID, message_ids: list[UUID]) -> QuerySet[Message, UUID]:
    messages = Message.objects.owned_by(user_id).filter(pk__among=message_ids)
    return messages.filter(conversation__deleted_at=None).order_by().values_list("pk", flat=True)


def _without(block: str, stays: Sequence[bool]) -> str:
    """A block with some of its lines: an opening tag, a heading, a line for each entry, a closing tag."""
    first, heading, *lines, last = block.split("\n")
    if not any(stays) or len(lines) != len(stays):
        return ""
    kept = [line for line, stay in zip(lines, stays, strict=True) if stay]
    return "\n".join([first, heading, *kept, last])
