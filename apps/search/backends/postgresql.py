"""PostgreSQL: vectors as bytes, and full text as `tsvector` in a table of its own, whose rows no update of a passage writes anew.

Statements are bound by the server, which gives values in binary and keeps the plans of those that are prepared where the
connection allows it (`prepare_threshold`). Many rows come as a few long values: `string_agg` takes a fifth of the time of rows.

A condition `user_id IS NOT DISTINCT FROM` is one that no index answers: whose rows they are is looked at once their ids have
found them, however few rows the statistics take a user for.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC
from typing import Any, cast
from uuid import UUID

import numpy as np
import psycopg
from django.conf import settings
from django.db import OperationalError, connection
from django.utils import timezone

from apps.core.db.writing import LOCK_SECONDS
from apps.search import features
from apps.search.documents import Facet, Source
from apps.search.models import Passage

from .base import HEAD, Batch, Head, Ids, OccasionRow, Row, Stem, head_of

MERGE_LOCK_SECONDS = 2
"""How long transactions of before are waited for where the index is written anew; then a sweep tries again."""
GROUP_BITS = 16
"""Rows are read in groups whose ids have the same higher bits: a value is at most 1 GB long."""

_RAISED = "raised AS (UPDATE search_indexowner SET change = change + 1 WHERE user_id = %s RETURNING number, change)"
# A cast to a type of some length would cut what is longer, where the column refuses it.
_COLUMNS = {
    field.column: str(field.db_type(connection)).partition("(")[0]
    for field in cast("list[Any]", Passage._meta.concrete_fields)
    if field.column not in {"id", "user_id", "change"}
}
_INSERT = (
    f"WITH {_RAISED}, written AS ("
    f"INSERT INTO search_passage (user_id, change, {', '.join(_COLUMNS)}) "
    "SELECT %s, raised.change, given.* FROM raised, "
    f"unnest({', '.join(f'%s::{kind}[]' for kind in _COLUMNS.values())}) given RETURNING id, terms), "
    "posted AS (INSERT INTO search_terms (passage_id, terms) SELECT id, array_to_tsvector("
    "string_to_array(owner || replace(terms, ' ', ' ' || owner), ' ')) "
    "FROM written, (SELECT number || 'x' AS owner FROM raised) named WHERE terms <> '') "
    "SELECT change FROM raised"
)
_AMONG = "id = ANY(%s::bigint[]) AND user_id IS NOT DISTINCT FROM %s"
_DELETE = (
    f"WITH {_RAISED}, gone AS (DELETE FROM search_passage WHERE {_AMONG} RETURNING id), "
    "unposted AS (DELETE FROM search_terms WHERE passage_id IN (SELECT id FROM gone)) "
    "INSERT INTO search_tombstone (user_id, change, passage_id, created_at) "
    "SELECT %s, raised.change, gone.id, %s FROM raised, gone"
)
_GROUPS = (
    "SELECT string_agg(int8send(id) || features, ''), string_agg(vector, ''), "
    "string_agg(int8send(id), '') FILTER (WHERE vector IS NULL), {side}, {terms} "
    "FROM search_passage WHERE user_id = %s AND facet = '{facet}' AND change > %s {past} "
    f"GROUP BY id >> {GROUP_BITS}"
)
_SIDE = (
    "string_agg(side_vector, '') FILTER (WHERE length(side_vector) = {0}), "
    "string_agg(int8send(id), '') FILTER (WHERE length(side_vector) = {0})"
)
_OCCASIONS = (
    "SELECT id, source_id, text, vector, side_vector FROM search_passage "
    f"WHERE {_AMONG} AND facet = 'occasions'"
)
_ROWS = (
    "SELECT id, source, source_id, external_id, text, conversation_id, happened_at, speaker, labels, past "
    f"FROM search_passage WHERE {_AMONG}"
)
# Asked as a join, the planner does not look into its statistics for each term, which takes longer than the answer.
_POSTINGS = (
    "SELECT place - 1, string_agg(int8send(passage_id), '') FROM unnest(%s::text[]) WITH ORDINALITY asked (terms, place), "
    "LATERAL (SELECT passage_id FROM search_terms WHERE search_terms.terms @@ asked.terms::tsquery) found GROUP BY place"
)
_MATCHING = (
    "SELECT passage_id FROM (SELECT %s::text AS terms) asked, "
    "LATERAL (SELECT passage_id FROM search_terms WHERE search_terms.terms @@ asked.terms::tsquery OFFSET 0) found "
    "ORDER BY passage_id DESC LIMIT %s"
)
_UNFINISHED_DROP = "DROP INDEX CONCURRENTLY IF EXISTS search_terms_postings_ccnew"


class PostgreSQL:
    """The storage on a PostgreSQL server."""

    def head(self, user_id: UUID) -> Head | None:
        return head_of(user_id, _run(HEAD, settings.IZZY_EMBEDDER, user_id))

    def read_all(self, head: Head, *, past: bool = False) -> Batch:
        return _batch(_groups(head, Facet.TEXT, -1, past=past), head)

    def read_changed(self, head: Head, after: int) -> Batch:
        return _batch(_groups(head, Facet.TEXT, after), head, with_terms=True)

    def read_occasions(self, head: Head, after: int = -1) -> Iterator[Batch]:
        for group in _groups(head, Facet.OCCASIONS, after):
            yield _batch([group], head)

    def occasions_fetch(self, user_id: UUID, ids: Sequence[int]) -> list[OccasionRow]:
        return [OccasionRow(*row) for row in _run(_OCCASIONS, list(ids), user_id)] if ids else []

    def read_removed(self, head: Head, after: int) -> Ids:
        sql = "SELECT string_agg(int8send(passage_id), '') FROM search_tombstone WHERE user_id = %s AND change > %s"
        return _ids(_run(sql, head.user_id, after)[0][0])

    def rows_fetch(self, user_id: UUID, ids: Sequence[int]) -> dict[int, Row]:
        return {
            key: Row(key, Source(source), name, external, text, talk, at.astimezone(UTC), *rest)
            for key, source, name, external, text, talk, at, *rest in _run(_ROWS, list(ids), user_id)
        }

    def rows_insert(self, user_id: UUID, passages: Sequence[Passage]) -> None:
        columns = ([getattr(passage, name) for passage in passages] for name in _COLUMNS)
        ((change,),) = _run(_INSERT, user_id, user_id, *columns)
        for passage in passages:
            passage.change = change
            passage._state.adding, passage._state.db = False, connection.alias

    def rows_delete(self, user_id: UUID, ids: Sequence[int]) -> None:
        _run(_DELETE, user_id, list(ids), user_id, user_id, timezone.now())

    def postings(self, owner: int, stems: Sequence[Stem]) -> list[Ids]:
        asked = [_term(owner, stem) for stem in stems]
        found = dict(_run(_POSTINGS, asked)) if asked else {}
        return [_ids(found.get(place)) for place in range(len(asked))]

    def postings_matching(self, owner: int, words: Sequence[Sequence[Stem]], *, limit: int) -> Ids:
        asked = " & ".join(f"({' | '.join(_term(owner, stem) for stem in word)})" for word in words)
        return np.array([row[0] for row in _run(_MATCHING, asked, limit)], dtype=np.int64)

    def segments_merge(self) -> None:
        """Write the table and its index anew: vacuum takes removed rows out of them, but an index keeps each term that it ever
        had. Nobody is held up but for moments.

        Raises OperationalError where a transaction of before stays open, such as a backup's: an index is written anew only once
        all of them have ended.
        """
        _run(f"SET lock_timeout = '{MERGE_LOCK_SECONDS}s'")
        try:
            _run("VACUUM search_terms")
            _run(_UNFINISHED_DROP)  # of a process that was killed
            try:
                _run("REINDEX INDEX CONCURRENTLY search_terms_postings")
            except OperationalError:
                # What holds it up may hold this up: it goes the next time.
                with suppress(OperationalError):
                    _run(_UNFINISHED_DROP)
                raise
        finally:
            _run(f"SET lock_timeout = '{LOCK_SECONDS}s'")


def _run(sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Rows as the server binds and gives them; Django's own cursors put parameters into the text and read text."""
    connection.ensure_connection()
    raw: Any = psycopg.Cursor(connection.connection)
    raw.format = psycopg.pq.Format.BINARY
    make = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    with make(raw) as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall() if raw.pgresult.nfields else []  # its `description` is dear


