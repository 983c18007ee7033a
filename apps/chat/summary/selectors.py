"""How much of a conversation goes to the model as it was said, the turns to sum up, and the basis of a summary."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Length

from apps.agent.models import ToolCall
from apps.agent.selectors import untrusted_turns
from apps.chat.conversations.messages import readable_messages
from apps.chat.models import OPEN_STATES, Conversation, Message, Turn
from apps.chat.prompt.history import messages_in_force, messages_sent
from apps.chat.summary.transcript import MESSAGE_CHARS, FoldedTurn, chunked, turn_text
from apps.core.text import estimate_tokens

KEPT_SHARE = 0.5
LIMIT_FACTOR = 2
SUMMARY_SHARE = 0.05
SUMMARY_TOKENS = (200, 2000)
"""A summary has at least and at most so many tokens, in between a share of the budget."""
KEPT = 100_000  # sizes remembered in a process, some ten megabytes; then it begins anew
EXTRACT = "extract"
"""Stands in `Conversation.summary_by` for a summary that was made without a model."""
SUMMARY_FIELDS = ("summary", "summary_until", "summary_untrusted", "summary_by", "summary_at")


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


def current_budget() -> Budget:
    """The budget of this instance, from IZZY_HISTORY_TOKENS."""
    return Budget(settings.IZZY_HISTORY_TOKENS)


_known: dict[tuple[UUID, int], int] = {}
"""Tokens by message and the length of its blocks: a message whose blocks were changed is mostly of another length, and
these are estimates."""


def message_tokens(lengths: Mapping[UUID, int]) -> dict[UUID, int]:
    """The tokens of these messages' blocks, whose lengths in characters are given; of new ones the blocks are read."""
    sizes = {key: _known.get((key, length)) for key, length in lengths.items()}
    unknown = [key for key, size in sizes.items() if size is None]
    if len(_known) + len(unknown) > KEPT:
        _known.clear()
    rows = Message.objects.unscoped().filter(id__in=unknown).values_list("id", "blocks") if unknown else ()
    for key, blocks in rows:
        sizes[key] = _known[key, lengths[key]] = estimate_tokens(blocks)
    return {key: size for key, size in sizes.items() if size is not None}


class Need(StrEnum):
    """Why a conversation is summed up now: it is over its budget, over the limit that holds without exception, or the
    model refused it as too long (then all but the newest turn goes)."""

    BUDGET = "budget"
    LIMIT = "limit"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldJob:
    """A summary to be made: `turns` folded into `earlier`, the summary so far, ending with the message at `until`.

    `texts` are the turns' transcripts and `runs` their indices in portions that fit into one request. `since` is where
    `earlier` ended; with `anew` it is put aside, because no model wrote it.
    """

    user_id: UUID
    conversation_id: UUID
    earlier: str
    since: int
    until: int
    turns: list[FoldedTurn]
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


def over(conversation: Conversation, tokens: int) -> bool:
    """Whether what is sent of the conversation has more than so many estimated tokens."""
    return _size(sent_turns(conversation)) > tokens


def sent_turns(conversation: Conversation) -> list[SentTurn]:
    """The turns after the summary, in order, with their sizes."""
    rows = messages_sent(conversation).exclude(turn=None).annotate(length=Length("blocks"))
    listed = list(rows.values_list("id", "length", "turn_id", "turn__state", "position"))
    sizes = message_tokens({key: length for key, length, *_ in listed})
    found: dict[UUID, SentTurn] = {}
    for key, _, turn_id, state, position in listed:
        known = found.get(turn_id)
        tokens = sizes.get(key, 0) + (known.tokens if known else 0)
        found[turn_id] = SentTurn(turn_id, state, position, tokens)
    return list(found.values())


def _size(turns: Iterable[SentTurn]) -> int:
    return sum(turn.tokens for turn in turns)


