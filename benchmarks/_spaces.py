"""What an encoder beside the bundled vectors and an index of occasions cost: time of a search, memory of a note."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from uuid import UUID

import numpy as np
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
from apps.search.selectors import search
from apps.search.services import documents_index
from apps.search.spaces import base_documents, side_queries, side_space
from benchmarks._before import before
from benchmarks._scratch import BATCH, Corpus
from benchmarks.report import Report, Timing, measure, timed

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

    embed_queries = embed_documents


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


@dataclass
class Costs:
    """Milliseconds with bundled vectors alone, then with an encoder and occasions; bytes of the indexes in memory."""

    bare_bytes: int
    static: Timing
    before: Timing | None
    surface: Timing
    with_encoder: Timing
    nearest: Timing
    surface_with_encoder: Timing
    rows_bytes: int
    bytes: int


def measured(
    user_id: UUID, asked: list[str], corpus: Corpus, *, size: int, checkout: Path | None
) -> Costs:
    """What search and surfacing cost, of bundled vectors alone in turn with an earlier checkout."""
    cache.forget()
    for question in asked:
        search(user_id, question)
    bare = cache.held_bytes()
    static, earlier = _beside(user_id, asked, size, checkout)
    surfacing = measure(lambda number: surface(user_id, [asked[number]]), len(asked))
    with encoder() as name:
        _add_occasions(user_id, corpus)
        side_fill(name)
        cache.forget()
        for question in asked:  # and what the encoder says of each is known from here on
            search(user_id, question)
        rows_bytes = cache.held_bytes()
        beside = _times(user_id, asked)
        _nearest(user_id, asked[:CLAUSES])
        near = measure(lambda number: _nearest(user_id, asked[number:] + asked[:CLAUSES]), len(asked))
        for question in asked:
            surface(user_id, [question])
        both = measure(lambda number: surface(user_id, [asked[number]]), len(asked))
        return Costs(
            bare, static, earlier, surfacing, beside, near, both, rows_bytes, cache.held_bytes()
        )


def _beside(
    user_id: UUID, asked: list[str], size: int, checkout: Path | None
) -> tuple[Timing, Timing | None]:
    if checkout is None:
        return _times(user_id, asked), None
    own: list[float] = []
    earlier: list[float] = []
    with before(checkout, size, len(asked)) as process:
        for number in [*range(len(asked))] * ROUNDS:
            earlier.append(process.milliseconds(number))
            own.append(_time(user_id, asked[number]))
    return Timing.of(own), Timing.of(earlier)


def _times(user_id: UUID, asked: list[str]) -> Timing:
    return Timing.of([_time(user_id, question) for question in asked * ROUNDS])


def _time(user_id: UUID, question: str) -> float:
    return timed(partial(search, user_id, question))[1]


def _nearest(user_id: UUID, clauses: list[str]) -> None:
    clauses = clauses[:CLAUSES]
    nearest(user_id, base=base_documents(clauses), side=side_queries(side_space(), clauses), top_k=200)


def _add_occasions(user_id: UUID, corpus: Corpus) -> None:
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


def add_to(report: Report, costs: Costs, size: int, product: float) -> None:
    """The table of one size, and whether line by line the limits were kept; `product` is that of the bare vectors."""
    section = report.section(
        f"{size:,} notes, an encoder of {DIMENSION} dimensions and {OCCASIONS} occasions a note beside them",
        ["what", "p50", "p95", "of the bare product", "ratio", "to"],
    )
    alone, name = costs.static.p50, "search, bundled vectors alone"
    rows: list[tuple[str, Timing, float | None, str, float]] = [
        (name, costs.static, costs.before and costs.before.p50, "earlier checkout", 1.2),
        ("search, with the encoder", costs.with_encoder, alone, name, 2.2),
        ("surfacing, bundled vectors alone", costs.surface, alone, name, 8.0),
        (
            "surfacing, with encoder and occasions",
            costs.surface_with_encoder,
            costs.with_encoder.p50,
            "search, with the encoder",
            8.0,
        ),
    ]
    if costs.before is not None:
        section.add("search, earlier checkout", *costs.before, costs.before.p50 / product, None, "")
    for label, timing, floor, to, limit in rows:
        ratio = timing.p50 / floor if floor else None
        section.add(label, *timing, timing.p50 / product, ratio, to)
        if ratio is not None:
            report.aims[f"{label} at most {limit} × {to} at {size:,} ({ratio:.2f} ×)"] = ratio <= limit
    section.add(
        f"nearest occasions of {CLAUSES} clauses", *costs.nearest, costs.nearest.p50 / product, None, ""
    )
    memory = report.section(f"{size:,} notes: bytes of the index, a note", ["what", "bytes"], digits=0)
    memory.add("bundled vectors alone", costs.bare_bytes / size)
    memory.add("with the encoder's", costs.rows_bytes / size)
    memory.add("with occasions too", costs.bytes / size)
    ratio = costs.bytes / costs.bare_bytes
    report.aims[f"index memory at most 2 × at {size:,} ({ratio:.2f} ×)"] = ratio <= 2
