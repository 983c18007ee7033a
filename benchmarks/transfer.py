"""Seconds to take everything out and bring it in, beside `/memories/bulk/` and `/ingest/` of the same rows in the same run.

One user's notes and conversations are saved over REST, taken out, brought into an account that has nothing in a database of its
own, and taken out again: the two files must be the same.
"""

import hashlib
import tempfile
import tracemalloc
from argparse import ArgumentParser
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from django.test import Client, override_settings

from apps.accounts.models import User
from apps.memory.transfer.exporting import export_lines
from apps.memory.transfer.jobs import import_create, import_get
from apps.memory.transfer.running import imports_run
from benchmarks._scratch import Corpus, api_client, make_user, scratch_database
from benchmarks.report import Report, timed

NOTES, CONVERSATIONS, MESSAGES = 10_000, 1_000, 10
TIMES = 4.0
PEAK_MB = 100


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--notes", type=int, default=NOTES, metavar="N")
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS, metavar="N")
    parser.add_argument("--messages", type=int, default=MESSAGES, metavar="N", help="of each")
    parser.add_argument(
        "--memory",
        action="store_true",
        help="measure what bringing in holds too, which takes as long again",
    )


def run(options: dict[str, Any]) -> Report:
    notes, talks, each = options["notes"], options["conversations"], options["messages"]
    report = Report("transfer", settings={"notes": notes, "conversations": talks, "messages": each})
    section = report.section("Taking out and bringing in (seconds)", ["", "seconds", "times"])
    with tempfile.TemporaryDirectory() as folder, override_settings(IZZY_DATA_DIR=Path(folder)):
        first, second = Path(folder) / "first.jsonl", Path(folder) / "second.jsonl"
        with scratch_database():
            user = make_user("alice")
            client, corpus = api_client(user), Corpus()
            saved = timed(partial(_notes, client, corpus, notes))[1]
            ingested = timed(partial(_talks, client, corpus, talks, each))[1]
            whole = (saved + ingested) / 1000
            section.add("saving over REST: /memories/bulk/", saved / 1000, None)
            section.add("saving over REST: /ingest/", ingested / 1000, None)
            section.add("both", whole, 1.0)
            out = timed(partial(_out, user, first))[1] / 1000
            section.add("taking out", out, out / whole)
            peak = _peak(partial(_out, user, second))
        held = None
        if options["memory"]:
            with scratch_database():
                held = _peak(partial(_in, make_user("bob"), first))
        with scratch_database():
            other = make_user("bob")
            brought = timed(partial(_in, other, first))[1] / 1000
            section.add("bringing in", brought, brought / whole)
            _out(other, second)
            again = timed(partial(_in, other, first))[1] / 1000
            section.add("bringing in once more, nothing new", again, again / whole)
            last = timed(partial(_out, other, second))[1] / 1000
            section.add("taking out again", last, last / whole)
        same = _digest(first) == _digest(second)
        report.settings["megabytes of the file"] = round(first.stat().st_size / 1e6, 1)
    memory = report.section("Memory of Python objects at their most (MB)", ["", "MB"])
    memory.add("taking out", peak)
    if held is not None:
        memory.add("bringing in", held)
    report.aims["what is brought in and taken out again is the same file"] = same
    report.aims[f"taking out takes at most {TIMES} × saving the same rows"] = out <= TIMES * whole
    report.aims[f"bringing in takes at most {TIMES} × saving the same rows"] = brought <= TIMES * whole
    report.aims[f"taking out holds at most {PEAK_MB} MB"] = peak <= PEAK_MB
    return report


def _post(client: Client, name: str, body: dict[str, Any]) -> None:
    answer = client.post(f"/api/v1/{name}/", body, content_type="application/json")
    assert answer.status_code in {201, 202}, answer.content[:300]


def _notes(client: Client, corpus: Corpus, number: int) -> None:
    for texts in corpus.batches(number):
        drafts = [{"content": text, "tags": ["benchmark"]} for text in texts]
        _post(client, "memories/bulk", {"memories": drafts})


def _talks(client: Client, corpus: Corpus, number: int, each: int) -> None:
    names = count()
    for texts in corpus.batches(number * each):
        for start in range(0, len(texts), each):
            messages = [
                {"role": ("user", "assistant")[at % 2], "content": text, "external_id": f"m{at}"}
                for at, text in enumerate(texts[start : start + each])
            ]
            _post(client, "ingest", {"session": f"talk {next(names)}", "messages": messages})


def _out(user: User, path: Path) -> None:
    with path.open("wb") as file:
        file.writelines(export_lines(user.pk))


def _peak(call: Callable[[], object]) -> float:
    """Megabytes of Python objects that a call holds at its most; it takes several times as long meanwhile."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return peak


def _in(user: User, path: Path) -> None:
    with path.open("rb") as file:
        job = import_create(user_id=user.pk, chunks=iter(partial(file.read, 1_000_000), b""), own=True)
    imports_run()
    done = import_get(user.pk, job.pk)
    assert done.state == "done", done.error
    assert not any(row["wrong"] for row in done.report["kinds"]), done.report


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
