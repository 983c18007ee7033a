"""Which notes a message brings up by itself: how many of those wanted, and how few others.

The people, their notes, messages and labels are those of `people/` (see `_people.py`). The weights are fitted to all sets but
UNFITTED, and what the people of seven say teaches concern, so that the others show a fit (`weights` leaves each set out). A talk is
replayed message by message: what came up before counts, and is not brought up again.

Asked with what Izzy says by rule of when a note matters, as without any model; with the occasions that a model gave; and, with
`--encoder`, also with an encoder beside the bundled vectors. The baseline is the plain rule: the score that search gives, times
importance and recency, above 0.45.
"""

from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from apps.memory.notes.selectors import memories_by_id
from apps.memory.recall.injection import THRESHOLD, final_score, surface
from apps.memory.similarity import NOTES
from apps.search.documents import Hit
from apps.search.filling import side_fill
from apps.search.selectors import search
from apps.search.spaces import encoder_name
from benchmarks import _encoders
from benchmarks._people import ASKED, KINDS, TUNED, Holder, Person, Said, holder_of, kind_of, people
from benchmarks._scratch import scratch_database
from benchmarks.report import Report, Timing, timed

CANDIDATES = 40
MOST_IDLE, MOST_WRONG = 5, 0.3
BY_RULE, BY_MODEL = "by rule", "a model's"
ENCODED_RULE, ENCODED_MODEL = f"{BY_RULE}, encoder", f"{BY_MODEL}, encoder"
AIMS: dict[str, dict[str, int]] = {
    BY_RULE: {"direct": 97, "paraphrased": 65, "oblique": 40, "follow-up": 65},
    BY_MODEL: {},
    ENCODED_RULE: {},
    ENCODED_MODEL: {"paraphrased": 85, "oblique": 70, "follow-up": 75},
}
"""Occasions -> kind of message -> percent of what is wanted that should come up, in English."""
LEAST_DIRECT = 90
"""The same for direct messages in other languages."""
COLUMNS = ["messages", "number", "wanted", "came up %", "wrong a message", "disturbed %", "ms p50"]

Rule = Callable[[UUID, Sequence[str], Collection[UUID]], set[UUID]]


def izzy(user_id: UUID, texts: Sequence[str], shown: Collection[UUID]) -> set[UUID]:
    return {item.id for item in surface(user_id, texts, exclude_ids=shown).items}


def plain(user_id: UUID, texts: Sequence[str], shown: Collection[UUID]) -> set[UUID]:
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


@dataclass(frozen=True, slots=True)
class Asked:
    """A message as it was asked, and what it brought up."""

    person: Person
    said: Said
    shown: set[str]
    before: set[str]
    took: float

    @property
    def wrong(self) -> set[str]:
        return self.shown - self.said.wanted - self.said.fitting

    @property
    def missed(self) -> set[str]:
        return set(self.said.wanted) - self.shown - self.before


@dataclass
class Tally:
    """Counts over messages. `wrong` are notes that came up and were neither wanted nor fitting; `disturbed` are messages that
    want nothing and brought up such a note."""

    messages: int = 0
    wanted: int = 0
    met: int = 0
    wrong: int = 0
    idle: int = 0
    disturbed: int = 0
    times: list[float] = field(default_factory=list)

    def count(self, one: Asked) -> None:
        self.messages += 1
        self.wanted += len(one.said.wanted)
        self.met += len(one.said.wanted) - len(one.missed)
        self.wrong += len(one.wrong)
        self.idle += not one.said.wanted
        self.disturbed += not one.said.wanted and bool(one.wrong)
        self.times.append(one.took)

    @property
    def recall(self) -> float:
        """Percent."""
        return 100 * self.met / max(self.wanted, 1)

    @property
    def noise(self) -> float:
        """Percent of idle messages."""
        return 100 * self.disturbed / max(self.idle, 1)

    @property
    def wrong_each(self) -> float:
        return self.wrong / max(self.messages, 1)

    def cells(self) -> list[int | float | None]:
        return [
            self.messages,
            self.wanted,
            self.recall if self.wanted else None,
            self.wrong_each,
            self.noise if self.idle else None,
            Timing.of(self.times).p50,
        ]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--half", choices=[*TUNED, "fitted", *ASKED], default=ASKED[0])
    parser.add_argument(
        "--limit", type=int, default=0, help="ask only so many messages of each kind of each person"
    )
    parser.add_argument(
        "--list", action="store_true", help="name what was missed and what was out of place"
    )
    _encoders.add_argument(parser)


