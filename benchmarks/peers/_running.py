"""One run: the notes are handed to every peer and to Izzy, which are then asked question by question in turn."""

import json
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import numpy as np
from django.conf import settings
from django.core.management import CommandError
from django.utils import timezone
from numpy.typing import NDArray

from apps.core.db.writing import precompute
from apps.core.ids import uuid7
from apps.search.documents import Document, Source
from apps.search.embedders.engines import static_embedder
from apps.search.selectors import search
from apps.search.services import documents_index, documents_prepare
from benchmarks._scratch import Corpus, make_user, scratch_database
from benchmarks.peers._serving import TOP
from benchmarks.report import Report, timed

PEERS = {
    "mem0 with its own Qdrant": ("mem0", 60, 1),
    "Chroma": ("chroma", 500, 500),
    "LanceDB": ("lance", 500, 500),
    "sqlite-vec": ("sqlite_vec", 500, 500),
}
"""By name: the module, of how many notes adding is timed, and how many go in at a time. The others come in as fast as they can."""
QUESTIONS = 40
ROUNDS = 3
"""Of each question, of which the quickest counts."""
ADDED = 500
LEAST = {"mem0 with its own Qdrant": 50.0}
IZZY, SHARE = "Izzy", "Izzy, without embedding and analysis"


@dataclass
class Figures:
    """Milliseconds a question, seconds a note, and the share of the nearest notes found (None where more than nearness ranks)."""

    added: float
    times: list[float] = field(default_factory=list)
    recalls: list[float] = field(default_factory=list)


def run(sizes: Sequence[int], python: Path) -> Report:
    python = Path(settings.BASE_DIR) / python
    if not python.exists():
        raise CommandError(f"{python} is missing: benchmarks/peers/__init__.py says how it is made.")
    report = Report("peers", settings={"sizes": list(sizes), "embedder": "static", "dimension": 256})
    for size in sizes:
        figures, missing = _measure(size, python)
        _report(report, size, figures)
        report.notes += [f"{name} did not start: {why}" for name, why in missing.items()]
    return report


def _measure(size: int, python: Path) -> tuple[dict[str, Figures], dict[str, str]]:
    corpus, embedder = Corpus(), static_embedder()
    if embedder is None:
        raise CommandError("The bundled vectors are missing: there is nothing to compare.")
    texts, questions = corpus.notes(size + size // 10), corpus.questions(QUESTIONS)
    vectors, asked = embedder.embed_documents(texts), embedder.embed_queries(questions)
    ids = [str(uuid7()) for _ in texts]
    nearest = _nearest(vectors[:size], asked, ids)
    with ExitStack() as stack:
        stack.enter_context(scratch_database())
        izzy = Izzy(texts, size)
        figures = {IZZY: Figures(izzy.added), SHARE: Figures(izzy.share)}
        peers, missing = {}, {}
        for name, (module, added, batch) in PEERS.items():
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="izzy-peers-")))
            given = {"ids": ids, "texts": texts, "questions": questions, "own": size, "batch": batch}
            (folder / "notes.json").write_text(json.dumps(given | {"added": min(added, size)}))
            np.savez(folder / "vectors.npz", notes=vectors, questions=asked)
            try:
                peers[name] = stack.enter_context(_peer(python, module, folder))
            except PeerFailed as error:
                missing[name] = str(error)
            else:
                figures[name] = Figures(peers[name].added)
        for number, question in enumerate(questions):
            took = min(timed(partial(izzy.search, question))[1] for _ in range(ROUNDS))
            figures[IZZY].times.append(took)
            for name, peer in peers.items():
                rounds = [peer.ask(number) for _ in range(ROUNDS)]
                wanted = nearest[number].difference(ids[:ADDED])  # a peer may have named these anew
                figures[name].times.append(min(took for took, _ in rounds))
                found = wanted.intersection(rounds[0][1])
                figures[name].recalls.append(len(found) / max(len(wanted), 1))
    return figures, missing


def _nearest(vectors: NDArray[np.float32], asked: NDArray[np.float32], ids: list[str]) -> list[set[str]]:
    """The ids of each question's nearest notes."""
    return [{ids[place] for place in np.argsort(-(vectors @ one))[:TOP].tolist()} for one in asked]


class Izzy:
    """The first `own` notes are one user's, the others another's; `added` are seconds a note, `share` those of the writing."""

    def __init__(self, texts: list[str], own: int) -> None:
        self.user_id = make_user("alice").pk
        self.share = self._add(self.user_id, texts[: min(ADDED, own)], prepare=True)
        self.added = self._add(self.user_id, texts[: min(ADDED, own)])
        for start in range(ADDED, own, ADDED):
            self._add(self.user_id, texts[start : min(start + ADDED, own)])
        self._add(make_user("bob").pk, texts[own:])
        for _ in range(3):
            self.search("warm up")

    def _add(self, user_id: UUID, texts: list[str], *, prepare: bool = False) -> float:
        now = timezone.now()
        documents = [
            Document(source=Source.MEMORY, source_id=uuid7(), text=text, happened_at=now)
            for text in texts
        ]
        with precompute():
            if prepare:
                documents_prepare(user_id=user_id, texts=texts)
            began = time.perf_counter()
            documents_index(user_id=user_id, documents=documents, are_new=True)
            return (time.perf_counter() - began) / max(len(texts), 1)

    def search(self, question: str) -> None:
        search(self.user_id, question, top_k=TOP)


class PeerFailed(Exception):
    """The last line that it said."""


class Peer:
    """A peer's process that has the notes; adding took `added` seconds a note."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.added = float(self._read()["seconds"])

    def ask(self, number: int) -> tuple[float, list[str]]:
        """Milliseconds, and the ids it found."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        took, found = self._read()
        return float(took), found

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            assert self._process.stderr is not None
            said = self._process.stderr.read().strip().splitlines()
            raise PeerFailed(said[-1] if said else "it ended")
        return json.loads(line)


@contextmanager
def _peer(python: Path, module: str, folder: Path) -> Iterator[Peer]:
    command = [str(python), "-m", "benchmarks.peers._serving", f"benchmarks.peers.{module}"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*command, str(folder)],
        cwd=settings.BASE_DIR,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
    ) as process:
        assert process.stdin is not None
        try:
            yield Peer(process)
        finally:
            process.stdin.close()
            process.kill()


def _report(report: Report, size: int, figures: dict[str, Figures]) -> None:
    section = report.section(
        f"{size:,} notes of one user beside {size // 10:,} of another",
        ["what", "search p50, ms", "× Izzy", "notes added a second", "nearest ten found, %"],
    )
    ours = statistics.median(figures[IZZY].times)
    for name, each in figures.items():
        p50 = statistics.median(each.times) if each.times else None
        recall = 100 * statistics.mean(each.recalls) if each.recalls else None
        section.add(name, p50, p50 / ours if p50 else None, 1 / each.added, recall)
        if name in PEERS and p50 and size >= 10_000:
            least = LEAST.get(name, 1.0)
            aim = f"8. search at least {least:g} × as fast as {name} at {size:,} ({p50 / ours:.1f} ×)"
            report.aims[aim] = p50 >= least * ours
        elif name == "sqlite-vec" and p50:
            aim = f"8. search at most 1.3 × {name} at {size:,} ({ours / p50:.2f} ×)"
            report.aims[aim] = ours <= 1.3 * p50
    mem0 = figures.get("mem0 with its own Qdrant")
    if mem0 is not None:
        ratio = mem0.added / figures[IZZY].added
        report.aims[f"8. adding at least as fast as mem0 at {size:,} ({ratio:.0f} ×)"] = ratio >= 1
