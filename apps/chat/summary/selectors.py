"""How much of a conversation goes to the model as it was said, the turns to sum up, and the basis of a summary: those turns as text.

That text has the words of both sides and a line per tool call. Left out are the blocks that Izzy itself put beside the user's
words (the date, surfaced memories) and what tools quoted from other people's pages and files.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Length

from apps.accounts.selectors import user_time_zone
from apps.agent.models import ToolCall
from apps.agent.tools.results import UNTRUSTED
from apps.chat.attachments.blocks import tokens_of
from apps.chat.attachments.selectors import MARK, attachments_by_message, ids_in
from apps.chat.conversations.messages import readable_messages
from apps.chat.conversations.selectors import taint_of
from apps.chat.models import OPEN_STATES, Attachment, Conversation, Message, MessageKind, Role
from apps.chat.prompt import messages_in_force, messages_sent
from apps.core.db.prepared import prepared
from apps.core.text import estimate_tokens, split_sentences

MESSAGE_CHARS = 12_000
INPUT_CHARS = 400
RESULT_CHARS = 400
LEFT_OUT = "(text by others, left out here)"
_TAG = re.compile(r"</?\s*(?:messages|message|tool|record)\b(?:[^<>]*>)?", re.IGNORECASE)
LEVELS = ((200, 160), (70, 0), (40, 0))
"""Characters of the question and the answer; where the lines of one level do not fit, the next one is tried."""
DATED = 70
EARLIER_SHARE = 0.4  # the earlier summary's greatest share of the budget
_MARKUP = re.compile(r"[*_`#>|]+")
KEPT_SHARE = 0.5
LIMIT_FACTOR = 2
SUMMARY_SHARE = 0.05
SUMMARY_TOKENS = (200, 2000)
"""A summary has at least and at most so many tokens, in between a share of the budget."""
KEPT = 100_000  # sizes remembered in a process, some ten megabytes; then it begins anew
EXTRACT = "extract"
"""Stands in `Conversation.summary_by` for a summary that was made without a model."""
SUMMARY_FIELDS = ("summary", "summary_until", "summary_untrusted", "summary_by", "summary_at")


@dataclass(kw_only=True)
class CompactedTurn:
    """A turn that is to be summed up: its messages in force with text, and its tool calls in order."""

    turn_id: UUID
    zone: tzinfo = UTC  # the user's: a reader sees no other
    messages: list[Message] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    files: list[Attachment] = field(default_factory=list)  # beside the user's message

    def time_of(self, message: Message) -> str:
        return f"{message.created_at.astimezone(self.zone):%Y-%m-%d %H:%M}"

    def said(self, role: Role) -> str:
        """The text of one role."""
        return "\n\n".join(
            message.text for message in self.messages if message.role == role and message.text
        )


def turn_text(turn: CompactedTurn, *, message_chars: int = MESSAGE_CHARS) -> str:
    """The turn as `<message>` and `<tool>` elements; a long message keeps its beginning and its end."""
    lines: list[str] = []
    calls = list(turn.calls)
    for message in turn.messages:
        if message.text:
            speaker = "user" if message.role == Role.USER else "Izzy"
            body = shortened(_TAG.sub("", message.text), message_chars)
            lines.append(f'<message from="{speaker}" at="{turn.time_of(message)}">\n{body}\n</message>')
            if message.role == Role.USER:
                lines += [
                    f"(Attached: {json.dumps(_TAG.sub('', each.name), ensure_ascii=False)}, id {each.pk})"
                    for each in turn.files
                ]
        mine = [call for call in calls if message.role == Role.ASSISTANT and call.round <= message.round]
        calls = [call for call in calls if call not in mine]
        lines += [_call(call) for call in mine]
    return "\n".join([*lines, *(_call(call) for call in calls)])


def _call(call: ToolCall) -> str:
    given = shortened(json.dumps(call.input, ensure_ascii=False, sort_keys=True), INPUT_CHARS)
    foreign = call.untrusted or call.result.startswith(UNTRUSTED)
    result = LEFT_OUT if foreign else shortened(" ".join(call.result.split()), RESULT_CHARS)
    outcome = "failed: " if call.is_error else ""
    return f'<tool name="{call.name}">\n{_TAG.sub("", given)}\n{outcome}{_TAG.sub("", result)}\n</tool>'


def shortened(text: str, limit: int) -> str:
    """The text, or its first two thirds and its end with an ellipsis between them."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    return f"{text[:head].rstrip()} […] {text[len(text) - (limit - head) :].lstrip()}"


def chunked(texts: Sequence[str], sizes: Sequence[int], limit: int) -> list[list[int]]:
    """The indices of these texts in runs of at most `limit` tokens each, a larger one alone."""
    runs: list[list[int]] = []
    room = 0
    for index, size in enumerate(sizes):
        if not runs or size > room:
            runs.append([])
            room = limit
        runs[-1].append(index)
        room -= size
    return runs if texts else []


