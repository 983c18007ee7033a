"""FTS5's postings against the stems of passages. Both are read once, in a stream; sums of hashes stand for the stems of a
passage, so that what is held of each is 32 bytes."""

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

import numpy as np
from django.db import DatabaseError, connection

AT_ONCE = 4096
_BITS = (1 << 64) - 1
_OWNER = "SELECT number FROM search_indexowner WHERE user_id = %s"
_TERMS = "SELECT id, terms FROM search_passage WHERE user_id = %s ORDER BY id"
_POST = (
    "INSERT INTO search_terms(rowid, terms) SELECT id, replace(' ' || terms, ' ', %s) "
    "FROM search_passage WHERE terms <> '' AND id = %s AND +user_id = %s"
)
_UNPOST = "INSERT INTO search_terms(search_terms, rowid, terms) VALUES ('delete', %s, %s)"
_VOCABULARY = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.search_vocabulary "
    "USING fts5vocab('main', 'search_terms', 'instance')"
)
_POSTED = "SELECT term, doc FROM temp.search_vocabulary WHERE term >= %s AND term < %s"
_NEXT = "SELECT term FROM temp.search_vocabulary WHERE term >= %s LIMIT 1"
_SOUND = "INSERT INTO search_terms(search_terms) VALUES ('integrity-check')"
_EMPTY = "INSERT INTO search_terms(search_terms) VALUES ('delete-all')"


class SQLitePostings:
    """The full text of SQLite's file, for checking."""

    def wrong(self, user_id: UUID) -> Iterator[int]:
        owner = _owner(user_id)
        if owner is None:
            return
        ids, sums = array("q"), array("Q")
        for key, terms in _rows(_TERMS, user_id.hex):
            ids.append(key)
            sums.append(sum(map(hash, set(terms.split()))) & _BITS)
        known = np.frombuffer(ids, dtype=np.int64)
        wanted = np.frombuffer(sums, dtype=np.uint64)
        held, strange = np.zeros(len(known), dtype=np.uint64), set[int]()
        for stem, group in groupby(_posted(owner), key=itemgetter(0)):
            docs = np.fromiter((doc for _, doc in group), dtype=np.int64)
            places = np.searchsorted(known, docs)
            there = places < len(known)
            there[there] = known[places[there]] == docs[there]
            held[places[there]] += np.uint64(hash(stem) & _BITS)
            strange.update(docs[~there].tolist())
        yield from known[held != wanted].tolist()
        yield from sorted(strange)

    def renew(self, user_id: UUID, ids: Collection[int]) -> None:
        owner = _owner(user_id)
        if owner is None:
            return
        _unpost(_held(owner, ids))
        with connection.cursor() as cursor:
            for key in ids:
                cursor.execute(_POST, (f" {owner}x", key, user_id.hex))

    def owners(self) -> Iterator[int]:
        begin = ""
        while rows := list(_rows(_NEXT, begin, vocabulary=True)):
            number, _, _ = str(rows[0][0]).partition("x")
            yield int(number)
            begin = f"{number}y"

    def clear(self, owner: int) -> None:
        _unpost(_held(owner, None))

    def sound(self) -> bool:
        """Takes the write lock for a moment."""
        try:
            with connection.cursor() as cursor:
                cursor.execute(_SOUND)
        except DatabaseError as error:
            if "malformed" in str(error):
                return False
            if "readonly" in str(error):  # it writes nothing, but may not say so
                return True
            raise
        return True

    def empty(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_EMPTY)


def _owner(user_id: UUID) -> int | None:
    return next((number for (number,) in _rows(_OWNER, user_id.hex)), None)


def _posted(owner: int) -> Iterator[tuple[str, int]]:
    """(stem, passage id) of all postings of an owner, in the order of their stems."""
    begin = len(f"{owner}x")
    for term, doc in _rows(_POSTED, f"{owner}x", f"{owner}y", vocabulary=True):
        yield term[begin:], doc


def _held(owner: int, ids: Collection[int] | None) -> dict[int, list[str]]:
    """The terms that full text holds of these ids, or of all."""
    held: dict[int, list[str]] = {}
    for stem, doc in _posted(owner):
        if ids is None or doc in ids:
            held.setdefault(doc, []).append(f"{owner}x{stem}")
    return held


def _unpost(held: Mapping[int, Sequence[str]]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(_UNPOST, [(key, " ".join(terms)) for key, terms in held.items()])


def _rows(sql: str, *parameters: str, vocabulary: bool = False) -> Iterator[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        if vocabulary:
            cursor.execute(_VOCABULARY)
        cursor.execute(sql, parameters)
        while rows := cursor.fetchmany(AT_ONCE):
            yield from rows
