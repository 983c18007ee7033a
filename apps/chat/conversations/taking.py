"""How conversations of an export are taken in: with all that belongs to them from the user's own, else what was said alone."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import Max

from apps.agent.models import ToolCall
from apps.chat.attachments.selectors import ids_in
from apps.chat.conversations.handover import document_of
from apps.chat.conversations.records import (
    ConversationRecord,
    MessageRecord,
    ToolCallRecord,
    TurnRecord,
)
from apps.chat.conversations.selectors import CHAT_CHANNEL
from apps.chat.conversations.versions import Version, versions_place, versions_revise
from apps.chat.models import Conversation, Folder, Message, MessageKind, Role, Turn
from apps.core.db.writing import insert_all
from apps.core.text import canonical_json, fold
from apps.core.transfer import (
    CHANGED,
    GONE,
    KNOWN,
    OWN_ONLY,
    Entry,
    Ids,
    Taking,
    Write,
    ids_here,
    shaped,
    write_nothing,
)
from apps.memory.capture.windows import taint_note
from apps.search.services import documents_index, documents_prepare

CHANNEL = "izzy"
"""The channel of Izzy's own conversations that came out of somebody else's export."""
DIVERGED = "Its conversation is here already, with other messages; yours was kept."
HEAD = "head"
"""The conversation of a batch's last record, which the next batch may go on with."""
MORE = "more"
"""The same, where the file has more turns of it than there were here."""


