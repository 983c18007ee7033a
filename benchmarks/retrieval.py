"""Recall of search and of context blocks on a labelled data set, beside plain BM25 and plain cosine.

The data set is a JSON list of conversations: `messages` (external_id, session, speaker, text, created_at) and
`questions` (question, category, evidence: external_ids, and the words of the answer where they are known). Each conversation is taken in through `/ingest/` as a user of
its own and asked through `/search/` and `/context/`, with the embedder in use and no model.

Evidence in a context block is counted three ways: a message of which any part stands in it, a whole message, and the
share of the answer's words. `--variant` measures the data set with one of its habits broken (`benchmarks/_variants.py`), or
all of them one after the other. With `--leave-one-out` the weights of ranking are fitted anew without each conversation, which
is then asked with them, and each signal is left out in turn.
"""

import statistics
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress, cycle
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
from benchmarks import _encoders
from benchmarks._baselines import bm25_order, cosine_order
from benchmarks._questions import (
    BUDGET,
    DEPTHS,
    Conversation,
    Question,
    Run,
    ask,
    ingest,
    message_of,
    read_dataset,
    scored,
)
from benchmarks._scratch import api_client, make_user, scratch_database
from benchmarks._variants import VARIANTS, varied
from benchmarks.report import Report, Timing

AIM, VARIANT_AIM, EVIDENCE_AIM = 0.855, 0.825, 0.87
PLAIN = "plain"
OWN = "Izzy"
COLUMNS = [
    *(f"recall@{depth}" for depth in DEPTHS),
    "MRR",
    f"evidence@{BUDGET}",
    "whole",
    "answer's words",
]
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
    anyhow, which of the messages that answer each row is of, counted from 1, 0 for none, (questions, rows), and how many
    there should be."""

    signals: Floats
    prior: Floats
    evidence: NDArray[np.int8]
    wanted: NDArray[np.int64]

    def recalls(self, weights: Floats) -> NDArray[np.float64]:
        """Recall@10 of each question."""
        total = self.prior + np.tensordot(weights, self.signals, axes=(0, 1))
        best = np.argpartition(-total, min(DEPTH, total.shape[1] - 1), axis=1)[:, :DEPTH]
        found = np.sort(np.take_along_axis(self.evidence, best, axis=1), axis=1)
        # Each message once, in however many parts it was sent.
        once = (found[:, 1:] > 0) & (found[:, 1:] != found[:, :-1])
        return np.asarray((once.sum(axis=1) + (found[:, 0] > 0)) / self.wanted)


def observe(user_id: UUID, questions: Sequence[Question]) -> Observed:
    """The signals of all of a user's passages for some questions."""
    passages = dict(Passage.objects.filter(user_id=user_id).values_list("pk", "external_id"))
    found, evidence = [], []
    for question in questions:
        unweighted = override_settings(IZZY_SEARCH_WEIGHTS=dict.fromkeys(NAMES, 1.0))
        with unweighted, scored(user_id, question.text) as (_, rows, _, scores):
            nothing = np.zeros(rows.size, dtype=np.float32)
            found.append(np.stack([scores.signals.get(name, nothing) for name in NAMES]))
            numbers = {name: number for number, name in enumerate(question.evidence, 1)}
            told = (message_of(passages[each]) for each in rows.ids[: rows.size].tolist())
            evidence.append(np.array([numbers.get(name, 0) for name in told], dtype=np.int8))
            prior = rows.prior[: rows.size].copy()
    wanted = np.array([len(question.evidence) for question in questions])
    return Observed(np.stack(found), prior, np.stack(evidence), wanted)


def mean_recall(observed: Sequence[Observed], weights: Floats) -> float:
    """Recall@10 over all questions."""
    return float(np.concatenate([one.recalls(weights) for one in observed]).mean())


