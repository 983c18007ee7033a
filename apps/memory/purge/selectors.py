"""Reads of purges: what one looks for and would touch, and the receipts of those that were made."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from apps.core.errors import NotFound
from apps.core.purging.disk import scrubbed_at
from apps.core.purging.places import Hits, Rule, SourceText, find, purge_parts
from apps.core.purging.trace import Fragments, Trace
from apps.memory.files.texts import ROOT
from apps.memory.models import (
    Memory,
    MemoryEdge,
    MemoryFile,
    MemoryFileRevision,
    MemoryRevision,
    Purged,
    PurgeReceipt,
    Relation,
)
from apps.search.embedders.vocabulary import common_words
from apps.search.text.analysis import detect_language, stems, stop_words

MAX_SOURCES = 200


def trace_of(
    user_id: UUID, source: Purged, ids: Collection[UUID], messages: Sequence[SourceText] = ()
) -> Trace:
    """Returns what to look for when these notes or files go, with `messages`; what others have of it is not known yet."""
    notes = Memory.objects.with_deleted(user_id).filter(pk__in=ids)
    texts, names = _note_texts(user_id, ids) if source == Purged.NOTE else _file_texts(user_id, ids)
    own = Fragments(words=_fragments(names).words)
    own |= _fragments([*texts, *(message.text for message in messages if message.role == "user")])
    return Trace(
        user_id=user_id,
        source=source,
        ids=frozenset(ids),
        own=own,
        exclusive=own,
        recorded=frozenset(filter(None, notes.values_list("source_message_id", flat=True))),
        messages=frozenset(message.id for message in messages),
        related=frozenset(str(message.id) for message in messages),
    )


def _note_texts(user_id: UUID, ids: Collection[UUID]) -> tuple[list[str], list[str]]:
    """Present and former texts of notes, and the words that hang on them."""
    notes: Any = Memory.objects.with_deleted(user_id).filter(pk__in=ids)
    past = MemoryRevision.objects.owned_by(user_id).filter(memory_id__in=ids)
    states = [{"tags": note.tags, "category": note.category} for note in notes] + [row.state for row in past]
    names = [name for state in states for name in (*state.get("tags", []), state.get("category", ""))]
    return [row.content for rows in (notes, past) for row in rows], [*names, *(row.reason for row in past)]


def _file_texts(user_id: UUID, ids: Collection[UUID]) -> tuple[list[str], list[str]]:
    """Present and former texts of files, and their names."""
    files = MemoryFile.objects.with_deleted(user_id).filter(pk__in=ids)
    rows: list[Any] = [*files, *MemoryFileRevision.objects.owned_by(user_id).filter(file_id__in=ids)]
    names = [row.path.removeprefix(f"{ROOT}/").rpartition(".")[0] for row in rows]
    return [row.content for row in rows], names


def _fragments(texts: Sequence[str]) -> Fragments:
    """The fragments of some texts, each in its own language."""
    found = Fragments()
    for text in texts:
        language = detect_language(text)
        # "The user" is how notes call whose they are.
        function_words = stop_words(language) | stop_words("en") | {"user", "users"}
        found |= Fragments.of(text, function_words, partial(_is_common, language))
    return found


def _is_common(language: str, word: str) -> bool:
    """Whether a word, in whatever form, says nothing of whose it is."""
    return not common_words().isdisjoint([word, *stems([word], language)])


def saying_same(trace: Trace) -> tuple[list[SourceText], list[UUID]]:
    """The messages that say what is purged, oldest first, those that notes name as their source included; and other notes
    of the user that say the same, or did before."""
    trace, hits = find(trace, (Rule.KEEP, Rule.OFFER))
    said = [*trace.recorded, *hits.get("chat.message.text", ())]
    messages = [text for _, part in purge_parts for text in part.messages(trace.user_id, said)]
    marked = [replace(text, recorded=text.id in trace.recorded) for text in messages[:MAX_SOURCES]]
    return marked, sharing_notes(trace, hits)


def sharing_notes(trace: Trace, hits: Hits) -> list[UUID]:
    """Other notes that say the same, or did before, among what was found."""
    said = hits.get("memory.memoryrevision.content", ())
    past = MemoryRevision.objects.for_user(trace.user_id).filter(pk__in=said)
    return sorted(
        {*hits.get("memory.memory.content", ()), *past.values_list("memory_id", flat=True)} - trace.ids
    )


def receipt_get(user_id: UUID, receipt_id: UUID) -> PurgeReceipt:
    """A receipt of the user; NotFound."""
    receipt = PurgeReceipt.objects.for_user(user_id).filter(pk=receipt_id).first()
    if receipt is None:
        raise NotFound
    return receipt


def off_disk_at(receipt: PurgeReceipt) -> datetime | None:
    """When the file was cleaned after this purge; None while the worker has yet to do it."""
    done = scrubbed_at()
    return done if receipt.purged_at and done and done >= receipt.purged_at else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """All that a purge would touch beside the row."""

    source: Purged
    id: UUID
    text: str
    sources: Sequence[SourceText]  # messages that say the same
    related: Sequence[Memory]  # notes that do, or that it was merged into or replaced by


def memory_purge_preview(user_id: UUID, memory_id: UUID) -> Preview:
    """NotFound for an unknown or foreign note; one of any status has a preview."""
    note = subjects(user_id, Purged.NOTE, [memory_id]).first()
    return _preview(user_id, Purged.NOTE, memory_id, note and note.content)


def file_purge_preview(user_id: UUID, file_id: UUID) -> Preview:
    """NotFound for an unknown or foreign file."""
    file = subjects(user_id, Purged.FILE, [file_id]).first()
    return _preview(user_id, Purged.FILE, file_id, file and file.path)


def subjects(user_id: UUID, source: str, ids: Collection[UUID]) -> Any:
    """The notes or files of the user with these ids, of any status."""
    model: Any = Memory if source == Purged.NOTE else MemoryFile
    return model.objects.with_deleted(user_id).filter(pk__in=ids)


def _preview(user_id: UUID, source: Purged, key: UUID, text: str | None) -> Preview:
    if text is None:
        raise NotFound
    messages, sharing = saying_same(trace_of(user_id, source, [key]))
    replaced = (
        edges_of(user_id, [key]).filter(relation=Relation.SUPERSEDES).values_list("source_id", "target_id")
    )
    near = Q(pk__in={*sharing, *(end for ends in replaced for end in ends)} - {key}) | Q(supersedes=key)
    related = Memory.objects.with_deleted(user_id).filter(near).distinct().order_by("-updated_at")
    return Preview(source=source, id=key, text=text, sources=messages, related=list(related))


def edges_of(user_id: UUID, ids: Collection[UUID]) -> QuerySet[MemoryEdge]:
    """The links of some notes."""
    return MemoryEdge.objects.owned_by(user_id).filter(Q(source_id__in=ids) | Q(target_id__in=ids))
