"""Plain search of an earlier checkout, asked question by question beside this one: both see the same minutes of the machine."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_SCRIPT = """
import json, sys
import django
django.setup()
from apps.memory.notes.creation import memory_bulk_create
from apps.search.index import cache
from apps.search.selectors import search
from benchmarks._scratch import Corpus, make_user, scratch_database
from benchmarks.report import timed
size, singles = int(sys.argv[1]), int(sys.argv[2])
with scratch_database():
    corpus, user = Corpus(), make_user("alice")
    asked = corpus.questions(singles)
    for batch in corpus.batches(size):
        memory_bulk_create(user_id=user.pk, drafts=[{"content": text} for text in batch])
    for question in asked:
        search(user.pk, question)
    print(json.dumps(cache.held_bytes()), flush=True)
    for line in sys.stdin:
        print(json.dumps(timed(lambda: search(user.pk, asked[int(line)]))[1]), flush=True)
"""


class Before:
    """`bytes` are those of its index in memory."""

    def __init__(self, answers: IO[str], asks: IO[str]) -> None:
        self._answers, self._asks = answers, asks
        self.bytes = int(json.loads(answers.readline()))

    def milliseconds(self, number: int) -> float:
        """Of one search for a question."""
        self._asks.write(f"{number}\n")
        self._asks.flush()
        return float(json.loads(self._answers.readline()))


@contextmanager
def before(checkout: Path, size: int, questions: int) -> Iterator[Before]:
    """A process of a checkout (with a `.venv` of its own) that has saved the benchmark's notes and answers its questions."""
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "izzysite.settings",
        "PYTHONPATH": str(checkout),
    }
    command = [str(checkout / ".venv/bin/python"), "-c", _SCRIPT, str(size), str(questions)]
    with subprocess.Popen(
        command,
        cwd=checkout,
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Before(process.stdout, process.stdin)
        finally:
            process.stdin.close()
            process.wait()
