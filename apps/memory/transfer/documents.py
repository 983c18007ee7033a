"""Notes and files as Markdown: a folder that opens in Obsidian, with the links between notes as its links."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Substr

from apps.core.transfer import Document, file_name, front_matter, pages
from apps.memory.files.texts import ROOT
from apps.memory.models import Memory, MemoryEdge, MemoryFile

TITLE_CHARS = 200


def note_documents(user_id: UUID, notes: QuerySet[Memory] | None = None) -> Iterator[Document]:
    """Each note, or each of these: what is known of it in front of its text, its links behind it."""
    notes = Memory.objects.for_user(user_id) if notes is None else notes
    edges = MemoryEdge.objects.for_user(user_id).filter(target__deleted_at=None)
    for page in pages(notes):
        links: dict[UUID, list[tuple[str, UUID]]] = defaultdict(list)
        rows = edges.filter(source_id__in=[note.pk for note in page]).order_by("relation", "target_id")
        for source, relation, target in rows.values_list("source_id", "relation", "target_id"):
            links[source].append((relation, target))
        named = {target for targets in links.values() for _, target in targets}
        named |= {note.superseded_by_id for note in page if note.superseded_by_id}
        names = _names(user_id, named)
        for note in page:
            yield _note(note, links[note.pk], names)


def _names(user_id: UUID, keys: Collection[UUID]) -> dict[UUID, str]:
    rows = Memory.objects.owned_by(user_id).filter(pk__in=keys)
    heads = rows.values_list("pk", Substr("content", 1, TITLE_CHARS))
    return {key: file_name(head, key) for key, head in heads}


def _note(note: Memory, links: list[tuple[str, UUID]], names: dict[UUID, str]) -> Document:
    instead = names.get(note.superseded_by_id) if note.superseded_by_id else None
    head = front_matter(
        id=str(note.pk),
        type="note",
        kind=note.kind,
        tags=["-".join(tag.split()) for tag in note.tags],
        category=note.category,
        importance=note.importance,
        tier=note.tier,
        status=note.status,
        occasions=note.occasions,
        created=note.created_at,
        updated=note.updated_at,
        valid_from=note.valid_from,
        valid_to=note.valid_to,
        superseded_by=f"[[{instead}]]" if instead else "",
        origin=note.origin,
        trust=note.trust,
    )
    shown = [f"- {_word(relation)} [[{names[target]}]]" for relation, target in links if target in names]
    behind = ["", "", "## Relations", "", *shown] if shown else []
    name = file_name(note.content[:TITLE_CHARS], note.pk)
    text = f"{head}{note.content}{chr(10).join(behind)}\n"
    return Document(f"notes/{name}.md", [text], note.updated_at)


def _word(relation: str) -> str:
    """The relation as one word, so that a reader tells it from the link."""
    return "_".join(relation.replace("[", " ").replace("]", " ").split()) or "related"


def file_documents(user_id: UUID) -> Iterator[Document]:
    """Each file under its own path; one that differs from another in case alone with a number, as many systems take both for one."""
    taken: set[str] = set()
    for page in pages(MemoryFile.objects.for_user(user_id), 20):
        for file in page:
            place, number = PurePosixPath("files", file.path.removeprefix(f"{ROOT}/")), 1
            path = place
            while str(path).casefold() in taken:
                number += 1
                path = place.with_name(f"{place.stem} ({number}){place.suffix}")
            taken.add(str(path).casefold())
            yield Document(str(path), [file.content], file.updated_at)
