"""Claude's export: one zip, the several zips that a manifest names, or any of their files; conversations, projects, memory."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from apps.core.errors import InvalidInput

from ..records import ForeignMessage, Read, Reader, Skipped, Upload, Wrong, content_key
from .archives import Document, documents
from .encoding import json_items, json_whole, sketch, sketches
from .fields import (
    entries_in,
    fields_in,
    first_moment,
    first_text,
    joined,
    key_of,
    moment,
    name_of,
    notes_of,
    path_part,
    tags_of,
    text_of,
)
from .files import distinct, files_of
from .lists import noted_paragraphs
from .talk import as_document, branch_and_rest, conversation, messages_of, newest_leaf

FOLDER = "/memories/claude"
_TALK = {"item.chat_messages", "chat_messages"}
_KEYS = {"conversations_memory", "project_memories", "memory_files"}
_MEMORY = _KEYS | {f"item.{key}" for key in _KEYS}
_PROJECT = {"prompt_template", "item.prompt_template", "docs.item.filename", "item.docs"}
_DESIGN = {"messages.item.role", "messages.item.content"}
_MANIFEST = {"data_files", "data_files.item.export_url"}
_SPOKEN = {"text", "voice_note"}


def matches(upload: Upload) -> bool:
    found = sketches(upload)
    known = _TALK | _MEMORY | {"prompt_template", "item.prompt_template"}
    empty = {name.rpartition("/")[2] for name, keys in found.items() if keys == {"["}}
    if "conversations.json" in empty and any(name.endswith("users.json") for name in found):
        return True
    return any(
        known & keys or keys >= _MANIFEST or keys >= {"uuid", *_DESIGN} for keys in found.values()
    )


def read(upload: Upload) -> Iterator[Read]:
    return distinct(_read(upload))


def _read(upload: Upload) -> Iterator[Read]:
    """Projects first, since memories name them by their ids."""
    sorted_in: dict[str, list[Document]] = {}
    for document in documents(upload):
        sorted_in.setdefault(_what(document), []).append(document)
    if not {"talk", "memory", "project", "design"} & set(sorted_in):
        raise InvalidInput(_only(sorted_in.get("manifest", [])))
    projects: dict[str, str] = {}
    for document in sorted_in.get("project", []):
        for place, entry in _entries(document):
            yield from _project(place, entry, projects)
    for document in sorted_in.get("memory", []):
        for place, entry in _entries(document):
            yield from _memory(place, entry, projects)
    seen: set[str] = set()
    for document in sorted_in.get("talk", []):
        for place, entry in _entries(document):
            yield _conversation(place, entry, seen)
    for document in sorted_in.get("design", []):
        for place, entry in _entries(document):
            yield _design(place, entry)
    for document in sorted_in.get("reflection", []):
        yield Skipped(document.name, "Feedback that was given on answers is not taken.")


def _what(document: Document) -> str:
    """The kind of a file of the export, by what stands in it."""
    if document.suffix not in {".json", ""} and "/" in document.name:
        return "other"
    keys = sketch(document)
    if keys & _TALK or (document.base.startswith("conversations") and keys == {"["}):
        return "talk"
    if keys & _MEMORY:
        return "memory"
    if "reflections/" in document.name:
        return "reflection"
    if keys >= {"uuid", *_DESIGN} or "item.messages" in keys:
        return "design"
    if keys & _PROJECT:
        return "project"
    return "manifest" if keys >= _MANIFEST else "other"


def _only(manifests: list[Document]) -> str:
    if not manifests:
        return (
            "This archive holds no conversations, projects or memories in the form that Claude writes."
        )
    listed = entries_in(fields_in(json_whole(manifests[0])).get("data_files"))
    names = ", ".join(filter(None, (name_of(fields_in(entry).get("filename")) for entry in listed[:20])))
    return (
        "This is only the list of the downloads that the export consists of. Download the files that it names and import "
        f"them, one by one or packed in one zip: {names}."
    )


def _entries(document: Document) -> Iterator[tuple[str, Any]]:
    """(place, entry) of a file that holds a list, or one entry."""
    if "[" in sketch(document):
        for number, entry in enumerate(json_items(document), start=1):
            yield f"{document.name}, entry {number}", entry
    else:
        yield document.name, json_whole(document)


def _conversation(place: str, entry: object, seen: set[str]) -> Read:
    fields = fields_in(entry)
    if not isinstance(fields.get("chat_messages"), list):
        return Wrong(
            place, "It is not a conversation: it has no messages in the form that Claude writes."
        )
    messages = [message for message in fields["chat_messages"] if isinstance(message, dict)]
    ids = [text_of(message.get("uuid")) or f"{number}" for number, message in enumerate(messages)]
    by_id = dict(zip(ids, messages, strict=True))
    parents = _parents(ids, messages)
    times = {key: moment(message.get("created_at")) for key, message in by_id.items()}
    leaf = text_of(fields.get("current_leaf_message_uuid"))
    leaf_found = leaf if leaf in by_id else newest_leaf(parents, times)
    said: dict[str, list[ForeignMessage]] = {key: [] for key in by_id}
    for key, message in by_id.items():
        sender = first_text(message, "sender", "role")
        if sender in {"human", "user", "assistant"}:
            role = "assistant" if sender == "assistant" else "user"
            foreign = message.get("uuid") or content_key(text_of(fields.get("uuid")), key)
            said[key] = messages_of(foreign, role, _words(message), times[key])  # type: ignore[arg-type]
    shown, left = branch_and_rest(leaf_found, parents, said)
    key = key_of(fields.get("uuid"), *(message.key for message in shown))
    if key in seen:
        return Skipped(place, "It stands in this export more than once.")
    seen.add(key)
    created, updated = first_moment(fields, "created_at"), first_moment(fields, "updated_at")
    return conversation(place, key, first_text(fields, "name", "title"), shown, created, updated, left)


def _parents(ids: list[str], messages: list[dict[str, Any]]) -> dict[str, str | None]:
    """Each message's parent: the one it names; one that is not there, or none, stands for the message before.

    Messages that name the same missing parent are siblings.
    """
    known, missing = set(ids), dict[str, str | None]()
    parents: dict[str, str | None] = {}
    before: str | None = None
    for key, message in zip(ids, messages, strict=True):
        named = text_of(message.get("parent_message_uuid"))
        if named in known and named != key:
            parents[key] = named
        elif named:
            parents[key] = missing.setdefault(named, before)
        else:
            parents[key] = before
        before = key
    return parents


def _words(message: dict[str, Any]) -> str:
    """The message's words: the blocks of text, or the field of older exports; files that came with it are marked as documents."""
    blocks = entries_in(message.get("content"))
    texts = [
        text_of(block.get("text"))
        for block in blocks
        if isinstance(block, dict) and text_of(block.get("type")) in _SPOKEN
    ]
    plain = all(isinstance(block, dict) and text_of(block.get("type")) in _SPOKEN for block in blocks)
    said = joined(texts) or (first_text(message, "text", "content") if plain else "")
    files = [
        as_document(file.get("file_name"), content)
        for file in entries_in(message.get("attachments"))
        if isinstance(file, dict) and (content := text_of(file.get("extracted_content")))
    ]
    return joined([said, *files])


