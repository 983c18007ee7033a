"""Fits the weights of proactive recall to the people of both halves, one person left out at a time, and says how good they are.

What is said to the people's assistants and what is wanted then stands in `people/`; beside it stand the messages of
`apps/search/proactive/messages/en.json` that concern nobody, each said to one of the people. The conditional likelihood of what is
wanted is made as large as can be, where "nothing" is one of the choices. Notes have the occasions made by rule and those of a
model, in turn; with `--encoder` there is an encoder beside the bundled vectors. The weights in use stand in
`apps/search/proactive/odds.py`: those of the last rows, rounded, with the threshold that keeps idle messages quiet.
"""

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from apps.memory.recall.injection import THRESHOLD
from apps.memory.similarity import NOTES
from apps.search.embedders.engines import embedder_for
from apps.search.filling import BATCH, side_fill
from apps.search.models import Passage
from apps.search.proactive.contextual_query import (
    encoder_concern,
    encoder_lesson,
    example_messages,
    lesson_of,
)
from apps.search.proactive.odds import (
    AGAINST,
    ENCODER,
    EVIDENCE,
    SIMILAR,
    Observed,
    Weights,
    scores_of,
)
from apps.search.proactive.recall import observe
from apps.search.spaces import encoder_name
from benchmarks import _ollama
from benchmarks._people import HALVES, KINDS, Holder, Person, Said, holder_of, people
from benchmarks._scratch import scratch_database
from benchmarks.report import Report

FOLDS = 5
RIDGE = 0.5
STEPS, PACE = 900, 0.05
IDLE_MASS = 160
"""The messages that concern nobody count together like so many of the people's."""
THRESHOLDS = tuple(round(-2 + 0.2 * step, 1) for step in range(11))

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Choice:
    """A message of a person, and what there was to choose from: `wanted` and `fitting` mark the documents."""

    person: Person
    said: Said
    seen: Observed
    wanted: NDArray[np.bool_]
    fitting: NDArray[np.bool_]
    importance: NDArray[np.int64]


def add_arguments(parser: ArgumentParser) -> None:
    _ollama.add_argument(parser)


def run(options: dict[str, Any]) -> Report:
    with _ollama.encoder_for(options):
        report = Report("weights", settings={"embedder": settings.IZZY_EMBEDDER})
        in_use = ENCODER if options["encoder"] else SIMILAR
        choices = {given: _choices(given) for given in (False, True)}
    everything = [*choices[False], *choices[True]]
    table = report.section("Weights", ["without", *EVIDENCE, *AGAINST])
    fitted = {}
    for name in dict.fromkeys(choice.person.key for choice in everything):
        fitted[name] = _fitted([one for one in everything if one.person.key != name], in_use)
        table.add(name, *fitted[name].evidence, *fitted[name].against)
    whole = _fitted(everything, in_use)
    table.add("nobody left out", *whole.evidence, *whole.against)
    table.add("in use", *in_use.evidence, *in_use.against)
    for given, those in choices.items():
        title = "a model's occasions" if given else "occasions by rule"
        _add_figures(
            report,
            f"{title}, fitted without the person",
            those,
            [fitted[one.person.key] for one in those],
        )
        _add_figures(report, f"{title}, in use", those, [in_use for _ in those])
    return report


def _choices(given: bool) -> list[Choice]:
    """The choices of all people, by the occasions `given` by a model or those made by rule."""
    found = []
    with scratch_database():
        known = [one for half in HALVES for one in people(half) if one.language == "en"]
        holders = [holder_of(person, "fit", given) for person in known]
        if encoder_name():
            side_fill(encoder_name())
        for person, holder in zip(known, holders, strict=True):
            found += [_choice(person, holder, said) for said in person.messages]
        for number, (text, sounds) in enumerate(_idle_messages()):
            place = number % len(known)
            choice = _choice(
                known[place], holders[place], Said("nobody", (text,), frozenset(), frozenset())
            )
            if choice is not None:  # the lesson that it takes part in would know it
                against = choice.seen.against.copy()
                against[2:] = sounds
                found.append(replace(choice, seen=replace(choice.seen, against=against)))
    return [one for one in found if one is not None]


def _idle_messages() -> list[tuple[str, tuple[float, float]]]:
    """English messages that concern nobody, each with how it sounds by lessons that it had no part in."""
    texts, personal = example_messages()
    vectors: NDArray[np.float32] | None = None
    if encoder_name():  # not as a request asks it, which would not wait
        encoder = embedder_for(encoder_name())
        parts = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        vectors = np.concatenate([encoder.embed_queries(part) for part in parts])
    found = []
    for fold in range(FOLDS):
        kept = [place for place in range(len(texts)) if place % FOLDS != fold]
        lesson = lesson_of([texts[place] for place in kept], [personal[place] for place in kept])
        beside = (
            None
            if vectors is None
            else encoder_lesson(vectors[kept], [personal[place] for place in kept])
        )
        for place in range(fold, len(texts), FOLDS):
            if not personal[place] and texts[place].isascii():
                sounds = lesson.concern(texts[place])
                encoded = sounds if vectors is None else encoder_concern(beside, vectors[place]) or 0.0
                found.append((texts[place], (sounds, encoded)))
    return found


