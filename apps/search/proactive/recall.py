"""The documents that a person would want in mind before answering a message, unasked; none rather than noise.

A ranking always has a best; whether the best is any good is another question. So each document is weighed against nothing at
all: the log-odds of what speaks for it, against those of a message that nothing known matters to, and against the best there is.

For a document speak: how far its cosine with the message, or with one clause of it, stands out of what chance would give
(standard deviations above the best of as many bells, sqrt(2 ln n) for n documents; of few, the calibration of the space says what
chance is), in the bundled vectors and in the encoder's, where the `adapter` turns the message towards what matters to it; how much,
or what share, of what the message tells it says in the same words or, where there is a table of words, in similar ones; and
both again for the occasions on which it matters. For nothing speak: that the message does not sound as if its answer depended on
the user (`concern`), and that it stands for itself although a talk went before. What each weighs stands in `odds.py`.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from uuid import UUID

import numpy as np
from django.utils import timezone
from numpy.typing import NDArray

from apps.core.db.writing import once
from apps.core.metrics.base import histogram
from apps.core.traces import traced
from apps.search.backends import Head, backend
from apps.search.causes import explained
from apps.search.documents import Causes, Hit, Scope
from apps.search.embedders.base import Matrix, QueryWeights
from apps.search.embedders.engines import static_embedder
from apps.search.embedders.static import can_read
from apps.search.features import best_places, rows_among, uuid_hash
from apps.search.index.cache import index_open
from apps.search.index.occasions import Nearest, Nearness, nearest
from apps.search.index.rows import UserRows
from apps.search.proactive.adapter import Adapter
from apps.search.proactive.concern import encoder_concern, whole_lesson
from apps.search.proactive.contextual_query import ContextualQuery, contextual_query, word_usage
from apps.search.proactive.encoder_lesson import side_lesson
from apps.search.proactive.odds import (
    ADAPTED,
    COUNTED,
    ENCODED_OCCASION,
    ENCODER,
    EVIDENCE,
    MANY,
    MEANING,
    MENTIONED,
    OCCASION,
    OCCASION_WORDS,
    SIMILAR,
    STATIC,
    WORDS,
    Observed,
    scores_of,
)
from apps.search.proactive.word_table import WordTable, word_table
from apps.search.ranking.relevance import Found, Scale, hits_for
from apps.search.spaces import Use, can_ask, side_vectors
from apps.search.text.analysis import split_words, stems

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]
Hashes = NDArray[np.uint64]

RIVALS = 20
"""Number of the best documents that are looked at; what is far behind them is noise."""
NEAREST = 200  # occasions that are measured
PRIOR = 20
"""The calibration of a space counts like so many documents."""
SPREAD_SHARE = 0.1
"""The standard deviation of chance cosines, as a share of the way from noise to match."""
FARTHEST = 3.0
"""A cosine so many standard deviations above noise is no chance and counts as if it were no higher: where ten notes are
about one matter, each of them still stands out."""
MARGIN = 8
"""Chance is allowed so many documents more than there are: of two notes the better is no good for being better."""
LEAST, MOST, MOST_OCCASION = -2.5, 2.5, 3.0
"""Standing out less or more than this tells no more."""
STANDING = (MEANING, OCCASION, ENCODED_OCCASION, ADAPTED)
"""The evidence that begins at LEAST; the other begins at nothing."""
ALL_WORDS, SUBSTANTIAL = 0.8, 0.7
"""A document that has so much of what the message tells, where that is enough to tell something, is about it whatever its
vector says."""

MOST_MENTIONED = 2.0
"""More words that tell something, of those a document mentions, tell no more."""

SECONDS = histogram("izzy_recall_seconds", "Time to find what comes up for a message unasked.")


@traced("recall", SECONDS)
def recall(
    user_id: UUID,
    talk: Sequence[str],
    *,
    top_k: int,
    scope: Scope,
    least: float = 0.0,
    explain: bool = True,
) -> list[Hit]:
    """The documents that matter to the newest message of a talk, at most `top_k`, with a score of at least `least`.

    `talk` is oldest first; the last three messages count, the older two as far as the newest leans on them. The
    `score` of the hits, 0..1, is comparable between messages: 0.45 separates what should be brought up from noise.
    `parts` are the log-odds that speak for a hit, from where nothing stands out. What the scope excludes is not found, but nothing
    worse comes up in its stead.
    Hits have a `reason` unless nobody is to `explain` them.
    """
    seen = observe(user_id, talk, scope)
    if seen is None:
        return []
    scores = scores_of(seen)
    speaking = seen.evidence.copy()
    speaking[:, STANDING] -= LEAST
    parts = speaking * np.asarray(seen.weights.wanted[: len(EVIDENCE)], dtype=np.float32)
    order = [
        place
        for place in np.argsort(-scores, kind="stable").tolist()
        if seen.free[place] and scores[place] >= least
    ]
    if not order:  # as after most messages
        return []
    found: dict[int, tuple[Found, Causes]] = {}
    for place in order[:top_k]:
        passage, spoken = int(seen.passages[place]), parts[place]
        named = {
            name: round(max(float(part), 0.0), 4) for name, part in zip(EVIDENCE, spoken, strict=True)
        }
        occasion = seen.occasions[place] if _by_occasion(spoken) else ""
        found[passage] = Found(passage, round(float(scores[place]), 4), named), Causes(occasion=occasion)
    hits = hits_for(user_id, [one for one, _ in found.values()])
    known = [replace(hit, causes=found[hit.passage_id][1]) for hit in hits]
    return explained(talk[-1], known) if explain else known


def observe(user_id: UUID, talk: Sequence[str], scope: Scope) -> Observed | None:
    """The evidence for the documents within a scope; None where there is nothing to look for or in."""
    head = backend.head(user_id)
    question = once(_question, head, tuple(talk)) if head is not None else None
    if head is None or question is None:
        return None
    everything = replace(scope, exclude_ids=())
    base, side, table = question.base, question.side, question.table
    occasions = nearest(user_id, base=base, side=side, top_k=NEAREST, scope=everything, head=head)
    with index_open(user_id, head=head) as opened:
        if opened is None:
            return None
        rows = opened[1]
        among = rows.allowed(everything, now=timezone.now())
        within = np.flatnonzero(among)
        if not len(within):
            return None
        documents = rows.features["document"][within]
        evidence = np.zeros((len(within), len(EVIDENCE)), dtype=np.float32)
        _add_likeness(evidence, rows, question, among)
        _add_words(evidence, rows, question, within)
        phrases = _add_occasions(evidence, documents, occasions, question)
        encoded = side is not None and rows.side is not None
        counted = any(map(word_usage, question.languages))
        alone = SIMILAR if table is not None else COUNTED if counted else STATIC
        weights = ENCODER if encoded else alone
        total = evidence @ np.asarray(weights.evidence, dtype=np.float32)
        best = best_places(total, documents, RIVALS)
        found, passages = documents[best].tolist(), rows.ids[within[best]]
    evidence = evidence[best]
    if table is not None:
        own = [phrases.get(one, []) for one in found]
        _add_similar(evidence, user_id, passages, own, question.query, table)
    excluded = {uuid_hash(one.bytes) for one in scope.exclude_ids}
    return Observed(
        evidence,
        question.against,
        passages,
        [document not in excluded for document in found],
        tuple(next(iter(phrases.get(document, [])), "") for document in found),
        weights,
        len(np.unique(documents[: 10 * MANY])),  # more say no more
    )


@dataclass(frozen=True, slots=True)
class _Question:
    """A message as it is looked for: the whole and its clauses in both spaces, a row each; None where a space cannot tell. In the
    encoder's, one that goes on with a talk is looked for in its context, too.

    `adapter` turns rows of `side` towards the notes that matter: an encoder is not asked before it has been taught. `against` is what
    speaks for nothing at all, (AGAINST,). `table` is the one that has the message's words, where there is one; beside an encoder
    no process needs its 6 MB.
    """

    head: Head
    languages: Sequence[str]
    query: ContextualQuery
    base: Matrix | None
    side: Matrix | None
    adapter: Adapter | None
    against: Floats
    table: WordTable | None


def _question(head: Head, talk: Sequence[str]) -> _Question | None:
    if not talk or not talk[-1].strip():
        return None
    with index_open(head.user_id, head=head) as opened:
        if opened is None or not opened[1].living:
            return None
        languages, embedded = opened[1].languages_of(talk[-1]), opened[1].side is not None
    query = contextual_query(talk, languages)
    if not query.words:
        return None
    # Not while the index is locked: an encoder may take long, and a table is read when it is first needed.
    queries, base, side, adapter = query.queries, None, None, None
    embedder = static_embedder()
    if embedder is not None and can_read(query.words):
        base = np.stack(
            [embedder.embed_query(text, QueryWeights(words, 1.0)) for text, words in queries]
        )
    sounds = None
    lesson = side_lesson(head.side) if head.side is not None and embedded else None
    if head.side is not None and lesson is not None and can_ask(head.side, query.newest, languages):
        # What seems to be a new subject is read in its context, too: an encoder may know better.
        texts = [] if query.lean else [text for text, _ in queries]
        texts += [query.whole] if query.whole else []
        # The newest message last: where it leans on the talk it is not among them by itself.
        vectors = side_vectors(head.side, [*texts, query.newest], Use.MESSAGE)
        if vectors is not None:
            side, adapter = vectors[:-1], lesson.adapter
            sounds = encoder_concern(lesson.concern, vectors[-1])
    worded = query.concern_by(whole_lesson(near=side is not None))
    against = [1.0, query.lean, worded, worded if sounds is None else sounds]
    sounding = np.array(against, dtype=np.float32)
    tables = [word_table(language) for language in languages] if side is None else []
    table = next((one for one in tables if one is not None and one.knows(query.content)), None)
    return _Question(head, languages, query, base, side, adapter, sounding, table)


def _add_likeness(evidence: Floats, rows: UserRows, question: _Question, among: Mask) -> None:
    """Fill in how far each row `among` them stands out as like the message, or one of its clauses, in both spaces."""
    head = question.head
    embedded = rows.embedded[: rows.size][among]
    few = among if question.side is None else None  # what the side space predicts needs them all
    cosines = [rows.cosines(query, few) for query in question.base] if question.base is not None else []
    near = [_of_rows(cosine, cosine[embedded], head.base) for cosine in (one[among] for one in cosines)]
    evidence[:, MEANING] = np.clip(np.max(near, axis=0), LEAST, MOST) if near else LEAST
    evidence[:, ADAPTED] = LEAST
    if question.side is None or question.adapter is None:
        return
    for number, query in enumerate(question.adapter.adapted(question.side)):
        predicted = cosines[number if number < len(cosines) else 0] if cosines else None
        beside = rows.side_cosines(query, predicted, among)
        if beside is not None:
            standing = _of_rows(beside[among], beside[among], question.adapter)
            evidence[:, ADAPTED] = np.maximum(evidence[:, ADAPTED], np.minimum(standing, MOST))


def _of_rows(cosine: Floats, chance: Floats, scale: Scale) -> Floats:
    """How far cosines stand out of those in `chance`."""
    farthest = scale.noise + FARTHEST * SPREAD_SHARE * (scale.match - scale.noise)
    sample = np.minimum(chance.astype(np.float64), farthest)
    mean, variance = (float(sample.mean()), float(sample.var())) if len(sample) else (0.0, 0.0)
    return _standing_out(cosine, scale, len(sample), mean, variance)


def _standing_out(
    cosine: Floats, scale: Scale, number: int, mean: float | Floats, variance: float | Floats
) -> Floats:
    """How far cosines are above the best that chance would give, in standard deviations.

    `number` cosines of that mean and variance say what chance is, together with the calibration of the space.
    """
    spread = SPREAD_SHARE * (scale.match - scale.noise)
    middle = (PRIOR * scale.noise + number * mean) / (PRIOR + number)
    wide = (PRIOR * spread**2 + number * (variance + (mean - middle) ** 2)) / (PRIOR + number)
    expected = math.sqrt(2 * math.log(number + MARGIN))
    return np.asarray((cosine - middle) / np.maximum(np.sqrt(wide), 1e-6) - expected, dtype=np.float32)


def _add_words(evidence: Floats, rows: UserRows, question: _Question, within: Rows) -> None:
    """Fill in how much of what the message tells each row `within` says in the same words, and the share of it, 0..1."""
    content = question.query.content
    substance = sum(content.values())
    shared = np.zeros(rows.size, dtype=np.float32)
    forms = {
        word: {stem for language in question.languages for stem in stems([word], language)}
        for word, says in content.items()
        if says
    }
    posted = rows.posted(chain.from_iterable(forms.values()))
    for word, own in forms.items():
        places = [posted[form] for form in own]
        said = places[0] if len(places) == 1 else np.unique(np.concatenate(places))
        shared[said] += np.float32(content[word])
    shared = shared[within]
    if substance >= SUBSTANTIAL:
        evidence[shared >= ALL_WORDS * substance, MEANING] = MOST
    evidence[:, WORDS] = shared / max(substance, 1.0)
    evidence[:, MENTIONED] = np.minimum(shared, MOST_MENTIONED)
    if question.base is None and question.side is None:
        # All there is to go by: every third word in common is an even bet. A word there may be no more than a piece of one.
        evidence[:, MENTIONED] = MOST_MENTIONED * evidence[:, WORDS]
        evidence[:, MEANING] = LEAST + (MOST - LEAST) * np.sqrt(evidence[:, WORDS])


def _add_similar(
    evidence: Floats,
    user_id: UUID,
    passages: Rows,
    phrases: Sequence[Sequence[str]],
    query: ContextualQuery,
    table: WordTable,
) -> None:
    """Fill in the share of what the message tells that the best documents, and the best of their occasions, say in similar words.

    Of these few alone: their texts are read for it, labels included.
    """
    known = backend.rows_fetch(user_id, passages.tolist())
    texts = []
    for passage in passages.tolist():
        row = known.get(passage)
        labels = json.loads(row.labels) if row is not None and row.labels else []
        texts.append(" ".join([row.text, *(words for _, words, _ in labels)]) if row is not None else "")
    every = list(dict.fromkeys(chain(texts, *phrases)))
    shares = table.shares(query.content, every)
    share_of = dict(zip(every, shares.tolist(), strict=True))
    evidence[:, WORDS] = np.maximum(evidence[:, WORDS], [share_of[text] for text in texts])
    evidence[:, OCCASION_WORDS] = [
        max((share_of[phrase] for phrase in own), default=0.0) for own in phrases
    ]


def _add_occasions(
    evidence: Floats, documents: Hashes, found: Nearest, question: _Question
) -> dict[int, list[str]]:
    """Fill in what occasions say for their documents, given that of each row; returns those of each, the nearest first."""
    evidence[:, OCCASION] = evidence[:, ENCODED_OCCASION] = LEAST
    if not found.phrases:
        return {}
    near = _phrases_standing(found.base, question.head.base, found)
    far = _phrases_standing(found.side, question.head.side, found)
    known, which = np.unique(
        np.array([phrase.document for phrase in found.phrases], dtype=np.uint64), return_inverse=True
    )
    spoken = np.full((len(known), len(EVIDENCE)), LEAST, dtype=np.float32)
    np.maximum.at(spoken[:, OCCASION], which, near)
    np.maximum.at(spoken[:, ENCODED_OCCASION], which, far)
    texts: dict[int, list[str]] = {}
    for place in np.argsort(-np.maximum(near, far), kind="stable").tolist():
        phrase = found.phrases[place]
        texts.setdefault(phrase.document, []).append(phrase.text)
    shared = _words_of_occasions(texts, question)
    spoken[:, OCCASION_WORDS] = [shared.get(document, 0.0) for document in known.tolist()]
    rows, places = rows_among(documents, known)
    for kind in (OCCASION, ENCODED_OCCASION, OCCASION_WORDS):
        evidence[rows, kind] = spoken[places, kind]
    return texts


def _words_of_occasions(texts: Mapping[int, Sequence[str]], question: _Question) -> dict[int, float]:
    """The share that each document's occasions have of the message's words; a word of many documents' occasions tells less."""
    languages = question.languages
    # Many have the same: those of their kind.
    words = {text: split_words(text) for text in set().union(*texts.values())}
    everything = list(set().union(*words.values()))
    words_of: dict[str, set[str]] = {}  # by stem; all at once: by phrase it takes several times as long
    for language in languages:
        for word, stem in zip(everything, stems(everything, language), strict=True):
            words_of.setdefault(stem, set()).add(word)
    shared: dict[int, float] = {}
    for word, says in question.query.content.items():
        forms = {stem for language in languages for stem in stems([word], language)}
        alike = set().union(*(words_of.get(form, ()) for form in forms))
        if not alike:
            continue
        said = {text for text, each in words.items() if not alike.isdisjoint(each)}
        those = [document for document, each in texts.items() if not said.isdisjoint(each)]
        for document in those:
            shared[document] = shared.get(document, 0.0) + says / math.sqrt(len(those))
    return shared


def _phrases_standing(near: Nearness | None, scale: Scale | None, found: Nearest) -> Floats:
    """How far each found phrase stands out of what chance would give for as many as there are, in one space."""
    if near is None or scale is None:
        return np.full(len(found.phrases), LEAST, dtype=np.float32)
    mean, variance = near.mean[:, None], near.deviation[:, None] ** 2
    standing = _standing_out(near.cosines, scale, found.number, mean, variance).max(axis=0)
    return np.asarray(np.clip(standing, LEAST, MOST_OCCASION))


def _by_occasion(parts: Floats) -> bool:
    """Whether a document was brought by an occasion more than by what it says."""
    of_occasion = max(parts[OCCASION], parts[ENCODED_OCCASION]) + parts[OCCASION_WORDS]
    said = max(parts[MEANING], parts[ADAPTED]) + parts[WORDS] + parts[MENTIONED]
    return bool(of_occasion > said)