def fold_job(conversation_id: UUID, need: Need, budget: Budget, *, rewrite: bool = False) -> FoldJob | None:
    """The part of the conversation to sum up now; None if there is no need, or nothing to.

    The newest turn and those that are not over stay as they are, and of the others as many as fit into the part that
    is kept. With `rewrite` a summary that no model wrote is made anew from the messages.
    """
    conversation = Conversation.objects.unscoped().filter(id=conversation_id).first()
    if conversation is None or conversation.session:
        return None
    anew = rewrite and conversation.summary_by == EXTRACT
    cut = _cut(conversation, need, budget)
    if cut is None and not anew:
        return None
    return fold_job_until(conversation, cut or conversation.summary_until, budget, anew=anew)


def _cut(conversation: Conversation, need: Need, budget: Budget) -> int | None:
    """The position of the last message to fold."""
    threshold = {Need.BUDGET: budget.history, Need.LIMIT: budget.limit, Need.REFUSED: 0}[need]
    turns = sent_turns(conversation)
    if _size(turns) <= threshold:
        return None
    kept, room = 0, 0 if need == Need.REFUSED else budget.kept
    for turn in reversed(turns):
        room -= turn.tokens
        if kept and room < 0 and turn.state not in OPEN_STATES:
            break
        kept += 1
    folded = turns[: len(turns) - kept]
    return folded[-1].until if folded else None


def fold_job_until(conversation: Conversation, until: int, budget: Budget, *, anew: bool = False) -> FoldJob:
    """The job that ends at this position; the same rows give the same job."""
    since = 0 if anew else conversation.summary_until
    turns = list(_turns(conversation, since, until))
    limit = min(MESSAGE_CHARS, budget.history)
    texts = [turn_text(turn, message_chars=limit) for turn in turns]
    foreign = untrusted_turns(user_id=conversation.user_id, turn_ids=[turn.turn_id for turn in turns])
    return FoldJob(
        user_id=conversation.user_id,
        conversation_id=conversation.id,
        earlier="" if anew else conversation.summary,
        since=since,
        until=until,
        turns=turns,
        texts=texts,
        runs=chunked(texts, [estimate_tokens(text) for text in texts], budget.history),
        untrusted=conversation.summary_untrusted or bool(foreign),
        anew=anew,
    )


def _turns(conversation: Conversation, since: int, until: int) -> Iterator[FoldedTurn]:
    found: dict[UUID, FoldedTurn] = {}
    rows = messages_in_force(conversation.id).filter(position__gt=since, position__lte=until)
    for message in rows.exclude(turn=None).defer("blocks"):
        if message.turn_id is not None:
            found.setdefault(message.turn_id, FoldedTurn(turn_id=message.turn_id)).messages.append(message)
    calls = ToolCall.objects.owned_by(conversation.user_id).filter(turn_id__in=found)
    for call in calls.order_by("round", "position"):
        if call.turn_id is not None:
            found[call.turn_id].calls.append(call)
    yield from found.values()


def summary_untrusted(user_id: UUID, conversation_id: UUID) -> bool:
    """Whether the conversation's summary folded a turn in which other people's text was read: then every later turn
    has that text, in a way, before it."""
    rows = Conversation.objects.for_user(user_id).filter(id=conversation_id)
    return rows.filter(summary_until__gt=0, summary_untrusted=True).exists()


def conversations_summarised(user_id: UUID) -> list[UUID]:
    """The user's conversations that have a summary."""
    rows = Conversation.objects.for_user(user_id).exclude(summary="")
    return list(rows.order_by("id").values_list("id", flat=True))


def summary_json(conversation: Conversation) -> dict[str, Any] | None:
    """`{text, by, untrusted, made_at, messages, before}` or None; `messages` counts what a reader sees of what was
    folded, `before` is the id of the first turn that was not."""
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


def turns_shown(conversation: Conversation) -> list[Turn]:
    """The turns whose surfaced notes the model still has before it: in force, and not folded into the summary. Those
    without any are left out; of the others only `memories` is read."""
    rows = messages_sent(conversation).exclude(turn=None).values("turn_id")
    turns = Turn.objects.owned_by(conversation.user_id).filter(id__in=rows).exclude(memories=[])
    return list(turns.only("memories"))