def _term(owner: int, stem: Stem) -> str:
    """The stem as a part of a `tsquery`."""
    text = stem.text.replace("\\", "\\\\").replace("'", "''")
    return f"'{owner}x{text}'" + (":*" if stem.prefix else "")


def _ids(packed: bytes | None) -> Ids:
    return np.sort(_numbers(packed or b""))


def _groups(head: Head, facet: Facet, after: int, *, past: bool = False) -> list[tuple[Any, ...]]:
    side = "NULL, NULL" if head.side is None else _SIDE.format(head.side.dimension * 2)
    terms = "NULL" if after < 0 else "string_agg(terms, E'\\n')"
    sql = _GROUPS.format(side=side, terms=terms, facet=facet, past="" if past else "AND NOT past")
    return _run(sql, head.user_id, after)


def _batch(groups: Sequence[tuple[Any, ...]], head: Head, *, with_terms: bool = False) -> Batch:
    """The rows of some groups, which come in any order, by their ids."""
    columns: Sequence[Sequence[Any]] = list(zip(*groups, strict=True)) or [()] * 6
    facts, vectors, bare, sides, sided = (
        b"".join(part for part in parts if part) for parts in columns[:5]
    )
    rows = np.frombuffer(facts, dtype=[("id", ">i8"), ("features", features.DTYPE)])
    ids = rows["id"].astype(np.int64)
    order = np.argsort(ids)
    in_order = bool((np.diff(ids) > 0).all())
    embedded = ~np.isin(ids, _numbers(bare))
    halves = np.frombuffer(vectors, dtype="<f2").reshape(-1, head.base.dimension)
    if not embedded.all():
        filled = np.zeros((len(ids), head.base.dimension), dtype=np.float16)
        filled[embedded] = halves
        halves = filled
    terms = [line for part in columns[5] for line in part.split("\n")] if with_terms else None
    side_places = np.searchsorted(ids, _numbers(sided), sorter=order)
    side_dimension = head.side.dimension if head.side is not None else 0
    return Batch(
        ids=ids[order],
        features=rows["features"][order],
        vectors=halves if in_order else halves[order],
        embedded=embedded[order],
        side_places=side_places,
        sides=np.frombuffer(sides, dtype="<f2").reshape(len(side_places), side_dimension),
        terms=terms and [terms[place] for place in order.tolist()],
    )


def _numbers(packed: bytes) -> Ids:
    return np.frombuffer(packed, dtype=">i8").astype(np.int64)