def extract(earlier: str, turns: Sequence[CompactedTurn], *, tokens: int) -> str:
    """The earlier summary and a line per turn, of at most `tokens` estimated tokens; the oldest lines give way."""
    kept = _newest(earlier.splitlines(), int(tokens * EARLIER_SHARE))
    room = tokens - estimate_tokens("\n".join(kept))
    for level in LEVELS:
        lines = [_line(turn, *level) for turn in turns]
        if estimate_tokens("\n".join(lines)) <= room:
            break
    return "\n".join([*kept, *_newest(lines, room)]).strip()


def _line(turn: CompactedTurn, said_chars: int, answer_chars: int) -> str:
    said = _first(turn.said(Role.USER), said_chars)
    dated = turn.messages and said_chars >= DATED
    when = f"{turn.time_of(turn.messages[0])} " if dated else ""
    answer = _first(turn.said(Role.ASSISTANT), answer_chars) if answer_chars else ""
    return f"- {when}The user: “{said}”" + (f" Izzy: “{answer}”" if answer else "")


def _first(text: str, limit: int) -> str:
    """The first sentence, or more of them as long as they fit, without line breaks and markup."""
    plain = " ".join(_MARKUP.sub(" ", text[: limit * 8]).split())
    found = ""
    for sentence in split_sentences(plain):
        if found and len(found) + len(sentence) > limit:
            break
        found += sentence
    found = found.strip()
    return found if len(found) <= limit else found[:limit].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"


def _newest(lines: Sequence[str], tokens: int) -> list[str]:
    """The last lines that fit; a line in front says how many do not."""
    if estimate_tokens("\n".join(lines)) <= tokens:
        return list(lines)
    kept: list[str] = []
    room = tokens - 8
    for line in reversed(lines):
        room -= estimate_tokens(line) + 1
        if room < 0:
            break
        kept.insert(0, line)
    return [f"- ({len(lines) - len(kept)} earlier lines left out)", *kept]


@dataclass(frozen=True, slots=True)
class Budget:
    """`history` is what may be sent before anything is summed up.

    `kept` is how much stays word for word then: half, so that the next summary is half a budget away and the prompt's
    beginning stays the same meanwhile. `limit` is what is never exceeded: a turn waits for a summary rather than that.
    """

    history: int

    @property
    def kept(self) -> int:
        return int(self.history * KEPT_SHARE)

    @property
    def limit(self) -> int:
        return self.history * LIMIT_FACTOR

    @property
    def summary(self) -> int:
        """The most that a summary itself may take."""
        low, high = SUMMARY_TOKENS
        return min(high, max(low, int(self.history * SUMMARY_SHARE)))


_known: dict[tuple[UUID, int], int] = {}
"""Tokens by message and the length of its blocks: a message whose blocks were changed is mostly of another length, and
these are estimates."""


class Need(StrEnum):
    """Why a conversation is summed up now: it is over its budget, over the limit that holds without exception, or the
    model refused it as too long (then all but the newest turn goes)."""

    BUDGET = "budget"
    LIMIT = "limit"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactJob:
    """A summary to be made: `turns` compacted into `earlier`, the summary so far, ending with the message at `until`.

    `texts` are the turns' transcripts and `runs` their indices in portions that fit into one request. `since` is where
    `earlier` ended; with `anew` it is put aside, because no model wrote it.
    """

    user_id: UUID
    conversation_id: UUID
    earlier: str
    since: int
    until: int
    turns: list[CompactedTurn]
    texts: list[str]
    runs: list[list[int]]
    untrusted: bool
    anew: bool = False

    @property
    def basis(self) -> tuple[Any, ...]:
        """The summary's basis; if it reads otherwise at the time of storing, the summary is thrown away."""
        return self.earlier, self.since, self.until, self.texts, self.untrusted


@dataclass(frozen=True, slots=True)
class SentTurn:
    """A turn whose messages go to the model word for word."""

    id: UUID
    state: str
    until: int
    tokens: int


def sent_turns(conversation: Conversation) -> list[SentTurn]:
    """The turns after the summary, in order, with their sizes."""
    listed = _sent(conversation.id, conversation.summary_until)
    sizes = {key: _known.get((key, length)) for key, length, *_ in listed}
    unknown = {key: length for key, length, *_ in listed if sizes[key] is None}
    if len(_known) + len(unknown) > KEPT:
        _known.clear()
    if unknown:
        packed = dict(_blocks(list(unknown)))
        marked = [blocks for blocks in packed.values() if MARK in blocks]
        files = tokens_of(conversation.user_id, marked) if marked else {}
        for key, blocks in packed.items():
            size = estimate_tokens(blocks)
            if files:
                size += sum(files.get(each, 0) for each in ids_in(blocks))
            sizes[key] = _known[key, unknown[key]] = size
    found: dict[UUID, SentTurn] = {}
    for key, _, turn_id, state, position in listed:
        known = found.get(turn_id)
        tokens = (sizes[key] or 0) + (known.tokens if known else 0)
        found[turn_id] = SentTurn(turn_id, state, position, tokens)
    return list(found.values())


