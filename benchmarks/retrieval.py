"""Recall of search and of context blocks on a labelled data set, beside plain BM25 and plain cosine.

The data set is a JSON list of conversations: `messages` (external_id, session, speaker, text, created_at) and
`questions` (question, category, evidence: external_ids, and the words of the answer where they are known). Each conversation is taken in through `/ingest/` as a user of
its own and asked through `/search/` and `/context/`, with the embedder in use and no model.

Evidence in a context block is counted three ways: a message of which any part stands in it, a whole message, and the
share of the answer's words. With `--leave-one-out` the weights of ranking are fitted anew without each conversation, which
is then asked with them, and each signal is left out in turn.
"""

import statistics
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from django.conf import settings
from django.core.management.base import CommandError
from django.test import Client, override_settings
from numpy.typing import NDArray

from apps.search.models import Passage
from apps.search.ranking.signals import WEIGHTS
from benchmarks._baselines import bm25_order, cosine_order
from benchmarks._questions import (
    BUDGET,
    DEPTHS,
    Conversation,
    Question,
    Run,
    ask,
    ingest,
    read_dataset,
    scored,
)
from benchmarks._scratch import api_client, make_user, scratch_database
from benchmarks.report import Report, Timing

AIM = 0.84
REFITTED = "Izzy, weights fitted without the conversation"
GRID = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0)
START = 0.5
"""Where every weight but the first begins: nothing of the weights in use goes into the fit."""
ROUNDS = 4
DEPTH = 10
NAMES = tuple(WEIGHTS)

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Observed:
    """The questions of one conversation: their unweighted signals, (questions, NAMES, rows), what speaks for each row
    anyhow, which rows are the evidence, (questions, rows), and how many there should be."""

    signals: Floats
    prior: Floats
    evidence: NDArray[np.bool_]
    wanted: NDArray[np.int64]

    def recalls(self, weights: Floats) -> NDArray[np.float64]:
        """Recall@10 of each question."""
        total = self.prior + np.tensordot(weights, self.signals, axes=(0, 1))
        best = np.argpartition(-total, min(DEPTH, total.shape[1] - 1), axis=1)[:, :DEPTH]
        return np.asarray(np.take_along_axis(self.evidence, best, axis=1).sum(axis=1) / self.wanted)


def observe(user_id: UUID, questions: Sequence[Question]) -> Observed:
    """The signals of all of a user's passages for some questions."""
    names = dict(Passage.objects.filter(user_id=user_id).values_list("external_id", "pk"))
    found, evidence = [], []
    for question in questions:
        unweighted = override_settings(IZZY_SEARCH_WEIGHTS=dict.fromkeys(NAMES, 1.0))
        with unweighted, scored(user_id, question.text) as (_, rows, _, scores):
            nothing = np.zeros(rows.size, dtype=np.float32)
            found.append(np.stack([scores.signals.get(name, nothing) for name in NAMES]))
            right = [names[name] for name in question.evidence if name in names]
            evidence.append(np.isin(rows.ids[: rows.size], right))
            prior = rows.prior[: rows.size].copy()
    wanted = np.array([len(question.evidence) for question in questions])
    return Observed(np.stack(found), prior, np.stack(evidence), wanted)


def mean_recall(observed: Sequence[Observed], weights: Floats) -> float:
    """Recall@10 over all questions."""
    return float(np.concatenate([one.recalls(weights) for one in observed]).mean())


def fitted_weights(observed: Sequence[Observed]) -> dict[str, float]:
    """The weights that find most of the evidence among the first ten; the first one is the measure of the others."""
    weights = np.full(len(NAMES), START, dtype=np.float32)
    weights[0] = 1.0
    best = mean_recall(observed, weights)
    for _ in range(ROUNDS):
        before = best
        for place in range(1, len(NAMES)):
            for value in GRID:
                tried = weights.copy()
                tried[place] = value
                if (recall := mean_recall(observed, tried)) > best:
                    best, weights = recall, tried
        if best == before:
            break
    return dict(zip(NAMES, (round(float(weight), 2) for weight in weights), strict=True))


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dataset", required=True, type=Path, metavar="FILE")
    parser.add_argument(
        "--limit", type=int, default=0, help="ask only so many questions of each conversation"
    )
    parser.add_argument(
        "--together",
        action="store_true",
        help="give all conversations to one user: the others' messages distract",
    )
    parser.add_argument(
        "--leave-one-out",
        action="store_true",
        help="also ask each conversation with weights that were fitted to the others",
    )