def _choice(person: Person, holder: Holder, said: Said) -> Choice | None:
    """None where nothing could be looked for."""
    seen = observe(holder.user_id, said.talk[-3:], NOTES)
    if seen is None:
        return None
    rows = Passage.objects.filter(pk__in=seen.passages.tolist()).values_list("pk", "source_id")
    documents = dict(rows)
    names = {note_id: key for key, note_id in holder.ids.items()}
    keys = [names[documents[key]] for key in seen.passages.tolist()]
    importance = {note.key: note.importance for note in person.notes}
    return Choice(
        person,
        said,
        seen,
        np.array([key in said.wanted for key in keys]),
        np.array([key in said.fitting - said.wanted for key in keys]),
        np.array([importance[key] for key in keys]),
    )


def _fitted(choices: Sequence[Choice], like: Weights) -> Weights:
    """The most likely weights, held back from extremes; those that are 0 in `like` stay so."""
    size = max(len(one.wanted) for one in choices)
    evidence = np.zeros((len(choices), size, len(EVIDENCE)))
    known, wanted = np.zeros((2, len(choices), size), dtype=bool)
    for row, one in enumerate(choices):
        number = len(one.wanted)
        evidence[row, :number] = one.seen.evidence
        known[row, :number] = ~one.fitting  # what only fits is neither right nor wrong
        wanted[row, :number] = one.wanted
    against = np.array([one.seen.against for one in choices], dtype=np.float64)
    idle = np.array([one.said.kind == "nobody" for one in choices])
    mass = np.where(idle, 2 * IDLE_MASS / max(int(idle.sum()), 1), 1.0)
    number = wanted.sum(axis=1, keepdims=True)
    target, nothing = wanted / np.maximum(number, 1), (number[:, 0] == 0).astype(np.float64)
    free = np.array([*like.evidence, *like.against]) != 0
    found = np.zeros(len(free))
    speed, spread = np.zeros((2, len(free)))
    for step in range(STEPS):  # Adam, slowing down at the end
        total = np.where(known, evidence @ found[: len(EVIDENCE)], -1e3)
        none = against @ found[len(EVIDENCE) :]
        top = np.maximum(total.max(axis=1), none)
        shares, left = np.exp(total - top[:, None]), np.exp(none - top)
        whole = shares.sum(axis=1) + left
        shares, left = shares / whole[:, None], left / whole
        slope = np.append(
            np.einsum("cdk,cd,c->k", evidence, shares - target, mass),
            against.T @ ((left - nothing) * mass),
        )
        slope = np.where(free, slope + RIDGE * found, 0) / mass.sum()
        speed, spread = 0.9 * speed + 0.1 * slope, 0.99 * spread + 0.01 * slope**2
        found -= PACE * min(1, 3 * (1 - step / STEPS)) * speed / (np.sqrt(spread) + 1e-7)
    rounded = [round(float(value), 2) for value in found]
    return Weights(tuple(rounded[: len(EVIDENCE)]), tuple(rounded[len(EVIDENCE) :]), like.threshold)


def _add_figures(
    report: Report, title: str, choices: Sequence[Choice], weights: Sequence[Weights]
) -> None:
    """For some thresholds, percent of what is wanted by kind, of idle messages that are disturbed, and wrong notes a message."""
    kinds = [kind for kind in KINDS if kind != "idle"]
    section = report.section(
        title, ["threshold", *(f"{kind} %" for kind in kinds), "idle %", "nobody's %", "wrong a message"]
    )
    for threshold in dict.fromkeys((*THRESHOLDS, weights[0].threshold)):
        wanted, met = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0)
        quiet: dict[str, list[bool]] = {"idle": [], "nobody": []}
        wrong = asked = 0
        for one, by in zip(choices, weights, strict=True):
            scores = scores_of(replace(one.seen, weights=replace(by, threshold=threshold)))
            shown = scores * one.importance / 3 > THRESHOLD
            out = shown & ~one.wanted & ~one.fitting
            if one.said.kind in quiet:
                quiet[one.said.kind].append(bool(out.any()))
            else:
                wanted[one.said.kind] += len(one.said.wanted)
                met[one.said.kind] += int((shown & one.wanted).sum())
            if one.said.kind != "nobody":
                asked += 1
                wrong += int(out.sum())
        section.add(
            threshold,
            *(100 * met[kind] / wanted[kind] for kind in kinds),
            100 * float(np.mean(quiet["idle"])),
            100 * float(np.mean(quiet["nobody"])),
            wrong / asked,
        )
