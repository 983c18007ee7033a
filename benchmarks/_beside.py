"""Search of a checkout in a process of its own, asked question by question beside this process: all see the same minutes of
the machine, so that their ratio means something while others use it too."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.core.management import CommandError

_SCRIPT = """
import json, sys
from contextlib import ExitStack
from pathlib import Path
import django
django.setup()
from django.utils import timezone
from apps.accounts.models import User
from apps.core.ids import uuid7
from apps.memory.recall.injection import surface
from apps.search.documents import Document, Source
from apps.search.selectors import search
from apps.search.services import documents_index
from benchmarks._scratch import Corpus, database_at, make_user, scratch_database
from benchmarks.report import timed
import time
size, singles, database = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
corpus = Corpus()
asked = corpus.questions(singles)
with ExitStack() as stack:
    if database:
        stack.enter_context(database_at(Path(database)))
        user = User.objects.get(username="alice")
    else:
        stack.enter_context(scratch_database())
        user = make_user("alice")
        for batch in corpus.batches(size):
            documents = [
                Document(source=Source.MEMORY, source_id=uuid7(), text=text, happened_at=timezone.now())
                for text in batch
            ]
            documents_index(user_id=user.pk, documents=documents, are_new=True)
    for question in asked:
        search(user.pk, question)
    print("ready", flush=True)
    calls = {"search": lambda text: search(user.pk, text), "surface": lambda text: surface(user.pk, [text])}
    for line in sys.stdin:
        name, number = line.split()
        before = time.process_time()
        wall = timed(lambda: calls[name](asked[int(number)]))[1]
        print(json.dumps([wall, (time.process_time() - before) * 1000]), flush=True)
"""


class Checkout:
    """A process that holds the benchmark's notes."""

    def __init__(self, answers: IO[str], asks: IO[str]) -> None:
        self._answers, self._asks = answers, asks
        if not answers.readline():
            raise CommandError("The checkout's process has ended: see above.")

    def milliseconds(self, name: str, number: int) -> float:
        """Of one `search` or `surface` for a question."""
        return self.costs(name, number)[0]

    def costs(self, name: str, number: int) -> tuple[float, float]:
        """The same, and of the CPU."""
        self._asks.write(f"{name} {number}\n")
        self._asks.flush()
        wall, cpu = json.loads(self._answers.readline())
        return float(wall), float(cpu)


@contextmanager
def checkout_at(
    folder: Path,
    size: int,
    questions: int,
    *,
    database: Path | None = None,
    server: str | None = None,
) -> Iterator[Checkout]:
    """A checkout (with a `.venv` of its own) that searches by bundled vectors alone, in a database that fits it; without one
    its search has the texts, and no notes to surface. `server` replaces DATABASE_URL; with "" it is SQLite."""
    own = {"DJANGO_SETTINGS_MODULE": "izzysite.settings", "PYTHONPATH": str(folder)}
    if server is not None:
        own["DATABASE_URL"] = server
    with subprocess.Popen(
        [
            str(folder / ".venv/bin/python"),
            "-c",
            _SCRIPT,
            str(size),
            str(questions),
            str(database or ""),
        ],
        cwd=folder,
        env=os.environ | own | {"IZZY_EMBEDDER": "static"},
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Checkout(process.stdout, process.stdin)
        finally:
            process.stdin.close()
            process.wait()
