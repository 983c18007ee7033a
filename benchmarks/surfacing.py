"""Which notes a message brings up by itself: how many of those wanted, how few others, beside a plain threshold.

An invented person's notes and messages, with the notes that should come to mind labelled by hand: questions in the
note's words, in other words, and oblique ones; follow-ups that lean on the talk; and what should bring up nothing:
small talk, tasks, general knowledge, changes of subject. Half of the messages were used for tuning; the figures that
count are those of the other half. A talk is replayed message by message, and what was shown is not shown again.

The baseline is the plain rule: the score that search gives, times importance and recency, above 0.45.
"""

import random
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from apps.memory.models import Memory
from apps.memory.notes.creation import memory_bulk_create
from apps.memory.notes.selectors import memories_by_id
from apps.memory.recall.injection import THRESHOLD, final_score, surface
from apps.memory.similarity import NOTES
from apps.search.documents import Hit
from apps.search.selectors import search
from benchmarks._scratch import make_user, scratch_database
from benchmarks._surfacing_texts import KnownNote, Utterance, known_notes, messages
from benchmarks.report import Report, Timing, timed

SMALL = (6, 12, 24)
DRAWS = 6
CANDIDATES = 40
LEAST_RECALL, LEAST_PRECISION, MOST_NOISE = 0.6, 0.75, 0.05

Rule = Callable[[UUID, Sequence[str], Collection[UUID]], set[UUID]]


def _izzy(user_id: UUID, texts: Sequence[str], shown: Collection[UUID]) -> set[UUID]:
    return {item.id for item in surface(user_id, texts, exclude_ids=shown).items}


def _plain(user_id: UUID, texts: Sequence[str], shown: Collection[UUID]) -> set[UUID]:
    """Search's relevance to the newest message or to the last three together, against the threshold."""
    best: dict[UUID, Hit] = {}
    for query in dict.fromkeys((texts[-1], "\n".join(texts[-3:]))):
        for hit in search(user_id, query, top_k=CANDIDATES, scope=NOTES):
            if hit.source_id not in best or hit.score > best[hit.source_id].score:
                best[hit.source_id] = hit
    now = timezone.now()
    return {
        note_id
        for note_id, note in memories_by_id(user_id, list(best)).items()
        if note_id not in shown
        and final_score(best[note_id].score, note.importance, now - note.updated_at) > THRESHOLD
    }


RULES: dict[str, Rule] = {"Izzy": _izzy, "plain threshold": _plain}


@dataclass
class Tally:
    """Counts of one rule over messages."""

    wanted: int = 0
    met: int = 0
    shown: int = 0
    unfitting: int = 0
    unrelated: int = 0
    noisy: int = 0
    times: list[float] = field(default_factory=list)

    @property
    def recall(self) -> float:
        return self.met / self.wanted if self.wanted else 1.0

    @property
    def precision(self) -> float:
        """Of all that was shown the share that was wanted or fitting."""
        return 1 - self.unfitting / self.shown if self.shown else 1.0

    @property
    def noise(self) -> float:
        """The share of unrelated messages that brought up anything."""
        return self.noisy / self.unrelated if self.unrelated else 0.0

    def cells(self) -> list[int | float]:
        return [
            self.wanted,
            100 * self.recall,
            self.shown,
            100 * self.precision,
            self.unrelated,
            100 * self.noise,
        ]


COLUMNS = ["wanted", "surfaced %", "shown", "precision %", "unrelated", "noisy %"]


@dataclass(frozen=True, slots=True)
class Holder:
    """A user with some of the notes."""

    user_id: UUID
    ids: dict[str, UUID]

    def keys(self, ids: Iterable[UUID]) -> set[str]:
        names = {note_id: key for key, note_id in self.ids.items()}
        return {names[note_id] for note_id in ids}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--half", choices=["held-back", "tuning", "all"], default="held-back")
    parser.add_argument("--limit", type=int, default=0, help="only so many messages of each kind")
    parser.add_argument(
        "--draws", type=int, default=DRAWS, help="so many small collections of each size"
    )
    parser.add_argument(
        "--list", action="store_true", help="name what was missed and what was out of place"
    )


