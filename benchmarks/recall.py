"""The keyword score by how many notes the user has, and walks over 100,000 links between notes.

Each figure beside a floor of the same run: one bare pass over the same rows, or one look-up of a note's links.
"""

import random
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from django.db import connection

from apps.core.db.writing import insert_all
from apps.memory.models import Memory, MemoryEdge
from apps.memory.notes.fields import folded
from apps.memory.notes.selectors import RelatedNote, links_of, related_notes
from apps.memory.recall.keywords import memory_recall, memory_relevant
from benchmarks._scratch import BATCH, Corpus, make_user, scratch_database
from benchmarks.report import Report, Section, measure

SIZES = (1_000, 10_000, 100_000)
EDGES = 100_000
NOTES_PER_EDGE = 5
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
    texts = [text for batch in Corpus().batches(number) for text in batch]
    values = [{"content": text, "tags": text.split()[:2]} for text in texts]
    made = [Memory(user=user, **each, **folded(each)) for each in values]
    for start in range(0, number, BATCH):
        insert_all(made[start : start + BATCH])
    return made


def _keywords(section: Section, size: int) -> None:
    user = make_user("alice")
    _notes(user, size)
    words = [question.split()[-3:] for question in Corpus(seed=2).questions(CALLS)]

    def bare_pass(_: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT SUM(LENGTH(content)) FROM memory_memory WHERE user_id = %s", [user.pk.hex]
            )
            cursor.fetchall()

    floor = measure(bare_pass, CALLS).p50
    steps: dict[str, Callable[[int], object]] = {
        "1": lambda n: memory_relevant(user.pk, words[n][:1]),
        "3": lambda n: memory_relevant(user.pk, words[n]),
        "3, recall_memory": lambda n: memory_recall(user.pk, words[n]),
    }
    for name, step in steps.items():
        score = measure(step, CALLS).p50
        section.add(size, name, score, floor, score / floor)


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

        def walk(number: int, depth: int = depth) -> list[RelatedNote]:
            return related_notes(user.pk, notes[number].pk, depth=depth, limit=50)

        section.add(depth, *measure(walk, CALLS), own, len(walk(0)))