@dataclass(slots=True)
class _Batch:
    """Records of conversations, checked, and the rows that come of them."""

    taking: Taking
    ids: dict[str, Ids] = field(default_factory=dict)
    conversations: dict[UUID, Conversation] = field(default_factory=dict)  # new ones
    grown: dict[UUID, Conversation] = field(
        default_factory=dict
    )  # known ones that this file goes on with
    tainted: set[UUID] = field(default_factory=set)
    turns: dict[UUID, Turn] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    ends: dict[UUID, set[UUID]] = field(default_factory=dict)
    more: set[UUID] = field(default_factory=set)  # grown ones of which turns came
    revised: dict[UUID, Version] = field(default_factory=dict)  # messages of theirs that are here

    def plan(self, entries: Sequence[Entry]) -> Write:
        taking = self.taking
        by_kind: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            by_kind[entry.kind].append(entry)
        heads = shaped(taking, by_kind["conversation"], ConversationRecord)
        turns = shaped(taking, by_kind["turn"], TurnRecord)
        messages = shaped(taking, by_kind["message"], MessageRecord)
        calls = shaped(taking, by_kind["tool_call"], ToolCallRecord)
        keys = {record.id for _, record in heads}
        keys |= {each.conversation for rows in (turns, messages, calls) for _, each in rows}
        said = [key for _, each in messages for key in (each.turn, each.superseded_by)]
        self.ids = {
            "conversation": ids_here(taking, "conversation", keys),
            "turn": ids_here(
                taking,
                "turn",
                {*said, *(each.id for _, each in turns), *(each.turn for _, each in calls)},
            ),
            "message": ids_here(taking, "message", {each.id for _, each in messages}),
            "tool_call": ids_here(taking, "tool_call", {each.id for _, each in calls}),
        }
        self._heads(heads)
        self.ends = self._ends(set(self.ids["conversation"].here.values()))
        self.more = {UUID(taking.facts[MORE])} if MORE in taking.facts else set()
        if taking.own:
            self._turns(turns)
            self._messages(messages)
            self._calls(calls)
        else:
            for entry, _ in [*turns, *calls]:
                taking.report.skip(entry, OWN_ONLY)
            self._messages(messages)
        parts = [(entry, each.conversation) for rows in (turns, messages, calls) for entry, each in rows]
        self._note_head([*((entry, record.id) for entry, record in heads), *parts])
        return self._write()

    def _heads(self, heads: Sequence[tuple[Entry, ConversationRecord]]) -> None:
        taking, ids = self.taking, self.ids["conversation"]
        names = _names_taken(taking.user_id, [record for _, record in heads])
        folders = {fold(folder.name): folder.pk for folder in Folder.objects.for_user(taking.user_id)}
        for entry, record in heads:
            key = ids[record.id]
            if ids.known(record.id) or key in self.conversations:
                taking.report.skip(entry, KNOWN)
                continue
            values = record.columns(Conversation)
            if not taking.own:
                own = record.channel == CHAT_CHANNEL
                values["channel"] = CHANNEL if own else record.channel
                values["session"] = record.session or str(record.id)
                values |= {"summary": "", "summary_until": 0, "summary_at": None, "last_seq": 0}
                values["use_memory"] = True
                values |= {"pinned": False, "archived": False, "model": "", "instructions": ""}
                values |= {"title": record.title or record.session, "title_by_user": True}
            number, session = 1, values["session"]
            while values["session"] and (values["channel"], values["session"]) in names:
                number += 1
                values["session"] = f"{session[:190]} ({number})"
            names.add((values["channel"], values["session"]))
            values["created_at"] = record.created_at or record.updated_at or taking.now
            values["updated_at"] = record.updated_at or values["created_at"]
            self.conversations[key] = Conversation(
                id=key,
                user_id=taking.user_id,
                folder_id=folders.get(fold(record.folder)) if taking.own else None,
                stored_seq=values["last_seq"],
                pruned_seq=values["last_seq"],
                **values,
            )
            if record.tainted or not taking.trusted:
                self.tainted.add(key)
            taking.report.take("conversation")
        taking.fresh |= self.conversations.keys()

    def _conversation(self, entry: Entry, key: UUID) -> Conversation | None:
        """The conversation that a part of one goes into: a new one, or the one that this file goes on with. Else the report
        says why there is none."""
        ids = self.ids["conversation"]
        here = ids[key]
        if here in self.conversations:
            return self.conversations[here]
        if here in self.grown:
            return self.grown[here]
        if str(here) == self.taking.facts.get(HEAD) and ids.known(key):
            found = Conversation.objects.for_user(self.taking.user_id).filter(pk=here).first()
            found = found or Conversation(id=here, user_id=self.taking.user_id)  # a dry run has none
            self.grown[here] = found
            return found
        return None

    def _meet(self, here: UUID, key: UUID) -> None:
        """Notes that the file goes on with a conversation, where this is the last turn or message that is here: what it has more
        of it stands behind."""
        if key in self.ends.get(here, ()) and here not in self.grown:
            found = Conversation.objects.for_user(self.taking.user_id).filter(pk=here).first()
            if found is not None:
                self.grown[here] = found

    def _note_head(self, parts: Sequence[tuple[Entry, UUID]]) -> None:
        """Keeps for the next batch what it may go on with."""
        if parts:
            facts, last = self.taking.facts, max(parts, key=lambda part: part[0].line or 0)
            here = self.ids["conversation"][last[1]]
            known = {HEAD: here in {*self.conversations, *self.grown}, MORE: here in self.more}
            for name in known:
                facts.pop(name, None)
            facts.update({name: str(here) for name, is_known in known.items() if is_known})

    def _turns(self, turns: Sequence[tuple[Entry, TurnRecord]]) -> None:
        taking, ids = self.taking, self.ids["turn"]
        notes = {_note_id(item) for _, record in turns for item in record.memories}
        here = ids_here(taking, "note", notes)
        clients = {record.client_id for _, record in turns if record.client_id}
        rows = Turn.objects.for_user(taking.user_id).filter(client_id__in=clients)
        taken = set(rows.values_list("client_id", flat=True))
        for entry, record in turns:
            place = self.ids["conversation"][record.conversation]
            self._meet(place, ids[record.id])
            conversation = self._conversation(entry, record.conversation)
            if ids.known(record.id) or ids[record.id] in self.turns:
                taking.report.skip(entry, KNOWN)
            elif conversation is None:
                taking.report.skip(entry, self._why(record.conversation))
            else:
                values = record.columns(Turn)
                values["memories"] = [
                    _surfaced(item, here) for item in record.memories if _note_id(item)
                ]
                if record.client_id in taken:
                    values["client_id"] = ""
                taken.add(record.client_id)
                self.turns[ids[record.id]] = Turn(
                    id=ids[record.id],
                    user_id=taking.user_id,
                    conversation=conversation,
                    announced=True,
                    **values,
                )
                self.more |= {place} & self.grown.keys()
                taking.report.take("turn")
        taking.fresh |= self.turns.keys()

    def _why(self, key: UUID) -> str:
        return DIVERGED if self.ids["conversation"].known(key) else GONE

    def _messages(self, messages: Sequence[tuple[Entry, MessageRecord]]) -> None:
        taking, ids = self.taking, self.ids["message"]
        places: set[tuple[UUID, int]] = set()
        names: set[tuple[UUID, str]] = set()
        for entry, record in messages:
            key, here = ids[record.id], self.ids["conversation"][record.conversation]
            self._meet(here, key)
            conversation = self._conversation(entry, record.conversation)
            if ids.known(record.id):
                by = self._turn(record.superseded_by)
                if here in self.more and bool(by) == bool(record.superseded_by):
                    self.revised[key] = (by, record.branch)
                taking.report.skip(entry, KNOWN)
            elif conversation is None:
                taking.report.skip(entry, self._why(record.conversation))
            elif (here, record.position) in places or (here, record.external_id) in names:
                taking.report.skip(entry, CHANGED)
            elif not taking.own and not _was_said(record):
                taking.report.skip(entry, OWN_ONLY)
            else:
                places.add((here, record.position))
                names |= {(here, record.external_id)} if record.external_id else set()
                self.messages.append(self._message(record, key, conversation))
                taking.report.take("message")
        taking.fresh |= {message.id for message in self.messages}

    def _ends(self, keys: Iterable[UUID]) -> dict[UUID, set[UUID]]:
        """By conversation that was here before, its last message and the turn of that."""
        before = [
            key
            for key in keys
            if key not in self.conversations and str(key) != self.taking.facts.get(HEAD)
        ]
        rows = (
            Message.objects.owned_by(self.taking.user_id).filter(conversation_id__in=before).order_by()
        )
        last = dict(rows.values_list("conversation_id").annotate(last=Max("position")))
        ends: dict[UUID, set[UUID]] = {}
        for key, position in last.items():
            at = Message.objects.owned_by(self.taking.user_id).filter(
                conversation_id=key, position=position
            )
            ends[key] = {end for row in at.values_list("pk", "turn_id") for end in row if end}
        return ends

    def _message(self, record: MessageRecord, key: UUID, conversation: Conversation) -> Message:
        own = self.taking.own
        values = record.columns(Message)
        for old, new in self._files_renamed(record).items():
            values["blocks"] = values["blocks"].replace(str(old), str(new))
        if not own:
            values |= {"blocks": canonical_json([{"type": "text", "text": record.text}])}
            values |= {
                "stop_reason": "",
                "round": 0,
                "seq": 0,
                "branch": 0,
                "speaker": record.speaker or str(record.role),
            }
        return Message(
            id=key,
            user_id=self.taking.user_id,
            conversation=conversation,
            turn_id=self._turn(record.turn) if own else None,
            superseded_by_id=self._turn(record.superseded_by) if own else None,
            indexed=True,
            captured=True,
            **values,
        )

    def _files_renamed(self, record: MessageRecord) -> dict[UUID, UUID]:
        """The attachments that the message names and that go by another id here."""
        keys = ids_in(record.blocks) if record.role == Role.USER else []
        if not keys:
            return {}
        here = ids_here(self.taking, "attachment", keys)
        return {key: here[key] for key in keys if here[key] != key}

    def _turn(self, key: UUID | None) -> UUID | None:
        turns = self.ids["turn"]
        return turns[key] if key and (turns.known(key) or turns[key] in self.turns) else None

    def _calls(self, calls: Sequence[tuple[Entry, ToolCallRecord]]) -> None:
        taking, ids = self.taking, self.ids["tool_call"]
        places: set[tuple[UUID, int, int]] = set()
        for entry, record in calls:
            conversation, turn = self._conversation(entry, record.conversation), self._turn(record.turn)
            place = (record.turn, record.round, record.position)
            if ids.known(record.id) or place in places:
                taking.report.skip(entry, KNOWN)
            elif conversation is None or turn is None:
                taking.report.skip(entry, self._why(record.conversation))
            else:
                places.add(place)
                self.calls.append(
                    ToolCall(
                        id=ids[record.id],
                        user_id=taking.user_id,
                        conversation_id=conversation.id,
                        turn_id=turn,
                        state=ToolCall.State.DONE,
                        **record.columns(ToolCall),
                    )
                )
                taking.report.take("tool_call")

    def _write(self) -> Write:
        if not (self.conversations or self.turns or self.messages or self.calls or self.revised):
            return write_nothing
        found = [message for message in self.messages if _is_found(message)]
        documents = list(map(document_of, found))
        documents_prepare(user_id=self.taking.user_id, texts=[each.text for each in documents])
        return partial(self._store, documents)

    def _store(self, documents: Sequence[Any]) -> None:
        user_id = self.taking.user_id
        insert_all(list(self.conversations.values()))
        insert_all(list(self.turns.values()))
        insert_all(self.messages)
        ToolCall.objects.bulk_create(self.calls, batch_size=100)
        for key in self.tainted & self.conversations.keys():
            taint_note(user_id=user_id, conversation_id=key)
        for conversation in self.grown.values():
            self._grow(conversation)
        for key in self.more:
            places = {turn.place for turn in self.turns.values() if turn.conversation_id == key}
            versions_place(user_id=user_id, conversation_id=key, places=places)
        versions_revise(user_id=user_id, wanted=self.revised)
        documents_index(user_id=user_id, documents=documents, are_new=True)

    def _grow(self, conversation: Conversation) -> None:
        """A conversation that goes on ends with its newest message."""
        own = [each for each in self.messages if each.conversation_id == conversation.id]
        if own:
            last = max(conversation.last_position, *(each.position for each in own))
            newest = max(conversation.updated_at, *(each.created_at for each in own))
            rows = Conversation.objects.unscoped().filter(pk=conversation.id)
            rows.update(last_position=last, updated_at=newest)


def conversations_plan(taking: Taking, entries: Sequence[Entry]) -> Write:
    """Plans conversations with their turns, messages and tool calls. What belongs to one that is here already is taken where
    the file goes on from its last message."""
    return _Batch(taking).plan(entries)


def _names_taken(user_id: UUID, records: Sequence[ConversationRecord]) -> set[tuple[str, str]]:
    rows = Conversation.objects.unscoped().filter(user_id=user_id).exclude(session="")
    return set(rows.values_list("channel", "session")) if records else set()


def _note_id(item: Mapping[str, Any]) -> UUID | None:
    try:
        return UUID(str(item.get("id")))
    except ValueError:
        return None


def _surfaced(item: Mapping[str, Any], notes: Ids) -> dict[str, Any]:
    key = _note_id(item)
    return {**item, "id": str(notes[key])} if key else dict(item)


def _was_said(record: MessageRecord) -> bool:
    return record.kind == MessageKind.TEXT and bool(record.text.strip()) and not record.superseded_by


def _is_found(message: Message) -> bool:
    """Whether search is to find it."""
    said = message.kind == MessageKind.TEXT and bool(message.text)
    return said and message.conversation.use_memory and message.superseded_by_id is None
