"""Chat's decay step, search and recall of a user with many notes: alone, and beside a million notes of others.

Two databases of the benchmark's own, measured by turns in one run; the aim is a ratio of at most 1.3 between them.
"""

import shutil
import time
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError
from django.db import connection, transaction

from apps.memory.notes.changes import cycle_advance
from apps.memory.notes.creation import memory_bulk_create
from apps.memory.recall.angles import rule_angles
from apps.memory.recall.injection import surface
from apps.memory.recall.keywords import memory_recall, memory_relevant
from apps.memory.tools.deep import angle_search, gathered
from apps.search.index import cache
from apps.search.selectors import search
from benchmarks._scratch import BATCH, Corpus, database_at, make_user, scratch_database
from benchmarks.report import Report, measure

OWN = 10_000
OTHERS = 100_000
SHARES = 10
"""Pieces in which the user's notes are written between those of others."""
ROUNDS = 4
CALLS = 25
TEMPLATE = 10_000
"""Notes of one of the others; the rest are copies of these under other owners."""
LIMIT = 1.3


@dataclass
class World:
    """One database with the user in it. `times` holds the median of each round, in milliseconds."""

    path: Path
    user_id: UUID
    times: dict[str, list[float]] = field(default_factory=dict)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--own", type=int, default=OWN, metavar="NOTES", help="notes of the user")
    parser.add_argument(
        "--others", type=int, default=OTHERS, metavar="NOTES", help="notes of others beside"
    )


def run(options: dict[str, Any]) -> Report:
    if connection.vendor != "sqlite":
        raise CommandError("This benchmark copies a database as a file: run it without DATABASE_URL.")
    own, others = options["own"], options["others"]
    report = Report("decay", settings={"own": own, "others": others, "embedder": "static"})
    with scratch_database() as path:
        empty = path.with_name("empty.sqlite3")
        _checkpoint()
        shutil.copy(path, empty)
        began = time.perf_counter()
        beside = World(path, _fill(own, others))
        report.settings["seconds to build"] = round(time.perf_counter() - began)
        _checkpoint()
        report.settings["megabytes"] = path.stat().st_size // 1_000_000
        with database_at(empty):
            alone = World(empty, _fill(own, 0))
        questions = Corpus(seed=2).questions(CALLS)
        for _ in range(ROUNDS):
            for world in (alone, beside):
                with database_at(world.path):
                    _measure(world, questions)
    section = report.section(
        f"{own:,} notes of the user (milliseconds, the quietest of {ROUNDS} rounds' medians)",
        ["what", "alone", f"beside {others:,}", "ratio"],
    )
    for name, times in alone.times.items():
        first, second = min(times), min(beside.times[name])
        section.add(name, first, second, second / first)
        report.aims[f"{name}: at most {LIMIT} × ({second / first:.2f} ×)"] = second <= LIMIT * first
    return report


def _fill(own: int, others: int) -> UUID:
    """The user's notes, saved as the API's bulk path does, between the notes of others. The user's id."""
    corpus = Corpus()
    user, template, texts = make_user("alice"), make_user("template"), corpus.notes(own)
    copied = min(TEMPLATE, others)
    _save(template.pk, Corpus(seed=3).notes(copied))
    for share in range(SHARES):
        _save(user.pk, texts[share * own // SHARES : (share + 1) * own // SHARES])
        while copied < others * (share + 1) // SHARES:
            number = min(TEMPLATE, others - copied)
            _copy(template.pk, make_user(f"other{copied}").pk, number)
            copied += number
    cache.forget()
    return user.pk


def _save(user_id: UUID, texts: list[str]) -> None:
    for start in range(0, len(texts), BATCH):
        drafts: list[dict[str, object]] = [
            {"content": text, "tags": text.split()[:2]} for text in texts[start : start + BATCH]
        ]
        memory_bulk_create(user_id=user_id, drafts=drafts)


@transaction.atomic
def _copy(template: UUID, user_id: UUID, number: int) -> None:
    """The template's newest notes once more under another owner: rows, passages with their vectors, postings."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO search_indexowner(user_id, change, tombstones_from) VALUES (%s, 1, 0)",
            [user_id.hex],
        )
        cursor.execute("SELECT number FROM search_indexowner WHERE user_id = %s", [user_id.hex])
        owner = int(cursor.fetchone()[0])
        key = "printf('%%08x', %(owner)s) || substr({}, 9)"
        changed = {
            "memory_memory": {"id": key.format("id")},
            "search_passage": {"id": "NULL", "change": "1", "source_id": key.format("source_id")},
        }
        for table, values in changed.items():
            names = [
                column.name for column in connection.introspection.get_table_description(cursor, table)
            ]
            values |= {"user_id": "%(user)s"}
            cursor.execute(
                f"INSERT INTO {table}({', '.join(names)}) SELECT {', '.join(values.get(name, name) for name in names)} "
                f"FROM {table} WHERE user_id = %(template)s LIMIT %(number)s",
                {"user": user_id.hex, "owner": owner, "number": number, "template": template.hex},
            )
        cursor.execute(
            "INSERT INTO search_terms(rowid, terms) "
            "SELECT id, replace(' ' || terms, ' ', %s) FROM search_passage WHERE user_id = %s",
            [f" {owner}x", user_id.hex],
        )


def _checkpoint() -> None:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _measure(world: World, questions: list[str]) -> None:
    user_id = world.user_id
    words = [question.split()[-3:] for question in questions]
    steps: dict[str, Callable[[int], object]] = {
        "decay step of a chat turn": lambda _: cycle_advance(user_id=user_id),
        "search": lambda n: search(user_id, questions[n]),
        "notes surfaced for a chat turn": lambda n: surface(user_id, [questions[n]]),
        "keyword score, 3 keywords": lambda n: memory_relevant(user_id, words[n]),
        "recall_memory, 3 keywords": lambda n: memory_recall(user_id, words[n]),
        "deep memory without a model, one search after the other": lambda n: gathered(
            user_id, [angle_search(user_id, angle) for angle in rule_angles(user_id, questions[n])]
        ),
    }
    search(user_id, "warm the index")
    for name, step in steps.items():
        calls = CALLS if not name.startswith("deep") else 5
        step(0)
        world.times.setdefault(name, []).append(measure(step, calls).p50)

    def search_cold(number: int) -> None:
        cache.forget()
        search(user_id, questions[number])

    loads = measure(search_cold, 3).p50
    world.times.setdefault("search by a process that has not loaded the user yet", []).append(loads)