@prepared
def _conversation(conversation_id: UUID) -> QuerySet[Conversation]:
    return Conversation.objects.unscoped().filter(id=conversation_id)


@prepared
def _blocks(ids: list[UUID]) -> QuerySet[Message, tuple[UUID, str]]:
    return Message.objects.unscoped().filter(id__among=ids).order_by().values_list("id", "blocks")


@prepared
def _sent(conversation_id: UUID, after: int) -> QuerySet[Message, tuple[UUID, int, UUID, str, int]]:
    rows = messages_in_force(conversation_id).filter(position__gt=after).exclude(turn=None)
    sizes = rows.annotate(length=Length("blocks"))
    return sizes.values_list("id", "length", "turn_id", "turn__state", "position")


def compact_job(
    conversation_id: UUID, need: Need, budget: Budget, *, rewrite: bool = False
) -> CompactJob | None:
    """The part of the conversation to sum up now; None if there is no need, or nothing to.

    The newest turn and those that are not over stay as they are, and of the others as many as fit into the part that
    is kept. With `rewrite` a summary that no model wrote is made anew from the messages.
    """
    conversation = _conversation.first(conversation_id)
    if conversation is None or conversation.session:
        return None
    anew = rewrite and conversation.summary_by == EXTRACT
    threshold = {Need.BUDGET: budget.history, Need.LIMIT: budget.limit, Need.REFUSED: 0}[need]
    turns = sent_turns(conversation)
    until = conversation.summary_until if anew else None
    if sum(turn.tokens for turn in turns) > threshold:
        kept, room = 0, 0 if need == Need.REFUSED else budget.kept
        for turn in reversed(turns):
            room -= turn.tokens
            if kept and room < 0 and turn.state not in OPEN_STATES:
                break
            kept += 1
        if kept < len(turns):
            until = turns[-kept - 1].until
    if until is None:
        return None
    return compact_job_until(conversation, until, budget, anew=anew)


def compact_job_until(
    conversation: Conversation, until: int, budget: Budget, *, anew: bool = False
) -> CompactJob:
    """The job that ends at this position; the same rows give the same job."""
    since = 0 if anew else conversation.summary_until
    turns = _turns(conversation, since, until)
    limit = min(MESSAGE_CHARS, budget.history)
    texts = [turn_text(turn, message_chars=limit) for turn in turns]
    tainted = taint_of(conversation.user_id, conversation.id).is_tainted
    return CompactJob(
        user_id=conversation.user_id,
        conversation_id=conversation.id,
        earlier="" if anew else conversation.summary,
        since=since,
        until=until,
        turns=turns,
        texts=texts,
        runs=chunked(texts, [estimate_tokens(text) for text in texts], budget.history),
        untrusted=conversation.summary_untrusted or tainted,
        anew=anew,
    )


def _turns(conversation: Conversation, since: int, until: int) -> list[CompactedTurn]:
    zone, found = user_time_zone(conversation.user_id), dict[UUID, CompactedTurn]()
    rows = messages_in_force(conversation.id).filter(position__gt=since, position__lte=until)
    for message in rows.exclude(turn=None).defer("blocks"):
        if message.turn_id is not None:
            turn = found.setdefault(message.turn_id, CompactedTurn(turn_id=message.turn_id, zone=zone))
            turn.messages.append(message)
    opening = rows.filter(turn__attached=True, role=Role.USER, kind=MessageKind.TEXT)
    for key, files in attachments_by_message(conversation.user_id, opening).items():
        turn_id = next(each.turn_id for each in opening if each.pk == key)
        if turn_id in found:
            found[turn_id].files = files
    calls = ToolCall.objects.owned_by(conversation.user_id).filter(turn_id__in=found)
    for call in calls.order_by("round", "position"):
        if call.turn_id is not None:
            found[call.turn_id].calls.append(call)
    return list(found.values())


def summary_untrusted(user_id: UUID, conversation_id: UUID) -> bool:
    """Whether others' words were in the conversation when it was summed up: then every later turn has them, in a way, before it."""
    rows = Conversation.objects.for_user(user_id).filter(id=conversation_id)
    return rows.filter(summary_until__gt=0, summary_untrusted=True).exists()


def summary_json(conversation: Conversation) -> dict[str, Any] | None:
    """`{text, by, untrusted, made_at, messages, before}` or None; `messages` counts what a reader sees of what was
    summed up, `before` is the id of the first turn that was not."""
    if not conversation.summary_until:
        return None
    readable = readable_messages(conversation).exclude(text="")
    first = messages_sent(conversation).exclude(turn=None).values_list("turn_id", flat=True).first()
    return {
        "text": conversation.summary,
        "by": conversation.summary_by,
        "untrusted": conversation.summary_untrusted,
        "made_at": conversation.summary_at.isoformat() if conversation.summary_at else None,
        "messages": readable.filter(position__lte=conversation.summary_until).count(),
        "before": str(first) if first else None,
    }
