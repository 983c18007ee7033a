"""Documents that say the very words of a query, through full text: newest first, whatever they are about."""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from apps.accounts.selectors import user_language
from apps.search.backends import Stem, backend
from apps.search.documents import Source
from apps.search.language.analysis import DEFAULT_LANGUAGE, detect_language, split_words, stems, stop_words
from apps.search.language.words import STOP_WORDS
from apps.search.models import IndexOwner

CANDIDATES = 500
"""Passages that are read, the newest with all of the words; one that says them in this order is among them, unless
the words are very common ones."""
MAX_WORDS = 12
MIN_STEM = 3


@dataclass(frozen=True, slots=True)
class Said:
    """A passage that holds the query."""

    conversation_id: UUID | None
    text: str


def passages_saying(user_id: UUID, query: str, *, source: Source) -> Iterator[Said]:
    """The user's passages of one source that contain the query, in whatever case, newest first.

    Its words may be beginnings of the text's. Full text does not know ends and middles of words, nor function words of
    the text's language: a query of such alone finds nothing. What it costs depends on how often the words were said, not on how much was.
    """
    owner = IndexOwner.objects.filter(user_id=user_id).values_list("number", flat=True).first()
    words = _telling(query, user_language(user_id))
    if owner is None or not words:
        return
    forms = [list(_forms(word, codes)) for word, codes in words]
    newest = backend.postings_matching(owner, forms, limit=CANDIDATES).tolist()
    wanted = plain(query)
    for _, row in sorted(backend.rows_fetch(user_id, newest).items(), reverse=True):
        if row.source is source and not row.past and wanted in plain(row.text):
            yield Said(row.conversation_id, row.text)


def plain(text: str) -> str:
    """A text as it is compared: without case, with single spaces."""
    return " ".join(text.casefold().split())


def _telling(query: str, preferred: str) -> list[tuple[str, tuple[str, ...]]]:
    """The words of a query that full text may know, each with the languages by which it is stemmed.

    Where there are others, what is a function word in any language is left out, a last word that one may begin with, and
    single letters.
    """
    words = list(dict.fromkeys(split_words(query)))
    codes = tuple(dict.fromkeys([preferred or detect_language(query), DEFAULT_LANGUAGE]))
    ignored = frozenset().union(*STOP_WORDS.values(), *map(stop_words, codes))
    telling = [word for word in words if word not in ignored] or words
    telling = [word for word in telling if not _is_letter(word)] or telling[:1]
    if len(telling) > 1 and telling[-1] == words[-1] and any(each.startswith(words[-1]) for each in ignored):
        telling.pop()
    return [(word, codes) for word in telling[:MAX_WORDS]]


def _is_letter(word: str) -> bool:
    return len(word) == 1 and word.isascii()


def _forms(word: str, codes: tuple[str, ...]) -> Iterator[Stem]:
    """The stems that a text may be found by which has a word that begins so: all that begin so too, the word's own, and
    those that are shorter, since a stem is a word without its ending."""
    (bare,) = stems([word], "")
    # One letter begins a twentieth of all words; one sign of a script without spaces is a word.
    yield Stem(bare, prefix=not _is_letter(word))
    own = {stem for code in codes for stem in stems([word], code)}
    for stem in sorted({*own, *(bare[:end] for end in range(MIN_STEM, len(bare)))} - {bare}):
        yield Stem(stem)