def run(options: dict[str, Any]) -> Report:
    conversations = read_dataset(options["dataset"], options["limit"])
    if options["leave_one_out"] and (options["together"] or len(conversations) < 2):
        raise CommandError("--leave-one-out needs two conversations, each of a user of its own.")
    outcome = Run()
    with scratch_database():
        count = 1 if options["together"] else len(conversations)
        users = [make_user(f"user{number}") for number in range(count)]
        clients = [(user.pk, api_client(user)) for user in users]
        asked = list(zip(conversations, cycle(clients), strict=False))
        for conversation, (_, client) in asked:
            ingest(client, conversation, outcome)
        for conversation, (user_id, client) in asked:
            _ask_all(user_id, client, conversation, outcome)
        if not options["leave_one_out"]:
            return _report(outcome, options)
        observed = [observe(user_id, conversation.questions) for conversation, (user_id, _) in asked]
        weights = {}
        for number, (conversation, (user_id, client)) in enumerate(asked):
            fitted = fitted_weights([*observed[:number], *observed[number + 1 :]])
            weights[conversation.name] = fitted
            with override_settings(IZZY_SEARCH_WEIGHTS=fitted):
                for question in conversation.questions:
                    found, block = ask(user_id, client, question.text, Run())
                    outcome.methods[REFITTED].add(found, question, block)
    report = _report(outcome, options)
    _report_refitted(report, weights, observed)
    return report


def _report_refitted(
    report: Report, weights: dict[str, dict[str, float]], observed: list[Observed]
) -> None:
    table = report.section("Weights fitted without", ["conversation", *NAMES])
    for name, fitted in weights.items():
        table.add(name, *fitted.values())
    table.add("in use", *WEIGHTS.values())
    table = report.section(
        "Recall@10 in % with the weights in use, one signal left out", ["signal", "recall@10", "change"]
    )
    in_use = np.array(list(WEIGHTS.values()), dtype=np.float32)
    whole = mean_recall(observed, in_use)
    for place, name in enumerate(NAMES):
        left = in_use.copy()
        left[place] = 0
        recall = mean_recall(observed, left)
        table.add(name, 100 * recall, 100 * (recall - whole))
    report.notes.append(
        "Refitted are the weights of the signals. Not refitted, since they are fixed round numbers: BM25's k1 and b, the kernels of "
        "neighbours, the silence that ends a sitting, the priors of length and questions, strengths of dates, and packing."
    )


def _ask_all(user_id: UUID, client: Client, conversation: Conversation, outcome: Run) -> None:
    messages = conversation.messages
    texts = [f"{message['speaker']}: {message['content']}" for message in messages]
    for question in conversation.questions:
        found, block = ask(user_id, client, question.text, outcome)
        for tally in (
            outcome.methods["Izzy"],
            outcome.categories[question.category],
            outcome.conversations[conversation.name],
        ):
            tally.add(found, question, block)
        for method, order in (("plain BM25", bm25_order), ("plain cosine", cosine_order)):
            best = outcome.timed(f"{method}, in process", partial(order, texts, question.text))
            names = [messages[row]["external_id"] for row in best[: DEPTHS[-1]]]
            outcome.methods[method].add(names, question)


def _report(outcome: Run, options: dict[str, Any]) -> Report:
    own = outcome.methods["Izzy"]
    report = Report(
        "retrieval",
        settings={
            "dataset": options["dataset"].name,
            "messages": outcome.messages,
            "questions": len(own.reciprocal),
            "embedder": settings.IZZY_EMBEDDER,
            "users": "one for all conversations" if options["together"] else "one per conversation",
            "largest context block, tokens": outcome.most_tokens,
        },
    )
    columns = [
        *(f"recall@{depth}" for depth in DEPTHS),
        "MRR",
        f"evidence@{BUDGET}",
        "whole",
        "answer's words",
    ]
    for title, key, tallies in (
        ("Recall in %, all questions", "method", outcome.methods),
        ("Izzy by category", "category", outcome.categories),
        ("Izzy by conversation", "conversation", outcome.conversations),
    ):
        section = report.section(title, [key, "questions", *columns])
        for name, tally in tallies.items():
            section.add(name, len(tally.reciprocal), *tally.row())
    section = report.section("Milliseconds per query", ["path", "p50", "p95"])
    for name, times in sorted(outcome.timings.items()):
        section.add(name, *Timing.of(times))
    report.aims = {
        f"recall@10 at least {AIM:.0%}": statistics.fmean(own.recall[10]) >= AIM,
        f"evidence@{BUDGET} at least {AIM:.0%}": statistics.fmean(own.evidence) >= AIM,
    }
    return report
