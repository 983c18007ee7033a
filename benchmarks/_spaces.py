"""The costs of an encoder beside the bundled vectors and an index of occasions: time of a search, memory of a note."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from uuid import UUID

import numpy as np
from django.conf import settings
from django.db import connection, transaction
from django.test import override_settings
from django.utils import timezone

from apps.memory.models import Memory
from apps.memory.recall.injection import surface
from apps.search.documents import Document, Facet, Source
from apps.search.embedders import engines
from apps.search.embedders.base import Matrix, unit_rows
from apps.search.embedders.engines import static_embedder
from apps.search.filling import side_fill
from apps.search.index import cache
from apps.search.index.occasions import nearest
from apps.search.models import Passage
from apps.search.selectors import search
from apps.search.services import documents_index
from apps.search.spaces import Use, side_space, side_vectors
from benchmarks._beside import checkout_at
from benchmarks._scratch import BATCH, Corpus, database_copy
from benchmarks.report import Report, Timing, timed

DIMENSION = 384
OCCASIONS = 4
"""Phrases a note."""
WORDS = 4
CLAUSES = 3
ROUNDS = 3


class MadeUpEncoder:
    """An encoder that costs nothing: the bundled vectors, turned, with some chance added that depends on the text alone."""

    query_prefix = document_prefix = ""
    noise, match = 0.1, 0.85
    dimension = DIMENSION

    def __init__(self, model: str) -> None:
        self.name = f"made-up:{model}"
        self._turn = np.random.default_rng(7).standard_normal((256, DIMENSION)) / 16

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        bundled = static_embedder()
        assert bundled is not None
        seeds = [np.random.default_rng(sum(map(ord, text))) for text in texts]
        chance = np.stack([seed.standard_normal(DIMENSION) for seed in seeds]) / DIMENSION**0.5
        return unit_rows(bundled.embed_documents(texts) @ self._turn + chance)

    embed_queries = embed_messages = embed_documents


@contextmanager
def encoder() -> Iterator[str]:
    """IZZY_EMBEDDER is the made-up one meanwhile; yields its name."""
    engines._FACTORIES["made-up"] = MadeUpEncoder
    name = f"made-up:{DIMENSION}"
    try:
        with override_settings(IZZY_EMBEDDER=name):
            yield name
    finally:
        del engines._FACTORIES["made-up"]
        engines._make.cache_clear()


Times = dict[str, Timing]
BEFORE, STATIC, ENCODER = "search, earlier checkout", "search", "search, with the encoder"
SURFACE, SURFACE_ENCODER = "surfacing", "surfacing, with the encoder and occasions"
NEAREST = f"nearest occasions of {CLAUSES} clauses"


@dataclass
class Costs:
    """Milliseconds of each step, and bytes of the indexes: of bundled vectors alone, with the encoder's, with occasions too."""

    times: Times
    bytes: tuple[int, int, int]


def measured(
    user_id: UUID, asked: list[str], corpus: Corpus, path: Path, *, size: int, earlier: Path | None
) -> Costs:
    """The costs of search and surfacing with an encoder and occasions in the database at `path`, in turn with a process that has
    bundled vectors alone, and with one of an earlier checkout."""
    cache.forget()
    for question in asked:
        search(user_id, question)
    bare_bytes = cache.held_bytes()
    copy = path.with_name("alone.sqlite3")
    database_copy(path, copy)
    with encoder() as name, ExitStack() as stack:
        _add_occasions(user_id, corpus)
        _fill(name)
        cache.forget()
        for question in asked:  # and what the encoder says of each is known from here on
            search(user_id, question)
        rows_bytes = cache.held_bytes()
        own = stack.enter_context(checkout_at(Path(settings.BASE_DIR), size, len(asked), database=copy))
        steps: dict[str, Callable[[int], float]] = {
            STATIC: partial(own.milliseconds, "search"),
            ENCODER: lambda number: timed(partial(search, user_id, asked[number]))[1],
            SURFACE: partial(own.milliseconds, "surface"),
            SURFACE_ENCODER: lambda number: timed(partial(surface, user_id, [asked[number]]))[1],
            NEAREST: lambda number: timed(partial(_nearest, user_id, asked[number:] + asked))[1],
        }
        if earlier is not None:
            before = stack.enter_context(checkout_at(earlier, size, len(asked)))
            steps = {BEFORE: partial(before.milliseconds, "search"), **steps}
        best: dict[str, list[float]] = {name: [] for name in steps}
        for number in range(len(asked)):
            rounds = [[step(number) for step in steps.values()] for _ in range(ROUNDS)]
            for step, times in zip(steps, zip(*rounds, strict=True), strict=True):
                best[step].append(min(times))
        p50s = {step: Timing.of(times) for step, times in best.items()}
        return Costs(p50s, (bare_bytes, rows_bytes, cache.held_bytes()))


