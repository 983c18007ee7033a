"""Passages against the rows that they were made from: the apps that have something to be found say what search should hold."""

import json
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from django.db import transaction
from django.db.models import QuerySet

from apps.core.integrity import Check, Finding, owner_of, per_user, row_name
from apps.core.registries import Registry
from apps.search import features
from apps.search.documents import Document, Facet, Source
from apps.search.models import Passage
from apps.search.services import documents_index, documents_remove
from apps.search.text.analysis import chunked

AT_ONCE = 500
FIXED_AT_ONCE = 50
Held = tuple[str, bool, str, tuple[tuple[str, str], ...], datetime | None]
"""Of a passage: facet, whether it is a former text, the text, its labels, and until when it holds."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """The documents that search holds of one kind of rows.

    `rows(user_id)` are all of the user's. `documents(user_id, ids)` gives for those among `ids` that are there what search
    should hold of them: [] for nothing, None where that is about to change.
    """

    rows: Callable[[UUID], QuerySet[Any]]
    documents: Callable[[UUID, Sequence[UUID]], Mapping[UUID, Sequence[Document] | None]]


indexed: Registry[Indexed] = Registry()
"""The value of a `Source` -> what is indexed of it."""


def _find(user_id: UUID) -> Iterator[Finding]:
    for source, kind in indexed.items():
        # Of passages that have been looked at: the last eight bytes of their source's id, which are random.
        looked = array("Q")
        keys = kind.rows(user_id).order_by("pk").values_list("pk", flat=True)
        for ids in _batches(keys.iterator(AT_ONCE)):
            yield from _differences(user_id, Source(source), kind, ids)
            looked.extend(map(_short, ids))
        seen = np.sort(np.frombuffer(looked, dtype=np.uint64))
        passages = Passage.objects.filter(user_id=user_id, source=source).order_by()
        rest: set[UUID] = set()
        for key in passages.values_list("source_id", flat=True).iterator(chunk_size=2000):
            place = np.searchsorted(seen, np.uint64(_short(key)))
            if key not in rest and (place == len(seen) or seen[place] != _short(key)):
                rest.add(key)
        for ids in _batches(iter(rest)):
            yield from _differences(user_id, Source(source), kind, ids)


def _short(key: UUID) -> int:
    return key.int & 0xFFFF_FFFF_FFFF_FFFF


def _batches(ids: Iterator[UUID]) -> Iterator[list[UUID]]:
    batch: list[UUID] = []
    for key in ids:
        batch.append(key)
        if len(batch) == AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _differences(user_id: UUID, source: Source, kind: Indexed, ids: Sequence[UUID]) -> Iterator[Finding]:
    wanted, held, broken = kind.documents(user_id, ids), *_held(user_id, source, ids)
    for key in ids:
        documents = wanted.get(key, ())
        if documents is None:
            continue
        expected = Counter(each for document in documents for each in _expected(document))
        there = held.get(key, Counter())
        if not documents and there:
            gone = "it is to be found no more" if key in wanted else "it is gone"
            message, repair = f"Search still finds it, although {gone}.", "Takes it out of search."
        elif not there and expected:
            message, repair = "Search does not find it.", "Makes it searchable again."
        elif there != expected:
            message = "Search holds something else than what it says."
            repair = "Makes its passages anew."
        elif key in broken:
            message = "What its passages hold for ranking does not belong to it."
            repair = "Makes its passages anew."
        else:
            continue
        yield Finding(
            about=row_name(kind.rows(user_id).model, key),
            message=message,
            repair=repair,
            user_id=user_id,
            subject=(source, key),
        )


def _expected(document: Document) -> Iterator[Held]:
    if document.facet is Facet.OCCASIONS:
        chunks = [line.strip() for line in document.text.splitlines()]
    else:
        chunks = chunked(document.text.strip())
    for part, chunk in enumerate(chunks):
        if chunk:
            labels = ((label.kind, label.words) for label in (document.labels if part == 0 else ()))
            yield str(document.facet), document.past, chunk, tuple(labels), document.valid_to


def _held(
    user_id: UUID, source: Source, ids: Sequence[UUID]
) -> tuple[dict[UUID, Counter[Held]], set[UUID]]:
    """The documents in these rows' passages, and the rows with a passage whose packed features are another's."""
    rows = Passage.objects.filter(source_id__in=ids, source=source).order_by()
    columns = ("user_id", "source_id", "facet", "past", "text", "labels", "valid_to", "features")
    held: dict[UUID, Counter[Held]] = defaultdict(Counter)
    broken = set()
    code = features.SOURCE_CODES[source]
    for owner, key, facet, past, text, labels, valid_to, packed in rows.values_list(*columns):
        if owner != user_id:
            continue
        named = tuple((name, words) for name, words, _ in json.loads(labels)) if labels else ()
        held[key][facet, past, text, named, valid_to] += 1
        if not features.packed_for(bytes(packed), key, code):
            broken.add(key)
    return held, broken


def _fix(findings: Sequence[Finding]) -> None:
    user_id = owner_of(findings)
    by_source: dict[Source, list[UUID]] = defaultdict(list)
    for finding in findings:
        source, key = finding.subject
        by_source[source].append(key)
    for source, ids in by_source.items():
        for start in range(0, len(ids), FIXED_AT_ONCE):
            _made_anew(user_id, source, ids[start : start + FIXED_AT_ONCE])


@transaction.atomic
def _made_anew(user_id: UUID, source: Source, ids: Sequence[UUID]) -> None:
    """Inside one transaction, so that what is indexed is what the row says then."""
    wanted = indexed[source].documents(user_id, ids)
    gone = [key for key in ids if not wanted.get(key, ()) and wanted.get(key, ()) is not None]
    documents_remove(user_id=user_id, source=source, source_ids=gone)
    documents = [document for of_row in wanted.values() for document in of_row or ()]
    documents_index(user_id=user_id, documents=documents)


PASSAGES = Check(
    "Search holds what notes, files, messages and capabilities say", per_user(_find), _fix, order=60
)
