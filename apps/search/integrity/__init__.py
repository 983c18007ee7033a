"""Checks of the search index: its passages against what they were made from, its full text, its vectors, its owners."""

from apps.core.integrity import disposable, integrity_checks

from . import documents, index
from .documents import Indexed, indexed

__all__ = ["Indexed", "indexed"]

integrity_checks.register("search: passages", documents.PASSAGES)
integrity_checks.register("search: postings", index.POSTINGS)
integrity_checks.register("search: full text", index.FULL_TEXT)
integrity_checks.register("search: vectors", index.VECTORS)
integrity_checks.register("search: spaces", index.SPACES)
integrity_checks.register("search: changes", index.OWNERS)
disposable |= {"search.Passage", "search.Tombstone", "search.IndexOwner"}
