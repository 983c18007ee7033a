"""The keyword score by how many notes the user has, and walks over 100,000 links between notes.

Each figure beside a floor of the same run: one bare pass over the same rows, or one look-up of a note's links.
"""

import random
from argparse import ArgumentParser
from functools import partial
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from apps.core.db.writing import insert_all
from apps.memory.models import Memory, MemoryEdge
from apps.memory.models.base import folded
from apps.memory.recall.keywords import RelevantNote, memory_recall, memory_relevant
from apps.memory.selectors import RelatedNote, links_of, related_notes
from benchmarks._baselines import measure
from benchmarks._scratch import Corpus, make_user, scratch_database
from benchmarks.report import Report, Section

SIZES = (1_000, 10_000, 100_000)
EDGES = 100_000
NOTES_PER_EDGE = 5
BATCH = 1000
CALLS = 7
DEPTHS = (1, 2, 3, 5)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="NOTES")
    parser.add_argument("--edges", type=int, default=EDGES, metavar="LINKS")


def run(options: dict[str, Any]) -> Report:
    report = Report("recall", settings={"sizes": options["sizes"], "edges": options["edges"]})
    scores = report.section(
        "Keyword score (milliseconds)", ["notes", "keywords", "p50", "bare pass", "ratio"]
    )
    for size in options["sizes"]:
        with scratch_database():
            _keywords(scores, size)
    with scratch_database():
        columns = ["links away", "p50", "p95", "the note's own links", "notes seen"]
        _links(report.section(f"{options['edges']:,} links (milliseconds)", columns), options["edges"])
    return report


def _notes(user: Any, number: int) -> list[Memory]:
    """Notes with two tags each, without search passages: neither the score nor links look at those."""
    corpus, made = Corpus(), []
    for start in range(0, number, BATCH):
        texts = corpus.notes(min(BATCH, number - start))
        values = [{"content": text, "tags": text.split()[:2]} for text in texts]
        batch = [Memory(user=user, **each, **folded(each)) for each in values]
        with transaction.atomic():
            insert_all(batch)
        made += batch
    return made


def _keywords(section: Section, size: int) -> None:
    user = make_user("alice")
    _notes(user, size)
    words = [question.split()[-3:] for question in Corpus(seed=2).questions(CALLS)]
    floor = measure(lambda _: _bare_pass(user.pk), CALLS).p50
    for count in (1, 3):
        score = measure(partial(_score, user.pk, words, count), CALLS).p50
        section.add(size, f"{count}", score, floor, score / floor)
    recall = measure(lambda n: memory_recall(user.pk, words[n]), CALLS).p50
    section.add(size, "3, recall_memory", recall, floor, recall / floor)


def _bare_pass(user_id: UUID) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT SUM(LENGTH(content)) FROM memory_memory WHERE user_id = %s", [user_id.hex])
        cursor.fetchall()


def _score(user_id: UUID, words: list[list[str]], count: int, number: int) -> list[RelevantNote]:
    return memory_relevant(user_id, words[number][:count])


def _walk(user_id: UUID, notes: list[Memory], depth: int, number: int) -> list[RelatedNote]:
    return related_notes(user_id, notes[number].pk, depth=depth, limit=50)


def _links(section: Section, edges: int) -> None:
    user = make_user("alice")
    notes = _notes(user, max(edges // NOTES_PER_EDGE, 10))
    chosen = random.Random(1)
    pairs: set[tuple[int, int]] = set()
    while len(pairs) < edges:
        source, target = chosen.randrange(len(notes)), chosen.randrange(len(notes))
        if source != target:
            pairs.add((source, target))
    made = (
        MemoryEdge(user=user, source=notes[source], target=notes[target], weight=chosen.random())
        for source, target in sorted(pairs)
    )
    MemoryEdge.objects.bulk_create(made, batch_size=BATCH)
    own = measure(lambda n: list(links_of(user.pk, notes[n].pk)), CALLS).p50
    for depth in DEPTHS:
        walk = measure(partial(_walk, user.pk, notes, depth), CALLS)
        seen = len(_walk(user.pk, notes, depth, 0))
        section.add(depth, walk.p50, walk.p95, own, seen)