def _design(place: str, entry: object) -> Read:
    """A chat of Claude's design surface, whose messages have another form."""
    fields = fields_in(entry)
    said: list[ForeignMessage] = []
    for number, message in enumerate(entries_in(fields.get("messages"))):
        inner = fields_in(message)
        content = fields_in(inner.get("content"))
        role = text_of(inner.get("role"))
        if role not in {"user", "human", "assistant"}:
            continue
        blocks = [fields_in(block) for block in entries_in(content.get("contentBlocks"))]
        texts = [text_of(block.get("text")) for block in blocks if block.get("type") == "text"]
        words = (
            joined(texts)
            if blocks
            else first_text(content, "content", "text") or text_of(inner.get("content"))
        )
        created = first_moment(inner, "created_at") or first_moment(content, "timestamp")
        foreign = inner.get("uuid") or content_key(text_of(fields.get("uuid")), str(number))
        said += messages_of(foreign, "assistant" if role == "assistant" else "user", words, created)
    key = key_of(fields.get("uuid"), *(message.key for message in said))
    title = first_text(fields, "title") or text_of(fields_in(fields.get("project")).get("name"))
    created, updated = first_moment(fields, "created_at"), first_moment(fields, "updated_at")
    return conversation(place, key, title, said, created, updated)


def _project(place: str, entry: object, projects: dict[str, str]) -> Iterator[Read]:
    """A project as a note, its instructions and documents as files."""
    fields = fields_in(entry)
    name = name_of(fields.get("name"))
    if not name and not fields.get("docs"):
        yield Wrong(place, "It is not a project in the form that Claude writes.")
        return
    identity = key_of(fields.get("uuid"), name)
    projects[text_of(fields.get("uuid"))] = name
    created, updated = first_moment(fields, "created_at"), first_moment(fields, "updated_at")
    if fields.get("is_starter_project") is True and not fields.get("docs"):
        yield Skipped(place, "A project that Claude itself put there as an example.")
        return
    if description := text_of(fields.get("description")):
        values: dict[str, Any] = {"created_at": created, "updated_at": updated, "tags": tags_of([name])}
        yield from notes_of(
            place, f"project:{identity}", f"{name}: {description}", kind="project", **values
        )
    folder = f"{FOLDER}/projects/{path_part(name)}"
    if instructions := text_of(fields.get("prompt_template")):
        yield from files_of(place, f"{folder}/instructions.md", instructions, created, updated)
    for number, document in enumerate(entries_in(fields.get("docs")), start=1):
        inner = fields_in(document)
        content = text_of(inner.get("content"))
        where = f"{place}, document {number}"
        if content:
            path = (
                f"{folder}/{path_part(first_text(inner, 'filename', 'file_name'), f'document {number}')}"
            )
            yield from files_of(
                where, path, content, first_moment(inner, "created_at") or created, updated
            )
        else:
            yield Skipped(where, "The document has no text.")