def fitted_weights(observed: Sequence[Observed]) -> dict[str, float]:
    """The weights that find most of the evidence among the first ten; the first one is the measure of the others.

    Signals that no question had, such as those of an encoder that is not in use, keep their weights.
    """
    heard = np.any([one.signals.any(axis=(0, 2)) for one in observed], axis=0)
    weights = np.where(heard, np.float32(START), np.array(list(WEIGHTS.values()), dtype=np.float32))
    weights[0] = 1.0
    best = mean_recall(observed, weights)
    for _ in range(ROUNDS):
        before = best
        for place in np.flatnonzero(heard)[1:].tolist():
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
        "--variant",
        choices=[PLAIN, *VARIANTS, "all"],
        default=PLAIN,
        help="break one habit of the data set, or each of them in turn",
    )
    _encoders.add_argument(parser)
    parser.add_argument(
        "--filled",
        type=float,
        default=100,
        metavar="PERCENT",
        help="so many of the passages have a vector of the encoder",
    )
    parser.add_argument(
        "--leave-one-out",
        action="store_true",
        help="also ask each conversation with weights that were fitted to the others",
    )


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation in one of its variants, taken in for a user."""

    variant: str
    conversation: Conversation
    user_id: UUID
    client: Client


def run(options: dict[str, Any]) -> Report:
    conversations = read_dataset(options["dataset"], options["limit"])
    if options["leave_one_out"] and (options["together"] or len(conversations) < 2):
        raise CommandError("--leave-one-out needs two conversations, each of a user of its own.")
    variants = [PLAIN, *VARIANTS] if options["variant"] == "all" else [options["variant"]]
    outcomes = {variant: Run() for variant in variants}
    with _encoders.encoder_for(options), scratch_database():
        talks = [
            talk
            for variant, outcome in outcomes.items()
            for talk in _taken_in(conversations, variant, outcome, together=options["together"])
        ]
        _encoders.side_vectors_make(options["filled"] / 100)
        for talk in talks:
            _ask_all(talk, outcomes[talk.variant])
        if not options["leave_one_out"]:
            return _report(outcomes, options)
        observed = [observe(talk.user_id, talk.conversation.questions) for talk in talks]
        weights: dict[str, dict[str, float]] = {}
        for name in dict.fromkeys(talk.conversation.name for talk in talks):
            told = [talk.conversation.name != name for talk in talks]
            weights[name] = fitted_weights(list(compress(observed, told)))
            with override_settings(IZZY_SEARCH_WEIGHTS=weights[name]):
                for talk in (talk for talk in talks if talk.conversation.name == name):
                    for question in talk.conversation.questions:
                        found, block = ask(talk.user_id, talk.client, question.text, Run())
                        outcomes[talk.variant].methods[REFITTED].add(found, question, block)
        report = _report(outcomes, options)
    _report_refitted(report, weights, observed)
    return report


def _taken_in(
    conversations: Sequence[Conversation], variant: str, outcome: Run, *, together: bool
) -> Iterator[Talk]:
    """Takes each conversation in, in a variant, each for a user of its own or all for one."""
    users = [make_user(f"{variant}{number}") for number in range(1 if together else len(conversations))]
    clients = [(user.pk, api_client(user)) for user in users]
    for conversation, (user_id, client) in zip(conversations, cycle(clients), strict=False):
        told = varied(conversation, variant)
        ingest(client, told, outcome)
        yield Talk(variant, told, user_id, client)


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
        "Refitted are the weights of the signals. Not refitted, since they are fixed round numbers: BM25's k1 and b, what "
        "neighbours count, the silence that ends a session, the priors of length and questions, strengths of dates, and packing."
    )


def _ask_all(talk: Talk, outcome: Run) -> None:
    conversation = talk.conversation
    messages = conversation.messages
    texts = [f"{message['speaker']}: {message['content']}" for message in messages]
    for question in conversation.questions:
        found, block = ask(talk.user_id, talk.client, question.text, outcome)
        for tally in (
            outcome.methods[OWN],
            outcome.categories[question.category],
            outcome.conversations[conversation.name],
        ):
            tally.add(found, question, block)
        for method, order in (("plain BM25", bm25_order), ("plain cosine", cosine_order)):
            best = outcome.timed(f"{method}, in process", partial(order, texts, question.text))
            names = [messages[row]["external_id"] for row in best[: DEPTHS[-1]]]
            outcome.methods[method].add(names, question)


def _report(outcomes: Mapping[str, Run], options: dict[str, Any]) -> Report:
    """The tables of the first variant, and where there are several, one of all of them."""
    outcome = next(iter(outcomes.values()))
    own = outcome.methods[OWN]
    report = Report(
        "retrieval",
        settings={
            "dataset": options["dataset"].name,
            "variant": options["variant"],
            "messages": outcome.messages,
            "questions": len(own.reciprocal),
            "embedder": settings.IZZY_EMBEDDER,
            "passages with its vectors, %": options["filled"],
            "users": "one for all conversations" if options["together"] else "one per conversation",
            "largest context block, tokens": max(each.most_tokens for each in outcomes.values()),
        },
    )
    for title, key, tallies in (
        ("Recall in %, all questions", "method", outcome.methods),
        ("Izzy by category", "category", outcome.categories),
        ("Izzy by conversation", "conversation", outcome.conversations),
    ):
        section = report.section(title, [key, "questions", *COLUMNS])
        for name, tally in tallies.items():
            section.add(name, len(tally.reciprocal), *tally.row())
    if len(outcomes) > 1:
        section = report.section("By variant", ["variant", "method", "messages", *COLUMNS])
        for variant, each in outcomes.items():
            for name, tally in each.methods.items():
                section.add(variant, name, each.messages, *tally.row())
    section = report.section("Milliseconds per query", ["path", "p50", "p95"])
    for name, times in sorted(outcome.timings.items()):
        section.add(name, *Timing.of(times))
    for variant, each in outcomes.items():
        least, recall = AIM if variant == PLAIN else VARIANT_AIM, each.methods[OWN].recall[10]
        report.aims[f"{variant}: recall@10 at least {least:.1%}"] = statistics.fmean(recall) >= least
    wanted = f"evidence@{BUDGET} at least {EVIDENCE_AIM:.0%}"
    report.aims[wanted] = statistics.fmean(own.evidence) >= EVIDENCE_AIM
    return report
