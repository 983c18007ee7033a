"""Fits the weights of proactive recall to labelled people, one set of them left out at a time, and says how good they are.

What is said to the people's assistants and what is wanted then stands in `people/`; beside it stand the messages of
`apps/search/proactive/messages/` that concern nobody, each said to one of the people. First the conditional likelihood of what is
wanted is made as large as can be, where "nothing" is one of the choices; then, by what that says of them, the likelihood of each note being
wanted or not (logistic regression). Direct messages count more there: who names a thing is let down most where it is not known. How far a message concerns the
user is told by lessons that knew nothing of what this person said. (`minilm` itself has learnt from those that concern nobody, so that their share looks
better beside it than it is; from what the people said it has learnt nothing.) Notes have the occasions made by rule and those of a
model, in turn.

English has weights of its own; German, Spanish and French have others in common, fitted to people of
whom nothing is among the example messages, by which it is told how much a word says. With `--encoder` there is an encoder beside the
bundled vectors, and English alone is asked. The weights in use stand in `apps/search/proactive/odds.py`: how each came from what this says
is told in docs/search.md.
"""

import zlib
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from uuid import UUID

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from apps.memory.recall.injection import THRESHOLD
from apps.memory.similarity import NOTES
from apps.search.embedders.engines import embedder_for
from apps.search.filling import BATCH, side_fill
from apps.search.models import Passage
from apps.search.proactive.concern import (
    encoder_concern,
    encoder_examples,
    encoder_lesson,
    example_messages,
    lesson_of,
)
from apps.search.proactive.contextual_query import ContextualQuery, contextual_query
from apps.search.proactive.odds import (
    ADAPTED,
    AGAINST,
    BESIDE,
    COUNTED,
    ENCODER,
    EVIDENCE,
    SIMILAR,
    Observed,
    Weights,
    odds_of,
    scores_of,
)
from apps.search.proactive.recall import observe
from apps.search.spaces import encoder_name
from benchmarks import _encoders
from benchmarks._people import ASKED, KINDS, TUNED, UNFITTED, Person, Said, holder_of, people
from benchmarks._scratch import scratch_database
from benchmarks.calibrate import logistic
from benchmarks.report import Report

FOLDS = 5
RIDGE = 0.5
STEPS, PACE = 900, 0.05
WANTED_RIDGE = 1.0
IDLE_MASS = 2.0
"""An idle message of a person counts like so many others: there are fewer of them."""
NOBODY_MASS = 0.47
"""The messages that concern nobody count together like so much of the people's."""
OTHERS = ("de", "es", "fr")
MASS = {"follow-up": 2.0, "idle": 4.0}
ENCODED_MASS = MASS | {"direct": 5.0, "nobody": 2.0}
ALONE_MASS = MASS | {"direct": 2.0, "nobody": 1.0}
"""In the second step a note that such a message wants counts like so many others, and so does each beside one that wants none; beside
an encoder, and without one, where direct messages take more from the others."""
OTHERS_MASS = 0.6
"""Where people share a memory, each note of others beside what somebody said counts so much as not wanted: of fifty that came up, looked
at one by one, two in five would have suited, had they been theirs."""
NOBODYS = 1000
"""About so many of them are asked, in each language."""
THRESHOLDS = tuple(round(-3 + 0.1 * step, 1) for step in range(31))
AUDIBLE = (0.0, -0.25, -0.5, -0.75, -1.0, -1.5, -2.0)

Concern = Callable[[ContextualQuery], tuple[float, float]]
"""How far a message concerns its user: by its words, and by an encoder's vector (0 without one)."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A message of a person, and what there was to choose from: `wanted` and `fitting` mark the documents, and so do `others`: notes
    of other people of the set, who may have what suits the message as well."""

    person: Person
    said: Said
    seen: Observed
    wanted: NDArray[np.bool_]
    fitting: NDArray[np.bool_]
    others: NDArray[np.bool_]
    importance: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Memory:
    """A user, and by the ids and keys of the notes that they have, these keys and how important each is."""

    user_id: UUID
    keys: Mapping[UUID, str]
    importance: Mapping[str, int]


