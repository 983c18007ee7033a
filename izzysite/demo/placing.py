"""Puts the story into an account and takes it out again: exactly what it made, but for what its owner changed since."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.agent.models import ModelCall
from apps.capabilities.catalog.lifecycle import capability_approve, capability_delete
from apps.capabilities.models import Capability, Execution, Trigger
from apps.chat.conversations.services import conversation_delete
from apps.chat.models import Conversation, Message
from apps.core.db.writing import precompute
from apps.core.errors import Conflict
from apps.core.models import InstanceState
from apps.core.transfer import Entry, Row, Taking, group_of
from apps.memory.files.services import file_erase
from apps.memory.models import CaptureWindow, DecayCycle, Memory, MemoryEdge, MemoryFile
from apps.memory.notes.changes import memories_erase
from apps.memory.transfer.lines import NAME

from .conversations import conversation_rows
from .records import MODEL, Story, capability_rows, chapter, file_rows, note_rows, use_rows

Marks = dict[str, dict[str, str]]
"""By kind of row, by id: what the row was like when it was made."""
KINDS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "note": (Memory, ("updated_at",)),
    "file": (MemoryFile, ("updated_at", "path")),
    "capability": (Capability, ("current_id", "runs", "name")),
    "conversation": (Conversation, ("last_position", "title", "pinned", "archived")),
}
"""By kind of row its model, and the columns that tell whether one was changed."""
WORDS = {
    "note": "memories",
    "file": "files",
    "capability": "capabilities",
    "conversation": "conversations",
}


class DemoThere(Conflict):
    """The account has the demo already."""


@dataclass(slots=True)
class Removed:
    """How many rows of each kind went, and which were kept since their owner changed them: what a person reads of them."""

    counts: dict[str, int] = field(default_factory=dict)
    kept: dict[str, list[str]] = field(default_factory=dict)


def state_key(user_id: UUID) -> str:
    return f"demo:{user_id}"


def has_demo(user_id: UUID) -> bool:
    return InstanceState.objects.filter(key=state_key(user_id)).exists()


@transaction.atomic
def demo_add(user_id: UUID) -> dict[str, int]:
    """Puts the story into the account, all or nothing; how many rows of each kind it made. Raises DemoThere."""
    _forget_the_gone()
    if has_demo(user_id):
        raise DemoThere("The demo is there already. Take it out with --remove first.", code="demo_there")
    story = Story(user_id, timezone.now())
    before = {kind: set(_marks(user_id, kind)) for kind in KINDS}
    clock = DecayCycle.objects.filter(user_id=user_id).values_list("cycle", flat=True).first()
    for rows in (note_rows, file_rows, capability_rows, conversation_rows, use_rows):
        _take(story, list(rows(story)))
    made_here = [story.key("capability", each["key"]) for each in chapter("capabilities")["capability"]]
    for each in Capability.objects.for_user(user_id).filter(pk__in=made_here):
        if str(each.pk) not in before["capability"]:
            capability_approve(user_id=user_id, capability_id=each.pk)
            _runs_add(story, each)
    made: Marks = {
        kind: {key: mark for key, mark in _marks(user_id, kind).items() if key not in before[kind]}
        for kind in KINDS
    }
    _calls_add(story, made["conversation"])
    ids = [UUID(key) for key in made["note"]]
    links = MemoryEdge.objects.owned_by(user_id).filter(Q(source__in=ids) | Q(target__in=ids))
    value = {
        "made": made,
        "links": [str(key) for key in links.values_list("pk", flat=True)],
        "clock": clock,
    }
    InstanceState.objects.create(key=state_key(user_id), value=value)
    return {kind: len(rows) for kind, rows in made.items()}


def _forget_the_gone() -> None:
    """Forgets the records of accounts that are gone, too."""
    known = {state_key(key) for key in get_user_model()._base_manager.values_list("pk", flat=True)}
    InstanceState.objects.filter(key__startswith="demo:").exclude(key__in=known).delete()


def _take(story: Story, rows: Iterable[Row]) -> None:
    """Takes records in as the user's own export is taken in. A record that is refused is a mistake of the story's."""
    for kinds, entries in _grouped(rows):
        taking = Taking(
            user_id=story.user_id, format=NAME, own=True, accept=False, dry_run=False, now=story.now
        )
        group = group_of(kinds)
        assert group is not None  # noqa: S101 - the story has no others
        with precompute():
            group.plan(taking, entries)()
            if taking.later and group.settle:
                group.settle(taking, taking.later)()
        if taking.report.wrong:
            raise ValueError(f"The story of the demo is wrong: {taking.report.wrong}")


def _grouped(rows: Iterable[Row]) -> Iterator[tuple[str, list[Entry]]]:
    """The records of one group after the other, with one of their kinds."""
    groups: dict[int, list[Entry]] = {}
    for number, row in enumerate(rows, start=1):
        group = group_of(row["type"])
        assert group is not None  # noqa: S101 - the story has no others
        groups.setdefault(group.rank, []).append(Entry(row["type"], row, f"record {number}", number))
    for entries in (groups[rank] for rank in sorted(groups)):
        yield entries[0].kind, entries


def _runs_add(story: Story, capability: Capability) -> None:
    """The runs that the story tells of, as their ends were written down."""
    entry = next(
        each for each in chapter("capabilities")["capability"] if each["name"] == capability.name
    )
    rows = []
    for run in entry["runs"]:
        begun, error = story.at(run["day"], 65), run.get("error", "")
        conversation = story.message(run["chat"])[0] if "chat" in run else None
        rows.append(
            Execution(
                user_id=story.user_id,
                capability=capability,
                version=1,
                state=Execution.State.FAILED if error else Execution.State.OK,
                trigger=Trigger.CHAT if conversation else Trigger.PAGE,
                input=run["input"],
                result=run.get("result", ""),
                error_code="raised" if error else "",
                error_message=error,
                backend="bubblewrap",
                duration_ms=180,
                conversation_id=conversation,
                created_at=begun,
                finished_at=begun + timedelta(milliseconds=180),
            )
        )
    Execution.objects.bulk_create(rows)


def _calls_add(story: Story, conversations: Mapping[str, str]) -> None:
    """The cost that the conversations would have had, for the usage page; nothing of today, which budgets count."""
    calls = []
    for message in Message.objects.owned_by(story.user_id).filter(
        conversation_id__in=list(conversations), role="assistant"
    ):
        for purpose, sent, cost in (("chat", 2400, "0.011"), ("extraction", 900, "0.004")):
            call = ModelCall(
                user_id=story.user_id,
                conversation_id=message.conversation_id,
                turn_id=message.turn_id,
                purpose=purpose,
                model=MODEL,
                endpoint=ModelCall.Endpoint.CUSTOM,
                input_tokens=sent,
                output_tokens=len(message.text) // 4 + 20,
                latency_ms=2100,
                cost_usd=Decimal(cost),
                stop_reason="end_turn",
            )
            calls.append((call, message.created_at))
    ModelCall.objects.bulk_create([call for call, _ in calls])
    for call, when in calls:  # the column keeps the time of the insert
        call.created_at = when
    ModelCall.objects.unscoped().bulk_update([call for call, _ in calls], ["created_at"])


def _marks(user_id: UUID, kind: str) -> dict[str, str]:
    """By id what tells whether a row was changed. What its owner deleted has no mark."""
    model, columns = KINDS[kind]
    rows = model.objects.for_user(user_id).values_list("pk", *columns)
    return {str(key): " ".join(map(str, rest)) for key, *rest in rows}


def demo_remove(user_id: UUID, *, changed: bool = False) -> Removed:
    """Takes out what `demo_add` made. What its owner changed, went on with or linked to something own stays, unless `changed`.

    Interrupted, it goes on when it is called again. Conflict (`no_demo`) where there is none.
    """
    state = InstanceState.objects.filter(key=state_key(user_id)).first()
    if state is None:
        raise Conflict("There is no demo in this account.", code="no_demo")
    made: Marks = state.value["made"]
    removed = Removed()
    for kind, (model, _) in KINDS.items():
        now = _marks(user_id, kind)
        stays = {key for key, mark in made[kind].items() if now.get(key, mark) != mark}
        if kind == "note":
            stays |= _held(user_id, made, state.value["links"])
        if changed:
            stays = set()
        gone = [UUID(key) for key in made[kind] if key not in stays]
        removed.kept[kind] = sorted(map(str, model.objects.for_user(user_id).filter(pk__in=stays)))
        removed.counts[kind] = len(gone)
        _remove(user_id, kind, gone)
    with transaction.atomic():
        _clock_back(user_id, state.value["clock"])
        state.delete()
    return removed


def _held(user_id: UUID, made: Marks, links: Iterable[str]) -> set[str]:
    """Notes of the demo that the user linked, or that stand for one of the user's own."""
    ids = [UUID(key) for key in made["note"]]
    edges = MemoryEdge.objects.owned_by(user_id).filter(Q(source__in=ids) | Q(target__in=ids))
    found = set(edges.exclude(pk__in=list(links)).values_list("source_id", "target_id"))
    own = Memory.objects.for_user(user_id).exclude(pk__in=ids)
    found |= set(own.filter(superseded_by__in=ids).values_list("superseded_by_id", "proposed_target_id"))
    found |= set(
        own.filter(proposed_target__in=ids).values_list("superseded_by_id", "proposed_target_id")
    )
    return {str(key) for pair in found for key in pair if key} & made["note"].keys()


def _remove(user_id: UUID, kind: str, ids: list[UUID]) -> None:
    if kind == "note":
        memories_erase(user_id=user_id, memory_ids=ids)
    elif kind == "file":  # one that its owner deleted, too
        for key in ids:
            file_erase(user_id=user_id, file_id=key)
    elif kind == "capability":
        for each in Capability.objects.for_user(user_id).filter(pk__in=ids):
            capability_delete(user_id=user_id, capability_id=each.pk)
    else:
        for talk in Conversation.objects.for_user(user_id).filter(pk__in=ids):
            conversation_delete(user_id=user_id, conversation_id=talk.pk)
        for model in (ModelCall, CaptureWindow):
            model.objects.owned_by(user_id).filter(conversation_id__in=ids).delete()


def _clock_back(user_id: UUID, clock: int | None) -> None:
    """An account that has no notes left has its clock as before."""
    if not Memory.objects.with_deleted(user_id).exists():
        DecayCycle.objects.filter(user_id=user_id).update(cycle=clock or 0)
