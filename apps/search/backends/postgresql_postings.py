"""PostgreSQL's full text against the stems of passages. Its rows go with their passages, and the server keeps watch over the
table itself."""

from collections.abc import Collection, Iterator
from uuid import UUID

from django.db import connection

_LEXEMES = "array_to_tsvector(string_to_array(o.number || 'x' || replace(p.terms, ' ', ' ' || o.number || 'x'), ' '))"
_OWNED = "search_passage p JOIN search_indexowner o ON o.user_id = p.user_id"
_WRONG = (
    f"SELECT p.id FROM {_OWNED} LEFT JOIN search_terms t ON t.passage_id = p.id WHERE p.user_id = %s AND "
    f"t.terms IS DISTINCT FROM CASE WHEN p.terms = '' THEN NULL ELSE {_LEXEMES} END"
)
_UNPOST = "DELETE FROM search_terms WHERE passage_id = ANY(%s)"
_POST = (
    f"INSERT INTO search_terms (passage_id, terms) SELECT p.id, {_LEXEMES} FROM {_OWNED} "
    "WHERE p.terms <> '' AND p.id = ANY(%s) AND p.user_id = %s"
)


class PostgreSQLPostings:
    """The full text of a PostgreSQL server, for checking."""

    def wrong(self, user_id: UUID) -> Iterator[int]:
        with connection.chunked_cursor() as cursor:
            cursor.execute(_WRONG, (user_id,))
            for (key,) in cursor:
                yield key

    def renew(self, user_id: UUID, ids: Collection[int]) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_UNPOST, (list(ids),))
            cursor.execute(_POST, (list(ids), user_id))

    def owners(self) -> Iterator[int]:
        return iter(())

    def clear(self, owner: int) -> None:
        return

    def sound(self) -> bool:
        return True

    def empty(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE search_terms")