def add_arguments(parser: ArgumentParser) -> None:
    _encoders.add_argument(parser)


def run(options: dict[str, Any]) -> Report:
    with _encoders.encoder_for(options):
        report = Report("weights", settings={"embedder": settings.IZZY_EMBEDDER})
        groups = {("en",): ENCODER} if options["encoder"] else {("en",): SIMILAR, OTHERS: COUNTED}
        for languages, in_use in groups.items():
            _add_group(report, languages, in_use)
    return report


def _add_group(report: Report, languages: Sequence[str], in_use: Weights) -> None:
    """Add what is fitted to the people of some languages."""
    named = ", ".join(languages)
    choices = {
        (given, shared): _choices(given, shared, languages)
        for shared in (False, True)
        for given in (False, True)
    }
    alone = [*choices[False, False], *choices[True, False]]
    together = [*choices[False, True], *choices[True, True]]
    table = report.section(f"Weights: {named}", ["without", *EVIDENCE, *AGAINST])
    second = report.section(f"Second step: {named}", ["without", *EVIDENCE, *AGAINST, *BESIDE])
    fitted = {"nobody left out": _fitted(alone, together, in_use), "in use": in_use}
    for left in dict.fromkeys(_set_of(one) for one in alone):
        rest, beside = ([one for one in every if _set_of(one) != left] for every in (alone, together))
        fitted[left] = _fitted(rest, beside, in_use)
    for name, weights in fitted.items():
        table.add(name, *weights.evidence, *weights.against)
        second.add(name, *weights.wanted)
    for language in languages:
        for (given, shared), every in choices.items():
            those = [one for one in every if one.person.language == language]
            title = f"{language}, " + ("a model's occasions" if given else "occasions by rule")
            title += ", a set's people together" * shared
            without = [fitted[_set_of(one)] for one in those]
            _add_figures(report, f"{title}, fitted without the set", those, without)
            _add_figures(report, f"{title}, in use", those, [in_use for _ in those])


def _set_of(choice: Choice) -> str:
    return choice.person.key.split()[0]