def _nearest(user_id: UUID, clauses: list[str]) -> None:
    clauses = clauses[:CLAUSES]
    embedder = static_embedder()
    base = None if embedder is None else embedder.embed_queries(clauses)
    nearest(user_id, base=base, side=side_vectors(side_space(), clauses, Use.QUERY))


def _fill(name: str) -> None:
    """Does as `side_fill`, without the short transactions that let others write in between."""
    side_fill(name, limit=0)
    encoder, last = engines.embedder_for(name), 0
    while True:
        waiting = Passage.objects.filter(id__gt=last).order_by("id").values_list("id", "text")[:BATCH]
        rows = list(waiting)
        if not rows:
            return
        last = rows[-1][0]
        halves = encoder.embed_documents([text for _, text in rows]).astype("<f2")
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.executemany(
                "UPDATE search_passage SET side_vector = %s WHERE id = %s",
                [(half.tobytes(), key) for half, (key, _) in zip(halves, rows, strict=True)],
            )


def _add_occasions(user_id: UUID, corpus: Corpus) -> None:
    """Gives each note a fixed number of occasions in place of those that rules have made."""
    Passage.objects.filter(user_id=user_id, facet=Facet.OCCASIONS).delete()
    ids = list(Memory.objects.for_user(user_id).order_by("pk").values_list("pk", flat=True))
    now = timezone.now()
    for start in range(0, len(ids), BATCH):
        keys = ids[start : start + BATCH]
        words = iter(" ".join(corpus.notes(len(keys))).split())
        phrases = [[" ".join(islice(words, WORDS)) for _ in range(OCCASIONS)] for _ in keys]
        documents_index(
            user_id=user_id,
            documents=[
                Document(
                    source=Source.MEMORY,
                    source_id=key,
                    text="\n".join(lines),
                    happened_at=now,
                    facet=Facet.OCCASIONS,
                )
                for key, lines in zip(keys, phrases, strict=True)
            ],
            are_new=True,  # beside the notes' texts, which stay
        )


LIMITS = (
    (STATIC, BEFORE, 1.2),
    (ENCODER, STATIC, 2.2),
    (SURFACE, STATIC, 8.0),
    (SURFACE_ENCODER, ENCODER, 8.0),
)


def add_to(report: Report, costs: Costs, size: int, product: float) -> None:
    """The table of one size, and whether limits were kept; `product` are the milliseconds of the bare product."""
    section = report.section(
        f"{size:,} notes: an encoder of {DIMENSION} dimensions and {OCCASIONS} occasions a note beside bundled vectors "
        f"(the best of {ROUNDS} rounds in turn)",
        ["what", "p50", "p95", "× bare product"],
    )
    for name, timing in costs.times.items():
        section.add(name, *timing, timing.p50 / product)
    for name, other, limit in LIMITS:
        if other in costs.times:
            ratio = costs.times[name].p50 / costs.times[other].p50
            aim = f"{name} at most {limit} × {other} at {size:,} ({ratio:.2f} ×)"
            report.aims[aim] = ratio <= limit
    memory = report.section(f"{size:,} notes: index in memory", ["what", "bytes a note"], digits=0)
    for name, held in zip(
        ("bundled vectors", "with the encoder's", "with occasions"), costs.bytes, strict=True
    ):
        memory.add(name, held / size)
    ratio = costs.bytes[-1] / costs.bytes[0]
    report.aims[f"index memory at most 2 × at {size:,} ({ratio:.2f} ×)"] = ratio <= 2
