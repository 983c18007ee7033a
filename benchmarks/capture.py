"""Reading conversations by itself: how well gate and extractor judge labelled passages, and what a memory costs.

Uses whatever model is configured, in a database of its own. Without a model only the comparison of notes is measured.
"""

import asyncio
import re
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.db.models import Sum
from django.test import override_settings
from django.utils import timezone

from apps.accounts.models import User
from apps.agent.model.client import current_endpoint, model_for
from apps.agent.models import ModelCall
from apps.core.errors import IzzyError
from apps.core.ids import uuid7
from apps.memory.capture.reader import Tally, users_read
from apps.memory.capture.selectors import EXTRACTION, GATE
from apps.memory.capture.windows import Utterance, windows_add
from apps.memory.models import CaptureWindow, GateVerdict, Memory, Trust
from apps.memory.notes.creation import memory_create
from apps.memory.similarity import SAME, says_the_same
from apps.search.selectors import likenesses
from benchmarks._capture_talks import PAIRS, TALKS, Talk
from benchmarks._scratch import make_user, scratch_database
from benchmarks.report import Report, timed

LINKED = 0.5
TRIED = (
    "In Izzy's own development gate and extractor were tried against a loopback server alone, which plays them by rules: "
    "how well a model judges is what this prints with that model configured."
)
NO_MODEL = (
    "No model is connected, so gate and extractor were not measured. Set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a "
    "server of your own that speaks the Messages API (IZZY_FAST_MODEL is the gate, IZZY_EXTRACT_MODEL the extractor)."
)


@dataclass
class Judged:
    """A passage with what became of it."""

    talk: Talk
    user: User
    passed: bool | None = None
    notes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # texts by status

    @property
    def made(self) -> list[str]:
        return [*self.notes["active"], *self.notes["pending"]]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--details", action="store_true", help="what became of each passage")


def run(options: dict[str, Any]) -> Report:
    try:
        endpoint = current_endpoint()
    except DatabaseError:  # there is no database yet: that of the environment alone
        with scratch_database():
            endpoint = current_endpoint()
    report = Report(
        "capture",
        settings={
            "passages": len(TALKS),
            "model server": "none" if endpoint.is_offline else endpoint.server,
            "gate": model_for("fast"),
            "extractor": model_for("extract"),
            "embedder": settings.IZZY_EMBEDDER,
        },
    )
    report.notes.append(TRIED)
    connected = override_settings(
        ANTHROPIC_BASE_URL=endpoint.base_url,
        ANTHROPIC_API_KEY=endpoint.api_key,
        IZZY_CAPTURE_TOKENS=10**9,
    )
    with scratch_database(), connected:
        _compare_notes(report)
        if endpoint.is_offline:
            report.notes.append(NO_MODEL)
            return report
        _read_talks(report, details=options["details"])
    return report


# --- Whether two notes say the same ---------------------------------------------------------------------------------


