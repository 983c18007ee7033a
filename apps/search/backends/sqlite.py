"""SQLite: plain SQL, since model objects would triple the time, and FTS5 for full text.

The table of full text is contentless: the text stands in the passage, the table keeps the postings alone.

A condition on `+user_id` is one that no index answers: without statistics SQLite would go through all of the user's rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from itertools import chain
from typing import Any
from uuid import UUID

import numpy as np
from django.conf import settings
from django.db import connection
from django.utils import timezone

from apps.core.db.writing import insert_all
from apps.search import features
from apps.search.documents import Facet, Source
from apps.search.models import Passage

from .base import Batch, Head, Ids, OccasionRow, Row, Space, Stem

MERGE_PAGES = 300
OCCASIONS_AT_ONCE = 4096

_HEAD = (
    "SELECT o.number, o.change, o.tombstones_from, COALESCE(p.language, ''), COALESCE(p.time_zone, ''), "
    "b.id, b.name, b.dimension, b.noise, b.match, s.id, s.name, s.dimension, s.noise, s.match "
    "FROM search_indexowner o JOIN search_embeddingspace b ON b.role = 'base' "
    "LEFT JOIN search_embeddingspace s ON s.role = 'side' AND s.name = %s "
    "LEFT JOIN accounts_preferences p ON p.user_id = o.user_id WHERE o.user_id = %s"
)
_RAISE = "UPDATE search_indexowner SET change = change + 1 WHERE user_id = %s RETURNING number, change"
_STEMS = "replace(' ' || terms, ' ', %s) FROM search_passage WHERE terms <> ''"
_POST = f"INSERT INTO search_terms(rowid, terms) SELECT id, {_STEMS} AND user_id = %s AND change = %s"
_UNPOST = f"INSERT INTO search_terms(search_terms, rowid, terms) SELECT 'delete', id, {_STEMS}"
_TOMBSTONE = (
    "INSERT INTO search_tombstone(user_id, change, passage_id, created_at) "
    "SELECT user_id, %s, id, %s FROM search_passage WHERE "
)
_PASSAGES = "SELECT id, features, vector, {} FROM search_passage WHERE user_id = %s AND facet = '{}' "
_OCCASIONS = "SELECT id, source_id, text, vector, side_vector, user_id FROM search_passage WHERE "
_MATCH = "SELECT rowid FROM search_terms WHERE search_terms MATCH %s"
_ROW = (
    "SELECT id, source, source_id, external_id, text, conversation_id, happened_at, speaker, labels, past "
    "FROM search_passage WHERE "
)
_MERGE = "INSERT INTO search_terms(search_terms, rank) VALUES ('merge', %s)"


class SQLite:
    """The storage in SQLite's file."""

    def head(self, user_id: UUID) -> Head | None:
        rows = _run(_HEAD, settings.IZZY_EMBEDDER, user_id.hex)
        if not rows:
            return None
        owner, change, tombstones_from, language, time_zone = rows[0][:5]
        base, side = rows[0][5:10], rows[0][10:]
        beside = None if side[0] is None else Space(*side)
        return Head(user_id, owner, change, tombstones_from, language, time_zone, Space(*base), beside)

    def read_all(self, head: Head, *, past: bool = False) -> Batch:
        sql = _PASSAGES.format(_side(head), Facet.TEXT) + ("" if past else "AND NOT past ")
        with connection.cursor() as cursor:
            cursor.execute(f"{sql}ORDER BY change, id", (head.user_id.hex,))
            return _batch(cursor, head)

    def read_changed(self, head: Head, after: int) -> Batch:
        sql = _PASSAGES.format(f"{_side(head)}, terms", Facet.TEXT)
        rows = _run(f"{sql}AND change > %s AND NOT past ORDER BY change, id", head.user_id.hex, after)
        return _batch((row[:4] for row in rows), head, [row[4] for row in rows])

    def read_occasions(self, head: Head, after: int = -1) -> Iterator[Batch]:
        sql = _PASSAGES.format(_side(head), Facet.OCCASIONS)
        with connection.cursor() as cursor:
            cursor.execute(
                f"{sql}AND change > %s AND NOT past ORDER BY change, id", (head.user_id.hex, after)
            )
            while rows := cursor.fetchmany(OCCASIONS_AT_ONCE):
                yield _batch(rows, head)

    def occasions_fetch(self, user_id: UUID, ids: Sequence[int]) -> list[OccasionRow]:
        if not ids:
            return []
        sql = f"{_OCCASIONS}id IN ({', '.join(['%s'] * len(ids))}) AND facet = 'occasions'"
        owner = user_id.hex
        return [OccasionRow(*row[:-1]) for row in _run(sql, *ids) if row[-1] == owner]

    def read_removed(self, head: Head, after: int) -> Ids:
        sql = "SELECT passage_id FROM search_tombstone WHERE user_id = %s AND change > %s"
        return np.fromiter(chain.from_iterable(_run(sql, head.user_id.hex, after)), dtype=np.int64)

    def rows_insert(self, user_id: UUID, passages: Sequence[Passage]) -> None:
        owner, change = _run(_RAISE, user_id.hex)[0]
        for passage in passages:
            passage.change = change
        insert_all(passages)
        _run(_POST, f" {owner}x", user_id.hex, change)

    def rows_delete(self, user_id: UUID, ids: Sequence[int]) -> None:
        owner, change = _run(_RAISE, user_id.hex)[0]
        among, keys = f"id IN ({', '.join(['%s'] * len(ids))}) AND +user_id = %s", (*ids, user_id.hex)
        _run(f"{_UNPOST} AND {among}", f" {owner}x", *keys)
        _run(
            f"{_TOMBSTONE}{among}",
            change,
            connection.ops.adapt_datetimefield_value(timezone.now()),
            *keys,
        )
        _run(f"DELETE FROM search_passage WHERE {among}", *keys)  # noqa: S608

    def postings(self, owner: int, stems: Sequence[Stem]) -> list[Ids]:
        return [
            np.fromiter(chain.from_iterable(_run(_MATCH, _term(owner, stem))), dtype=np.int64)
            for stem in stems
        ]

    def postings_matching(self, owner: int, words: Sequence[Sequence[Stem]], *, limit: int) -> Ids:
        match = " AND ".join(f"({' OR '.join(_term(owner, stem) for stem in word)})" for word in words)
        rows = _run(f"{_MATCH} ORDER BY rowid DESC LIMIT %s", match, limit)
        return np.fromiter(chain.from_iterable(rows), dtype=np.int64)

    def rows_fetch(self, user_id: UUID, ids: Sequence[int]) -> dict[int, Row]:
        found: dict[int, Row] = {}
        sql = f"{_ROW}id IN ({', '.join(['%s'] * len(ids))}) AND +user_id = %s"
        for key, source, name, external, text, talk, at, *rest in _run(sql, *ids, user_id.hex):
            conversation, moment = UUID(talk) if talk else None, at.replace(tzinfo=UTC)
            found[key] = Row(
                key, Source(source), UUID(name), external, text, conversation, moment, *rest
            )
        return found

    def segments_merge(self) -> None:
        """Bring all postings into one segment.

        In steps of MERGE_PAGES pages, each a short transaction of its own, so that nobody waits to write: what 'optimize'
        does in one. About 0.2 s for 200,000 passages. The table must not be written in an open transaction.
        """
        with connection.cursor() as cursor:
            bare = cursor.connection
            pages = -MERGE_PAGES  # a negative number begins a merge of everything
            while True:
                before = bare.total_changes
                cursor.execute(_MERGE, (pages,))
                if bare.total_changes - before < 2:
                    return
                pages = MERGE_PAGES


