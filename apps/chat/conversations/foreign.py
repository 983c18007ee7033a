"""How conversations of other programs' files are taken in: as `/ingest/` takes them, under the format's name as their channel."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Max

from apps.chat.conversations.ingest import (
    MAX_EXTERNAL_ID_CHARS,
    MAX_SESSION_CHARS,
    MAX_SPEAKER_CHARS,
    Session,
    fresh_in,
    message_of,
    messages_prepare,
    messages_remove,
    session_store,
)
from apps.chat.models import MAX_TITLE, Conversation, Message
from apps.chat.titles import heuristic_title
from apps.core.errors import IzzyError
from apps.core.transfer import KNOWN, Entry, Taking, Write, derived_id, write_nothing
from apps.memory.transfer.records import ForeignConversation, ForeignMessage, content_key

NO_TITLES = ("", "new chat", "new conversation", "untitled")
"""The titles that other programs give to a conversation that nobody has named, in lower case."""
SILENT = "Nothing was said in it."
LEFT = "Another version has taken its place there, and so it has here."
OLDER = "A newer export of its conversation is here already."


@dataclass(frozen=True, slots=True)
class _Part:
    """New messages of a session, and those that gave way to them where it was held."""

    session: Session
    messages: Sequence[Message]
    left: Sequence[UUID]


def foreign_plan(taking: Taking, entries: Sequence[Entry]) -> Write:
    """Plans conversations, or parts of long ones in their order. Searchable when written; what is worth remembering is read
    within the budget of capture."""
    parts = [part for entry in entries if (part := _part(taking, entry)) is not None]
    if not parts:
        return write_nothing
    if not taking.dry_run:
        for part in parts:
            messages_prepare(part.messages)

    def write() -> None:
        for part in parts:
            messages_remove(part.session, part.left)
            session_store(part.session, part.messages, extract=True, trusted=taking.trusted)

    return write


def _part(taking: Taking, entry: Entry) -> _Part | None:
    """The new messages of a conversation; the report says what becomes of it."""
    talk: ForeignConversation = entry.value
    name = _short(talk.key, MAX_SESSION_CHARS)
    changed = min(talk.updated_at, taking.now) if talk.updated_at else None
    session = Session(taking.user_id, taking.format, name, _title(talk), changed)
    known = session.found()
    begun = derived_id(taking.user_id, taking.format, "conversation", name)
    if not talk.messages:
        taking.report.skip(entry, SILENT)
        return None
    given = _given(taking, entry)
    fresh, left = fresh_in(known, given), _left(known, talk)
    reasons = {KNOWN: len(given) - len(fresh)}
    if (fresh or left) and _is_older(known, talk):
        reasons[OLDER] = len(fresh)
        fresh, left = [], []
    reasons[LEFT] = len(left)
    for reason, number in reasons.items():
        if number:
            taking.report.skip(Entry("message", None, entry.place), reason, number)
    if fresh:
        taking.report.take("message", len(fresh))
    follows = str(begun) == taking.facts.get("session")  # a part of the one before it
    taking.facts["session"] = str(begun)
    if not follows:
        if not fresh and not left:
            taking.report.skip(entry, OLDER if OLDER in reasons else KNOWN if given else SILENT)
        elif known is not None or begun in taking.fresh:
            taking.report.merge(entry.kind)
        else:
            taking.report.take(entry.kind)
            if taking.dry_run:
                taking.fresh.add(begun)
    return _Part(session, fresh, left) if fresh or left else None


def _given(taking: Taking, entry: Entry) -> list[Message]:
    """The messages as the file has them; the report names those that cannot be taken."""
    talk: ForeignConversation = entry.value
    moment, given = talk.created_at or taking.now, []
    for number, said in enumerate(talk.messages):
        moment = said.created_at or moment  # one without a time was said with the one before it
        try:
            given.append(message_of(taking.user_id, _entry(said, moment), number, moment))
        except IzzyError as error:
            place = f"{entry.place}, message {number + 1}"
            taking.report.refuse(Entry("message", None, place, entry.line), error.message)
    return given


def _is_older(known: Conversation | None, talk: ForeignConversation) -> bool:
    """Whether what is here changed there after this export. Once it went on here, the newest message that came with one tells."""
    if known is None or talk.updated_at is None:
        return False
    here: datetime | None = known.updated_at
    if known.turns.exists():
        here = known.messages.exclude(external_id="").aggregate(newest=Max("created_at"))["newest"]
    return here is not None and talk.updated_at < here


def _left(known: Conversation | None, talk: ForeignConversation) -> list[UUID]:
    """The ids of the messages that came with an earlier export and are no longer in the conversation as it is shown there. Where it went on
    here they stay: what came after them answers them."""
    if known is None or not talk.left or known.turns.exists():
        return []
    keys = {_short(key, MAX_EXTERNAL_ID_CHARS) for key in talk.left}
    named = known.messages.exclude(external_id="").values_list("pk", "external_id")
    return [pk for pk, external_id in named if external_id in keys]


def _title(talk: ForeignConversation) -> str:
    """Its title, else the first words that its owner said."""
    title = " ".join(talk.title.split())[:MAX_TITLE]
    if title.casefold() not in NO_TITLES or not talk.messages:
        return title
    own = (said for said in talk.messages if said.role == "user" and not said.speaker)
    return heuristic_title(next(own, talk.messages[0]).content[:1000])


def _entry(said: ForeignMessage, moment: datetime) -> dict[str, object]:
    return {
        "role": said.role,
        "content": said.content,
        "external_id": _short(said.key, MAX_EXTERNAL_ID_CHARS),
        "created_at": moment,
        **({"speaker": said.speaker[:MAX_SPEAKER_CHARS]} if said.speaker else {}),
    }


def _short(key: str, limit: int) -> str:
    """The key, or a hash of one that is too long or has white space at its ends."""
    return key if key == key.strip() and 0 < len(key) <= limit else content_key(key)