def run(options: dict[str, Any]) -> Report:
    chosen = _chosen(options["half"], options["limit"])
    report = Report(
        "surfacing",
        settings={
            "messages": f"{len(chosen)} ({options['half']})",
            "notes": len(known_notes()),
            "embedder": settings.IZZY_EMBEDDER,
            "threshold": THRESHOLD,
        },
    )
    with scratch_database():
        fresh = _holder("fresh", _as_new(known_notes()))
        tallies = _ask_all(report, "All notes new and of importance 3", fresh, chosen)
        _by_kind(report, fresh, chosen, options["list"])
        _ask_all(report, "As old and as important as they are", _holder("aged", known_notes()), chosen)
        _small_collections(report, chosen, options["draws"])
    timings = [(name, *Timing.of(tally.times)) for name, tally in tallies.items()]
    report.section("Milliseconds per message", ["rule", "p50", "p95"], timings)
    own = tallies["Izzy"]
    report.aims = {
        f"at least {LEAST_RECALL:.0%} of what is wanted comes up": own.recall >= LEAST_RECALL,
        f"at least {LEAST_PRECISION:.0%} of what comes up fits": own.precision >= LEAST_PRECISION,
        f"at most {MOST_NOISE:.0%} of unrelated messages bring up anything": own.noise <= MOST_NOISE,
    }
    return report


def _chosen(half: str, limit: int) -> list[Utterance]:
    """The messages of a half, at most `limit` of each kind (0: all)."""
    kinds: dict[str, list[Utterance]] = defaultdict(list)
    for utterance in messages():
        if half in ("all", "held-back" if utterance.held_back else "tuning"):
            kinds[utterance.kind].append(utterance)
    return [utterance for kind in kinds.values() for utterance in kind[: limit or None]]


def _as_new(notes: Iterable[KnownNote]) -> list[KnownNote]:
    return [replace(note, days=0, importance=3) for note in notes]


def _holder(name: str, notes: Sequence[KnownNote]) -> Holder:
    user = make_user(name)
    drafts: Any = [{"content": note.text, "importance": note.importance} for note in notes]
    made = memory_bulk_create(user_id=user.pk, drafts=drafts)
    now = timezone.now()
    for note, row in zip(notes, made, strict=True):
        written = now - timedelta(days=note.days)
        Memory.objects.for_user(user).filter(pk=row.pk).update(created_at=written, updated_at=written)
    return Holder(user.pk, {note.key: row.pk for note, row in zip(notes, made, strict=True)})


def _ask_all(
    report: Report, title: str, holder: Holder, chosen: Sequence[Utterance]
) -> dict[str, Tally]:
    tallies = {name: Tally() for name in RULES}
    for name, tally in tallies.items():
        for utterance in chosen:
            _ask(holder, RULES[name], utterance, tally)
    rows = [(name, *tally.cells()) for name, tally in tallies.items()]
    report.section(title, ["rule", *COLUMNS], rows, digits=1)
    return tallies


def _by_kind(report: Report, holder: Holder, chosen: Sequence[Utterance], listed: bool) -> None:
    section = report.section("By kind of message", ["rule", "kind", *COLUMNS], digits=1)
    for name, rule in RULES.items():
        kinds: dict[str, Tally] = defaultdict(Tally)
        for utterance in chosen:
            missed, unfitting = _ask(holder, rule, utterance, kinds[utterance.kind])
            if listed and (missed or unfitting):
                report.notes.append(
                    f"{name}, {utterance.kind}: {utterance.talk[-1]!r} missed {sorted(missed)}, out of place {sorted(unfitting)}"
                )
        for kind, tally in kinds.items():
            section.add(name, kind, *tally.cells())


def _small_collections(report: Report, chosen: Sequence[Utterance], draws: int) -> None:
    """Some of the notes at random: most messages then have nothing to bring up."""
    section = report.section("Small collections, drawn at random", ["rule", "notes", *COLUMNS], digits=1)
    for size in SMALL:
        draw = random.Random(size)
        tallies = {name: Tally() for name in RULES}
        for number in range(draws):
            holder = _holder(f"small-{size}-{number}", _as_new(draw.sample(known_notes(), size)))
            for name, tally in tallies.items():
                for utterance in chosen:
                    _ask(holder, RULES[name], utterance, tally)
        for name, tally in tallies.items():
            section.add(name, size, *tally.cells())


def _ask(holder: Holder, rule: Rule, utterance: Utterance, tally: Tally) -> tuple[set[str], set[str]]:
    """Replay a talk and count what its last message brings up; returns what was missed and what was out of place."""
    before: set[UUID] = set()
    for last in range(1, len(utterance.talk), 2):
        before |= rule(holder.user_id, utterance.talk[:last], before)
    newest, took = timed(partial(rule, holder.user_id, utterance.talk[-3:], before))
    tally.times.append(took)
    shown = holder.keys(newest)
    wanted = utterance.wanted & set(holder.ids)
    missed = set(wanted - shown - holder.keys(before))
    unfitting = shown - utterance.wanted - utterance.fitting
    tally.wanted += len(wanted)
    tally.met += len(wanted) - len(missed)
    tally.shown += len(shown)
    tally.unfitting += len(unfitting)
    if not wanted:
        tally.unrelated += 1
        tally.noisy += bool(unfitting)
    return missed, unfitting
