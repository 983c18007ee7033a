"""Full text made anew from the passages of a whole database, which need not be the one at hand: after rows were copied into it."""

from django.db.backends.base.base import BaseDatabaseWrapper

_OWNED = "FROM search_passage p JOIN search_indexowner o ON o.user_id = p.user_id WHERE p.terms <> ''"
STATEMENTS = {
    "sqlite": (
        "INSERT INTO search_terms (search_terms) VALUES ('delete-all')",
        (
            "INSERT INTO search_terms (rowid, terms) "
            f"SELECT p.id, replace(' ' || p.terms, ' ', ' ' || o.number || 'x') {_OWNED}"
        ),
    ),
    "postgresql": (
        "DELETE FROM search_terms",
        (
            "INSERT INTO search_terms (passage_id, terms) SELECT p.id, array_to_tsvector(string_to_array("
            f"o.number || 'x' || replace(p.terms, ' ', ' ' || o.number || 'x'), ' ')) {_OWNED}"
        ),
    ),
}
"""By vendor: what removes all postings, and what writes those of all passages."""


def full_text_make(connection: BaseDatabaseWrapper) -> None:
    """Write the postings of every passage of that database."""
    with connection.cursor() as cursor:
        for statement in STATEMENTS[connection.vendor]:
            cursor.execute(statement)