def _memory(place: str, entry: object, projects: dict[str, str]) -> Iterator[Read]:
    """Claude's memories of an account: as notes, its files as files in a folder of the account's."""
    fields = fields_in(entry)
    account = text_of(fields.get("account_uuid"))
    if not account and not _KEYS & fields.keys():
        yield Wrong(place, "It is no memory in the form that Claude writes.")
    if text := text_of(fields.get("conversations_memory")):
        yield from noted_paragraphs(f"{place}, conversations_memory", text, tags=["claude"])
    for project, memory in _by_project(fields.get("project_memories")):
        name = projects.get(project, "")
        where = f"{place}, memory of the project {name or text_of(project)}"
        if text := text_of(memory):
            yield from noted_paragraphs(where, text, tags=tags_of(["claude", name]), kind="project")
    for number, file in enumerate(entries_in(fields.get("memory_files")), start=1):
        where = f"{place}, file {number}"
        if not isinstance(file, dict) or not text_of(file.get("content")):
            yield Skipped(where, "The file has no text.")
            continue
        named = text_of(file.get("path")).split("/")
        parts = [path_part(part) for part in named if part.strip(" .")] or [f"file {number}.md"]
        folder = "/".join([FOLDER, *([path_part(account)] if account else []), *parts[-10:]])
        updated: datetime | None = first_moment(file, "updated_at")
        created = first_moment(file, "created_at") or updated
        yield from files_of(where, folder, text_of(file.get("content")), created, updated)


def _by_project(value: object) -> list[tuple[str, object]]:
    """(id of a project, its memory) of an object, or of a list of objects."""
    listed = [fields_in(each) for each in entries_in(value)]
    pairs = [
        (first_text(each, "project_uuid", "uuid"), first_text(each, "memory", "content", "text"))
        for each in listed
    ]
    return [(text_of(key), memory) for key, memory in fields_in(value).items()] + pairs


reader = Reader(
    name="claude",
    title="Claude (data export)",
    matches=matches,
    read=read,
    help="Claude: Settings, Privacy, Export data. Upload the zip, each of the zips that the manifest names, or all in one zip.",
    rank=21,
)
