"""Milliseconds of `/search/` and of a page of `/memories/` over HTTP, and of fifty notes dumped by their shape alone.

1,000 made-up notes in a database of the benchmark's own. The floor over HTTP is a view that answers a fixed object, that
of the notes a function that builds each dict by hand.
"""

import json
import random
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_json

from apps.memory.api.shapes import MemoryOutput
from apps.memory.models import Memory
from apps.memory.notes.creation import memory_bulk_create
from apps.memory.notes.selectors import NoteFilter, memories_list
from benchmarks._network import connected, web_process
from benchmarks._scratch import Corpus, make_token, make_user, scratch_database
from benchmarks.report import Report, measure

NOTES = 1_000
PAGE = 50
ROUNDS = 200


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="requests of each kind")


def run(options: dict[str, Any]) -> Report:
    rounds = options["rounds"]
    report = Report("shapes", settings={"notes": NOTES, "page": PAGE, "rounds": rounds})
    table = report.section("milliseconds", ["what", "p50", "p95", "floor p50", "ratio"], digits=3)
    with scratch_database() as path:
        corpus, user = Corpus(), make_user("alice")
        memory_bulk_create(
            user_id=user.pk,
            drafts=[{"content": text, "tags": ["made up"]} for text in corpus.notes(NOTES)],
        )
        questions = random.Random(1).choices(corpus.questions(60), k=rounds)
        rows = list(memories_list(user.pk, NoteFilter())[:PAGE])
        by_hand = measure(lambda _: json.dumps([_by_hand(row) for row in rows]), rounds)
        dumped = measure(lambda _: to_json([MemoryOutput.model_validate(row) for row in rows]), rounds)
        table.add("fifty notes as JSON", *dumped, by_hand.p50, dumped.p50 / by_hand.p50)
        report.aims["notes dumped by their shape cost no more than by hand"] = dumped.p50 <= by_hand.p50
        with (
            web_process(path.parent, "benchmarks._hello:application", token=make_token(user)) as web,
            connected(web) as ask,
        ):
            for _ in range(2):  # the first round is not counted
                hello = measure(lambda n: ask("/api/v1/hello/", {"query": questions[n]}), rounds)
                found = measure(lambda n: ask("/api/v1/search/", {"query": questions[n]}), rounds)
                page = measure(lambda _: ask(f"/api/v1/memories/?page_size={PAGE}"), rounds)
        for name, timing in (("/search/ over HTTP", found), ("a page of /memories/ over HTTP", page)):
            table.add(name, *timing, hello.p50, timing.p50 / hello.p50)
    return report


def _by_hand(note: Memory) -> dict[str, Any]:
    """The fields of `MemoryOutput` without it."""
    return {
        "id": str(note.pk),
        "note_id": note.note_id,
        "content": note.content,
        "tier": note.tier,
        "kind": note.kind,
        "importance": note.importance,
        "priority": round(note.present, 6),
        "decay_rate": note.decay_rate,
        "faded": note.faded,
        "tags": note.tags,
        "category": note.category,
        "occasions": note.occasions,
        "occasions_by": note.occasions_by,
        "status": note.status,
        "valid_from": _time(note.valid_from),
        "valid_to": _time(note.valid_to),
        "superseded_by": note.superseded_by_id and str(note.superseded_by_id),
        "review_reason": note.review_reason,
        "proposed_action": note.proposed_action,
        "proposed_target": note.proposed_target_id and str(note.proposed_target_id),
        "origin": note.origin,
        "trust": note.trust,
        "source_conversation": note.source_conversation_id and str(note.source_conversation_id),
        "source_message": note.source_message_id and str(note.source_message_id),
        "created_at": _time(note.created_at),
        "updated_at": _time(note.updated_at),
        "last_accessed": _time(note.last_accessed),
        "access_count": note.access_count,
        "deleted_at": _time(note.deleted_at),
    }


def _time(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment else None