def run(options: dict[str, Any]) -> Report:
    names = TUNED if options["half"] == "fitted" else (options["half"],)
    report = Report("surfacing", settings={"sets": ", ".join(names), "threshold": THRESHOLD})
    for name in names:
        with scratch_database():
            _ask_set(report, name, BY_RULE, options)
            _ask_set(report, name, BY_MODEL, options)
        if options["encoder"]:
            with _encoders.encoder_for(options), scratch_database():
                report.settings["encoder"] = settings.IZZY_EMBEDDER
                _ask_set(report, name, ENCODED_RULE, options)
                _ask_set(report, name, ENCODED_MODEL, options)
    return report


def _ask_set(report: Report, name: str, occasions: str, options: dict[str, Any]) -> None:
    """Ask all people of a set, whose notes have these occasions, and add the tables."""
    known = people(name)
    limit = options["limit"] or None
    holders = {
        person.key: holder_of(person, f"{name}-{occasions}", occasions not in (BY_RULE, ENCODED_RULE))
        for person in known
    }
    name = name.replace("_", " ")
    if encoder_name():
        side_fill(encoder_name())
    asked = [
        _asked(person, said, holders[person.key], izzy)
        for person in known
        for kind in KINDS
        for said in [one for one in person.messages if one.kind == kind][:limit]
    ]
    english = [one for one in asked if one.person.language == "en"]
    tallies = _add_table(report, f"{name}, occasions {occasions}: English", english)
    if occasions == BY_RULE:
        base = [_asked(one.person, one.said, holders[one.person.key], plain) for one in english]
        _add_table(report, f"{name}, plain threshold: English", base)
    others: dict[str, dict[str, Tally]] = {}
    for code in dict.fromkeys(one.person.language for one in asked if one.person.language != "en"):
        those = [one for one in asked if one.person.language == code]
        others[code] = _add_table(report, f"{name}, occasions {occasions}: {code}", those)
    _judge(report, f"{name}, occasions {occasions}", AIMS[occasions], tallies, others)
    if options["list"]:
        report.notes.extend(
            f"{name}, {occasions}, {one.person.key}, {one.said.kind}: {one.said.talk[-1]!r} "
            f"missed {sorted(one.missed)}, out of place {sorted(one.wrong)}"
            for one in asked
            if one.missed or one.wrong
        )


def _add_table(report: Report, title: str, asked: Sequence[Asked]) -> dict[str, Tally]:
    """A table by what the messages were meant to be, and by what they are by rule."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    for one in asked:
        by_rule = f"{kind_of(one.said, one.person)} by rule"
        for row in (one.said.kind, "all", *([by_rule] if one.said.wanted else [])):
            tallies[row].count(one)
    section = report.section(title, COLUMNS, digits=2)
    for row in (*KINDS, *(f"{kind} by rule" for kind in KINDS), "all"):
        if row in tallies:
            section.add(row, *tallies[row].cells())
    return tallies


def _judge(
    report: Report,
    title: str,
    least_of: dict[str, int],
    tallies: dict[str, Tally],
    others: dict[str, dict[str, Tally]],
) -> None:
    """Whether a set meets the aims; only what is said of the sets in `ASKED` is no fit."""
    aims = report.aims
    for kind, least in least_of.items():
        met = tallies[kind].recall >= least
        aims[f"{title}: at least {least} % of what {kind} messages want comes up"] = met
    quiet = tallies["idle"].noise <= MOST_IDLE
    aims[f"{title}: at most {MOST_IDLE} % of idle messages are disturbed"] = quiet
    few = tallies["all"].wrong_each <= MOST_WRONG
    aims[f"{title}: at most {MOST_WRONG} wrong notes a message"] = few
    for code, rows in others.items():
        met = rows["direct"].recall >= LEAST_DIRECT and rows["idle"].noise <= MOST_IDLE
        aims[f"{title}, {code}: direct at least {LEAST_DIRECT} %, idle at most {MOST_IDLE} %"] = met


def _asked(person: Person, said: Said, holder: Holder, rule: Rule) -> Asked:
    """Replay a talk; returns what its last message brings up."""
    before: set[UUID] = set()
    for last in range(1, len(said.talk), 2):
        before |= rule(holder.user_id, said.talk[:last], before)
    newest, took = timed(partial(rule, holder.user_id, said.talk[-3:], before))
    return Asked(person, said, holder.keys(newest), holder.keys(before), took)