def _choices(given: bool, shared: bool, languages: Sequence[str]) -> list[Choice]:
    """The choices of all people, by the occasions `given` by a model or those made by rule, from a memory of their own or one `shared`
    by those of their set and language: who has more notes is brought more by chance."""
    found: list[Choice | None] = []
    fitted = tuple(name for name in ASKED if name not in UNFITTED)
    sets = (*TUNED, *fitted) if "en" in languages else fitted
    everybody = [replace(one, key=f"{name} {one.key}") for name in sets for one in people(name)]
    told = {said.talk[-1].casefold() for person in everybody for said in person.messages}
    with scratch_database():
        known = [one for one in everybody if one.language in languages]
        memories = _memories(known, given, shared)
        if encoder_name():
            side_fill(encoder_name())
        for person, memory in zip(known, memories, strict=True):
            concern = _concern_without(said.talk[-1] for said in person.messages)
            found += [_choice(person, memory, said, concern) for said in person.messages]
        folds: dict[int, list[str]] = {}
        for text in example_messages()[0]:
            folds.setdefault(zlib.crc32(text.encode()) % FOLDS, []).append(text)
        idle = {text for text, own in zip(*example_messages(), strict=True) if not own}
        for fold in folds.values():
            concern = _concern_without(fold)
            rest = [text for text in fold if text in idle]
            for language in languages:
                own = set(example_messages(language)[0])
                places = [place for place, person in enumerate(known) if person.language == language]
                each = [text for text in rest if text in own and text.casefold() not in told]
                each = each[:: max(1, len(each) * FOLDS // NOBODYS)]
                for number, text in enumerate(each):
                    place = places[number % len(places)]
                    said = Said("nobody", (text,), frozenset(), frozenset())
                    found.append(_choice(known[place], memories[place], said, concern))
    return [one for one in found if one is not None]


def _memories(known: Sequence[Person], given: bool, shared: bool) -> list[_Memory]:
    """The memory of each person."""

    def sharing(person: Person) -> str:
        return f"{person.key.split()[0]} {person.language}" if shared else person.key

    found: dict[str, _Memory] = {}
    for name in dict.fromkeys(map(sharing, known)):
        some = [one for one in known if sharing(one) == name]
        notes = [replace(note, key=f"{one.key} {note.key}") for one in some for note in one.notes]
        holder = holder_of(replace(some[0], key=name, notes=tuple(notes)), "fit", given)
        importance = {note.key: note.importance for note in notes}
        found[name] = _Memory(
            holder.user_id, {note_id: key for key, note_id in holder.ids.items()}, importance
        )
    return [found[sharing(person)] for person in known]


def _concern_without(texts: Iterable[str]) -> Concern:
    """The lessons that some texts had no part in, be they example messages or not."""
    known = {text.casefold() for text in example_messages()[0]}
    return _concern_of_others(frozenset(text.casefold() for text in texts) & known)


@cache
def _concern_of_others(left: frozenset[str]) -> Concern:
    def kept(texts: Sequence[str], personal: Sequence[bool]) -> tuple[list[str], list[bool]]:
        rest = [place for place, text in enumerate(texts) if text.casefold() not in left]
        return [texts[place] for place in rest], [personal[place] for place in rest]

    lesson, beside = lesson_of(*kept(*example_messages(near=bool(encoder_name())))), None
    if encoder_name():
        examples, personal = kept(*encoder_examples(encoder_name()))
        beside = encoder_lesson(np.stack([_encoded()[text] for text in examples]), personal)

    def concern(query: ContextualQuery) -> tuple[float, float]:
        sounds = query.concern_by(lesson)
        if beside is None:
            return sounds, sounds
        vector = _encoded().get(query.newest)
        if vector is None:
            vector = embedder_for(encoder_name()).embed_messages([query.newest])[0]
        return sounds, encoder_concern(beside, vector)

    return concern


@cache
def _encoded() -> dict[str, NDArray[np.float32]]:
    """The encoder's vectors of the example messages; not as a request asks it, which would not wait."""
    texts, _ = encoder_examples(encoder_name())
    encoder = embedder_for(encoder_name())
    parts = [
        encoder.embed_messages(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)
    ]
    return dict(zip(texts, np.concatenate(parts), strict=True))


def _choice(person: Person, memory: _Memory, said: Said, concern: Concern) -> Choice | None:
    """None where nothing could be looked for."""
    seen = observe(memory.user_id, said.talk[-3:], NOTES)
    if seen is None:
        return None
    against = seen.against.copy()
    against[2:] = concern(contextual_query(said.talk[-3:], [person.language]))
    seen = replace(seen, against=against)
    rows = Passage.objects.filter(pk__in=seen.passages.tolist()).values_list("pk", "source_id")
    documents = dict(rows)
    keys = [memory.keys[documents[key]] for key in seen.passages.tolist()]
    wanted, fitting = ({f"{person.key} {key}" for key in of} for of in (said.wanted, said.fitting))
    own = [key.startswith(f"{person.key} ") for key in keys]
    return Choice(
        person,
        said,
        seen,
        np.array([key in wanted for key in keys]),
        np.array([key in fitting - wanted for key in keys]),
        ~np.array(own) & bool(wanted),
        np.array([memory.importance[key] for key in keys]),
    )


def _fitted(choices: Sequence[Choice], shared: Sequence[Choice], like: Weights) -> Weights:
    """The most likely weights of both steps, held back from extremes; those that are 0 in `like` stay so. Choices from a `shared`
    memory count in the second."""
    size = max(len(one.wanted) for one in choices)
    evidence = np.zeros((len(choices), size, len(EVIDENCE)))
    known, wanted = np.zeros((2, len(choices), size), dtype=bool)
    for row, one in enumerate(choices):
        number = len(one.wanted)
        evidence[row, :number] = one.seen.evidence
        known[row, :number] = ~one.fitting  # what only fits is neither right nor wrong
        wanted[row, :number] = one.wanted
    against = np.array([one.seen.against for one in choices], dtype=np.float64)
    nobody = np.array([one.said.kind == "nobody" for one in choices])
    mass = np.array([IDLE_MASS if one.said.kind == "idle" else 1.0 for one in choices])
    mass[nobody] = NOBODY_MASS * (~nobody).sum() / max(int(nobody.sum()), 1)
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
    which = replace(
        like, evidence=tuple(rounded[: len(EVIDENCE)]), against=tuple(rounded[len(EVIDENCE) :])
    )
    return replace(which, wanted=_wanted([*choices, *shared], which))


def _wanted(choices: Sequence[Choice], which: Weights) -> tuple[float, ...]:
    """The weights of the second step, of columns brought to one spread, given those of the first; 0 stays so."""
    masses_of = ENCODED_MASS if which.evidence[ADAPTED] else ALONE_MASS
    rows, labels, masses = [], [], []
    for one in choices:
        known = ~one.fitting
        rows.append(odds_of(replace(one.seen, weights=which))[known])
        labels.append(one.wanted[known])
        weight = masses_of.get(one.said.kind, 1.0)
        mass = np.where(labels[-1] == bool(one.said.wanted), weight, 1.0)
        masses.append(np.where(one.others[known], OTHERS_MASS, mass))
    odds, wanted, mass = np.vstack(rows), np.concatenate(labels), np.concatenate(masses)
    free = np.array(which.wanted) != 0
    always = len(EVIDENCE)
    middle, wide = odds.mean(axis=0), odds.std(axis=0)
    middle[always] = 0
    wide[~free | (wide == 0)] = np.inf  # what weighs nothing, or is the same everywhere
    columns = (odds - middle) / wide
    columns[:, always] = odds[:, always]
    found = np.array(logistic(columns, wanted, mass, WANTED_RIDGE))
    weights = found / wide
    weights[always] = found[always] + weights @ middle  # `odds` has -1 there
    return tuple(round(float(value), 2) for value in weights)


def _add_figures(
    report: Report, title: str, choices: Sequence[Choice], weights: Sequence[Weights]
) -> None:
    """For some thresholds, and beside an encoder some bars above which it speaks (`audible`), percent of what is wanted by kind, of
    idle messages that are disturbed, and wrong notes a message."""
    kinds = [kind for kind in KINDS if kind != "idle"]
    section = report.section(
        title,
        [
            "threshold",
            "audible",
            *(f"{kind} %" for kind in kinds),
            "idle %",
            "nobody's %",
            "wrong a message",
            "others' a message",
        ],
    )
    like = weights[0]
    bars = [(threshold, like.audible) for threshold in (*THRESHOLDS, like.threshold)]
    if like.audible:
        bars += [(like.threshold, audible) for audible in AUDIBLE]
    for threshold, audible in dict.fromkeys(bars):
        wanted, met = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0)
        quiet: dict[str, list[bool]] = {"idle": [], "nobody": []}
        wrong = others = asked = 0
        for one, by in zip(choices, weights, strict=True):
            tried = replace(by, threshold=threshold, audible=audible)
            scores = scores_of(replace(one.seen, weights=tried))
            shown = scores * one.importance / 3 > THRESHOLD
            out = shown & ~one.wanted & ~one.fitting & ~one.others
            if one.said.kind in quiet:
                quiet[one.said.kind].append(bool(out.any()))
            else:
                wanted[one.said.kind] += len(one.said.wanted)
                met[one.said.kind] += int((shown & one.wanted).sum())
            if one.said.kind != "nobody":
                asked += 1
                wrong += int(out.sum())
                others += int((shown & one.others).sum())
        section.add(
            threshold,
            audible,
            *(100 * met[kind] / wanted[kind] for kind in kinds),
            100 * float(np.mean(quiet["idle"])),
            100 * float(np.mean(quiet["nobody"])),
            wrong / asked,
            others / asked,
        )
