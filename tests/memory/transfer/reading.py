"""Uploads made in a test, what a reader gives for them, and what holds for every record."""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from apps.core.text import clean_text
from apps.memory.files.texts import clean_file_text, clean_path
from apps.memory.models import Kind, Tier
from apps.memory.notes.fields import clean_content, clean_tag
from apps.memory.transfer.records import (
    MAX_KEY_CHARS,
    ForeignConversation,
    ForeignEdge,
    ForeignFile,
    ForeignNote,
    Read,
    Skipped,
    Upload,
    Wrong,
    reader_for,
    readers_load,
)

readers_load()


def as_bytes(content: object) -> bytes:
    """Bytes and text as they are, all else as JSON."""
    if isinstance(content, bytes):
        return content
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def zipped(files: Mapping[str, object]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, as_bytes(content))
    return packed.getvalue()


def json_lines(*entries: object) -> str:
    return "\n".join(
        entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False) for entry in entries
    )


class Uploads:
    """Writes uploads into a test's folder; each is a new file."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0

    def __call__(self, name: str, content: object, *, pasted: bool = False) -> Upload:
        self.count += 1
        path = self.folder / f"upload-{self.count}"
        path.write_bytes(as_bytes(content))
        return Upload(path, name, pasted)


class Found:
    """Returns what a reader gave, by sort."""

    def __init__(self, upload: Upload, format: str = "auto") -> None:
        self.reader = reader_for(upload, format)
        self.all: list[Read] = list(self.reader.read(upload))
        for record in self.all:
            check(record)
        assert self.all == list(self.reader.read(upload)), "a second reading gives something else"

    @property
    def notes(self) -> list[ForeignNote]:
        return [record for record in self.all if isinstance(record, ForeignNote)]

    @property
    def texts(self) -> list[str]:
        return [note.content for note in self.notes]

    @property
    def files(self) -> dict[str, str]:
        return {record.path: record.content for record in self.all if isinstance(record, ForeignFile)}

    @property
    def conversations(self) -> list[ForeignConversation]:
        return [record for record in self.all if isinstance(record, ForeignConversation)]

    @property
    def said(self) -> list[list[tuple[str, str]]]:
        """(role, text) of the messages of each conversation."""
        return [
            [(message.role, message.content) for message in each.messages] for each in self.conversations
        ]

    @property
    def edges(self) -> list[tuple[str, str, str]]:
        """Links as (text of the source, relation, text of the target)."""
        texts = {note.key: note.content for note in self.notes}
        edges = [record for record in self.all if isinstance(record, ForeignEdge)]
        return [(texts[edge.source], edge.relation, texts[edge.target]) for edge in edges]

    @property
    def skipped(self) -> list[str]:
        return [f"{record.place}: {record.reason}" for record in self.all if isinstance(record, Skipped)]

    @property
    def wrong(self) -> list[str]:
        return [f"{record.place}: {record.reason}" for record in self.all if isinstance(record, Wrong)]


def check(record: Any) -> None:
    """Checks what the importer may rely on."""
    assert record.place
    clean_text(record.place, field="place", max_chars=1_000_000)
    for name in ("created_at", "updated_at", "valid_from", "valid_to"):
        time = getattr(record, name, None)
        assert time is None or (time.tzinfo and 1900 <= time.year <= 2200)
    match record:
        case ForeignNote():
            assert 0 < len(record.key) <= MAX_KEY_CHARS
            assert clean_content(record.content) == record.content
            assert len(record.tags) <= 20
            assert [clean_tag(tag) for tag in record.tags] == list(record.tags)
            assert len(record.category) <= 64
            assert record.kind in {None, *Kind.values}
            assert record.tier in {None, *Tier.values}
        case ForeignEdge():
            assert record.source
            assert record.target
            assert record.source != record.target
            assert 0 < len(clean_text(record.relation, field="relation", max_chars=64)) <= 64
        case ForeignFile():
            assert clean_path(record.path) == record.path
            clean_file_text(record.content, field="content")
        case ForeignConversation():
            assert 0 < len(record.key) <= MAX_KEY_CHARS
            assert record.messages
            assert len(record.title) <= 200
            for message in record.messages:
                assert 0 < len(message.key) <= MAX_KEY_CHARS
                clean_text(message.content, field="content", max_chars=100_000)
                assert message.created_at is None or 1900 <= message.created_at.year <= 2200
        case Skipped() | Wrong():
            assert record.reason.endswith(".")
        case _:
            raise AssertionError(f"{record} is no record")
