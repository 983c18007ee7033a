"""From notes and files to what a purge looks for."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cache
from uuid import UUID

from apps.core.purging.fragments import Fragments, Run, runs_of, words_of
from apps.core.purging.places import SourceText
from apps.core.purging.search import shared_fragments
from apps.core.purging.trace import Trace
from apps.core.registries import purge_places, purge_sources
from apps.memory.files.paths import ROOT
from apps.memory.models import Memory, MemoryFile, MemoryFileRevision, MemoryRevision, Purged
from apps.search.embedders import EmbedderMissing, embedder_for
from apps.search.embedders.static import StaticEmbedder
from apps.search.language.analysis import detect_language, stems, stop_words

MIN_WORD = 4
MIN_STEM = 4


def trace_of(
    *,
    user_id: UUID,
    source: Purged,
    ids: Collection[UUID],
    messages: Collection[UUID] = (),
    said: Iterable[str] = (),
) -> Trace:
    """What to look for when these notes or files go, and with them `messages`, which say the texts `said`.

    Fragments are runs of five words with a telling one among them, and distinctive words: four letters or digits and
    more, no function words, not among the common words of English, nor in another note, file or setting of the user.
    """
    texts, words = _note_texts(user_id, ids) if source == Purged.NOTE else _file_texts(user_id, ids)
    own = fragments_of([*texts, *said], words)
    trace = Trace(
        user_id=user_id,
        source=source,
        ids=frozenset(ids),
        own=own,
        exclusive=own,
        messages=frozenset(messages),
        related=frozenset(str(key) for key in messages),
    )
    runs, shared = shared_fragments(trace)
    trace = replace(trace, exclusive=own.without(runs, shared))
    related = {name for _, place in purge_places if place.expand for name in place.expand(trace)}
    return trace.with_related(related)


def fragments_of(texts: Iterable[str], single: Iterable[str] = ()) -> Fragments:
    """The fragments of some texts; of `single` (tags, names) the distinctive words alone."""
    runs: set[Run] = set()
    found: set[str] = set()
    for text in texts:
        language = detect_language(text)
        telling = _telling(text, language)
        runs |= runs_of(text, telling)
        found |= _distinctive(telling, language)
    for text in single:
        language = detect_language(text)
        found |= _distinctive(_telling(text, language), language)
    return Fragments(frozenset(runs), frozenset(found))


def _telling(text: str, language: str) -> frozenset[str]:
    stop = stop_words(language) | stop_words("en")
    return frozenset(word for word, _, _ in words_of(text) if word not in stop)


def _distinctive(words: Iterable[str], language: str) -> set[str]:
    found: set[str] = set()
    for word in words:
        if len(word) < MIN_WORD or word in _common_words():
            continue
        stem = stems([word], language)[0]
        found.add(stem if len(stem) >= MIN_STEM and word.startswith(stem) else word)
    return found - _common_words()


@cache
def _common_words() -> frozenset[str]:
    """The whole words of the bundled vectors' vocabulary; none where the package is missing."""
    try:
        embedder = embedder_for("static")
    except EmbedderMissing:
        return frozenset()
    return frozenset(embedder.vocabulary_words()) if isinstance(embedder, StaticEmbedder) else frozenset()


def _note_texts(user_id: UUID, ids: Collection[UUID]) -> tuple[list[str], list[str]]:
    """Present and former texts of notes, and the words that hang on them."""
    texts: list[str] = []
    words: list[str] = []
    for note in Memory.objects.with_deleted(user_id).filter(pk__in=ids):
        texts.append(note.content)
        words += [*note.tags, note.category]
    for revision in MemoryRevision.objects.owned_by(user_id).filter(memory_id__in=ids):
        texts.append(revision.content)
        words += [*revision.state.get("tags", []), revision.state.get("category", ""), revision.reason]
    return texts, words


def _file_texts(user_id: UUID, ids: Collection[UUID]) -> tuple[list[str], list[str]]:
    files = MemoryFile.objects.with_deleted(user_id).filter(pk__in=ids).values_list("content", "path")
    revisions = MemoryFileRevision.objects.owned_by(user_id).filter(file_id__in=ids)
    rows = [*files, *revisions.values_list("content", "path")]
    return [content for content, _ in rows], [
        path.removeprefix(f"{ROOT}/").rpartition(".")[0] for _, path in rows
    ]


def sources_of(trace: Trace, recorded: Collection[UUID]) -> list[SourceText]:
    """The messages that say what is purged, those recorded as its source included."""
    asked = replace(trace, messages=frozenset(recorded))
    return [text for _, find in purge_sources for text in find(asked)]