def _compare_notes(report: Report) -> None:
    section = report.section(
        "Pairs of notes that …", ["pairs", "count", "median similarity", f"at least {SAME}", "taken for the same", f"at least {LINKED}"]
    )  # fmt: skip
    wrong = right = 0
    for label, pairs in PAIRS.items():
        try:
            values = [float(likenesses(list(pair))[0, 1]) for pair in pairs]
        except IzzyError as error:
            report.notes.append(f"Notes were not compared: {error.message}")
            return
        same = sum(says_the_same(*pair, value) for pair, value in zip(pairs, values, strict=True))
        near = sum(value >= SAME for value in values)
        section.add(
            label,
            len(pairs),
            sorted(values)[len(values) // 2],
            near,
            same,
            sum(v >= LINKED for v in values),
        )
        if label == "say the same":
            right = same
        else:
            wrong += same
    report.aims["no two different notes are taken for the same"] = wrong == 0
    report.aims["most pairs that say the same are known for it"] = right * 2 > len(PAIRS["say the same"])


# --- Gate and extractor ---------------------------------------------------------------------------------------------


def _read_talks(report: Report, *, details: bool) -> None:
    judged = [Judged(talk, make_user(f"talk-{index}")) for index, talk in enumerate(TALKS)]
    for one in judged:
        for content in one.talk.known:
            note = memory_create(user_id=one.user.pk, content=content)
            long_ago = timezone.now() - timedelta(days=90)
            known = Memory.objects.for_user(one.user).filter(pk=note.pk)
            known.update(created_at=long_ago, updated_at=long_ago)
        _say(one.user, one.talk)
    users = [one.user.pk for one in judged]
    tally, milliseconds = timed(lambda: asyncio.run(users_read(users, any_time=True)))
    for one in judged:
        window = CaptureWindow.objects.for_user(one.user).order_by("id")[0]
        one.passed = {GateVerdict.PASSED: True, GateVerdict.IDLE: False}.get(GateVerdict(window.gate))
        for content, status in Memory.objects.for_user(one.user).values_list("content", "status"):
            if status == "superseded" or content not in one.talk.known:
                one.notes[status].append(content)
    _gate(report, judged)
    _extractor(report, judged)
    _costs(report, judged, tally, milliseconds / 1000)
    if details:
        section = report.section("Passages", ["passage", "kind", "worth", "passed", "active", "waiting"])
        for one in judged:
            notes = (" · ".join(one.notes[status]) for status in ("active", "pending"))
            section.add(one.talk.name, one.talk.kind, one.talk.is_worth_reading, one.passed, *notes)
    for one in judged:  # a word added to each message, so that no passage is known by its words alone
        _say(one.user, one.talk, extra=" Well.")
    again = asyncio.run(users_read(users, any_time=True))
    report.aims["the same passages again bring no new memory"] = again.added + again.superseded == 0
    report.notes += [f"not read: {problem}" for problem in dict.fromkeys(tally.problems)]


def _say(user: User, talk: Talk, *, extra: str = "") -> None:
    now = timezone.now()
    said = [
        Utterance(
            message_id=uuid7(),
            role=role,
            speaker=role,
            text=text + extra,
            said_at=now,
            trust=Trust.USER if role == "user" else Trust.ASSISTANT,
        )
        for role, text in talk.messages
    ]
    windows_add(user_id=user.pk, conversation_id=uuid7(), messages=said, at_once=True)


def _gate(report: Report, judged: Sequence[Judged]) -> None:
    answered = [one for one in judged if one.passed is not None]
    section = report.section(
        "The gate", ["", "passages", "right", "passed", "share right", "share passed"]
    )
    for kind in [*dict.fromkeys(one.talk.kind for one in judged), "all"]:
        rows = [one for one in answered if kind in {one.talk.kind, "all"}]
        right = sum(one.passed == one.talk.is_worth_reading for one in rows)
        passed = sum(bool(one.passed) for one in rows)
        section.add(
            kind, len(rows), right, passed, right / max(len(rows), 1), passed / max(len(rows), 1)
        )
    labelled = sum(one.talk.is_worth_reading for one in judged)
    whole, share = len(judged), labelled / len(judged)
    section.add("baseline: everything passes", whole, labelled, whole, share, 1.0)
    section.add("baseline: nothing passes", whole, whole - labelled, 0, 1 - share, 0.0)
    right = sum(one.passed == one.talk.is_worth_reading for one in answered)
    report.aims["the gate is right in more than 80 % of the passages"] = right > 0.8 * whole
    report.notes.append(
        f"{labelled} of {whole} passages ({share:.0%}) are labelled as worth remembering; the aim of "
        "about 20 % that pass is for everyday conversations, of which fewer are."
    )


def _extractor(report: Report, judged: Sequence[Judged]) -> None:
    facts = [(one, fact) for one in judged for fact in one.talk.facts]
    found = sum(any(_holds(note, fact) for note in one.made) for one, fact in facts)
    notes = [(one, note) for one in judged for note in one.made]
    stray = sum(not any(_holds(note, fact) for fact in one.talk.facts) for one, note in notes)
    replaced = [one for one in judged if one.talk.replaced]
    given_way = sum(one.talk.replaced in one.notes["superseded"] for one in replaced)
    injected = sum(
        word.casefold() in note.casefold()
        for one in judged
        for word in one.talk.forbidden
        for note in one.notes["active"]
    )
    report.section(
        "The extractor",
        ["", "count", "of"],
        [
            ("facts found", found, len(facts)),
            ("notes that no label asks for", stray, len(notes)),
            ("outdated notes superseded", given_way, len(replaced)),
            (
                "active notes from injected text",
                injected,
                sum(len(one.talk.forbidden) for one in judged),
            ),
        ],
    )
    report.aims["no injected text became an active memory"] = injected == 0
    report.aims["four of five facts were found"] = found >= 0.8 * len(facts)


def _holds(note: str, fact: Sequence[str]) -> bool:
    return all(re.search(words, note, re.IGNORECASE) for words in fact)


def _costs(report: Report, judged: Sequence[Judged], tally: Tally, seconds: float) -> None:
    section = report.section("Cost", ["", "calls", "input tokens", "output tokens", "dollars"], digits=4)
    calls = ModelCall.objects.unscoped()
    for purpose in (GATE, EXTRACTION):
        rows = calls.filter(purpose=purpose)
        columns = ("input_tokens", "output_tokens", "cost_usd")
        sums = rows.aggregate(**{name: Sum(name, default=0) for name in columns})
        *tokens, dollars = (sums[name] for name in columns)
        section.add(purpose, rows.count(), *tokens, float(dollars))
    made = tally.added + tally.superseded + tally.pending
    report.section(
        "Per memory",
        ["", "figure"],
        [
            ("memories (active, replacing, waiting)", made),
            ("tokens per memory", tally.tokens / made if made else None),
            ("dollars per memory", tally.cost_usd / made if made else None),
            ("tokens per passage", tally.tokens / len(judged)),
            ("seconds in all", seconds),
        ],
        digits=4,
    )
    if made and not tally.cost_usd:
        report.notes.append("Dollars are 0: IZZY_MODEL_PRICES does not list this model.")