def _run(sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _term(owner: int, stem: Stem) -> str:
    return f'"{owner}x{stem.text}"' + ("*" if stem.prefix else "")


def _side(head: Head) -> str:
    """The column of side vectors, of which there are none without an encoder."""
    return "side_vector" if head.side is not None else "NULL"


def _batch(rows: Iterable[tuple[Any, ...]], head: Head, terms: list[str] | None = None) -> Batch:
    missing = bytes(head.base.dimension * 2)
    side_dimension = head.side.dimension if head.side is not None else 0
    ids: list[int] = []
    gaps: list[int] = []
    side_places: list[int] = []
    packed, vectors, sides = bytearray(), bytearray(), bytearray()
    for passage_id, facts, vector, side in rows:  # a loop of few steps: it runs once per passage
        if side is not None and len(side) == side_dimension * 2:
            side_places.append(len(ids))
            sides += side
        ids.append(passage_id)
        packed += facts
        if vector is None:
            gaps.append(len(ids) - 1)
            vector = missing
        vectors += vector
    embedded = np.ones(len(ids), dtype=bool)
    embedded[gaps] = False
    return Batch(
        ids=np.array(ids, dtype=np.int64),
        features=np.frombuffer(packed, dtype=features.DTYPE),
        vectors=np.frombuffer(vectors, dtype="<f2").reshape(len(ids), head.base.dimension),
        embedded=embedded,
        side_places=np.array(side_places, dtype=np.int64),
        sides=np.frombuffer(sides, dtype="<f2").reshape(len(side_places), side_dimension),
        terms=terms,
    )
