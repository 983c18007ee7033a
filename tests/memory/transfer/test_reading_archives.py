"""Archives that are broken or built to do harm are refused with a sentence, whatever they hold."""

import gzip
import io
import struct
import tracemalloc
import unicodedata
import zipfile
import zlib
from collections.abc import Callable
from typing import Literal

import pytest

from apps.core.errors import InvalidInput, TooLarge
from apps.memory.transfer.records import reader_for

from .chatgpt_sample import TALK
from .reading import Found, Uploads, as_bytes, zipped

GOOD = {"conversations.json": [TALK]}


def with_entry(
    name: str, content: bytes = b"x", packing: int = zipfile.ZIP_DEFLATED, **values: int
) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", as_bytes([TALK]))
        entry = zipfile.ZipInfo(name)
        for field, value in values.items():
            setattr(entry, field, value)
        archive.writestr(entry, content, packing)
    return packed.getvalue()


def encrypted() -> bytes:
    """A zip whose table says that its entries are encrypted."""
    data = bytearray(zipped(GOOD))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + place] |= 1
    return bytes(data)


def damaged() -> bytes:
    data = bytearray(zipped(GOOD))
    data[120] ^= 0xFF
    return bytes(data)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: zipped(GOOD)[:-40], "broken or cut off"),
        (lambda: zipped(GOOD)[: len(zipped(GOOD)) // 2], "broken or cut off"),
        (damaged, "broken or cut off"),
        (encrypted, "encrypted"),
        (lambda: with_entry("a.json", packing=zipfile.ZIP_LZMA), "packed in an unusual way"),
        (lambda: with_entry("a.json", packing=zipfile.ZIP_BZIP2), "packed in an unusual way"),
        (lambda: with_entry("../../etc/passwd"), "outside itself"),
        (lambda: with_entry("/etc/passwd"), "outside itself"),
        (lambda: with_entry("C:\\Windows\\x.json"), "outside itself"),
        (lambda: with_entry("a\\..\\..\\x.json"), "outside itself"),
        (lambda: gzip.compress(b'[{"memory": "x"}]')[:-9], "broken or cut off"),
        (lambda: b"PK\x03\x04", "broken or cut off"),
    ],
)
def test_it_is_refused_with_a_sentence(
    upload: Uploads, make: Callable[[], bytes], sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        Found(upload("export.zip", make()))


@pytest.mark.parametrize(
    "make",
    [
        lambda: with_entry("bomb.json", b" " * 50_000_000),
        lambda: zipped({"conversations-000.zip": with_entry("bomb.json", b"0" * 50_000_000)}),
        lambda: gzip.compress(b"[" + b" " * 50_000_000),
        lambda: zipped({"memories.json": {"memories": [], "categories": [], "apps": []}, "memories.jsonl.gz": gzip.compress(b" " * 50_000_000)}),
    ],
)  # fmt: skip
def test_a_bomb_is_refused(upload: Uploads, make: Callable[[], bytes]) -> None:
    with pytest.raises(TooLarge, match="far larger unpacked"):
        Found(upload("export.zip", make()))


def test_too_many_files_are_refused(upload: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.memory.transfer.readers.archives.MAX_ENTRIES", 10)
    with pytest.raises(TooLarge, match="at most 10"):
        Found(upload("export.zip", zipped({f"{number}.md": "x" for number in range(11)})))


def test_folders_links_and_what_systems_leave_behind_are_passed_over(upload: Uploads) -> None:
    files = {
        "notes/": "",
        "__MACOSX/notes/._a.md": "junk",
        "notes/.DS_Store": "junk",
        "notes/a.md": "Real",
        ".git/x.md": "junk",
    }
    packed = io.BytesIO(zipped(files))
    with zipfile.ZipFile(packed, "a") as archive:
        link = zipfile.ZipInfo("notes/link.md")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    found = Found(upload("notes.zip", packed.getvalue()))

    assert found.texts == ["a\n\nReal"]


def test_a_gzip_is_read_like_the_file_in_it(upload: Uploads) -> None:
    assert Found(
        upload("m.jsonl.gz", gzip.compress(b'{"content": "Likes tea"}\n{"content": "Has a dog"}'))
    ).texts == ["Likes tea", "Has a dog"]


def test_paths_with_backslashes_are_folders(upload: Uploads) -> None:
    packed = zipped({"export\\conversations.json": [TALK], "export\\chat.html": ""})

    assert len(Found(upload("x.zip", packed)).conversations) == 1


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("flagged", [True, False])
def test_names_are_read_as_they_were_written(
    upload: Uploads, form: Literal["NFC", "NFD"], flagged: bool
) -> None:
    """macOS and `zip` write UTF-8 without saying so, and macOS takes accents apart."""
    name = unicodedata.normalize(form, "Café.md")
    packed = zipped({name: "Open at nine", "b.md": "See [[Café]]"})
    if not flagged:
        for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            at = packed.index(mark) + place
            packed = packed[:at] + b"\0\0" + packed[at + 2 :]
    found = Found(upload("v.zip", packed))

    assert found.texts == ["Café\n\nOpen at nine", "b\n\nSee [[Café]]"]
    assert found.edges == [(found.texts[1], "links_to", found.texts[0])]


@pytest.mark.parametrize(
    ("beside", "read_as"),
    [("Заметки.md", "Заметки"), ("../../x.md", None), ("", "Заметки".encode("cp866").decode("cp437"))],
)
def test_a_name_in_a_code_page_of_windows_is_read_by_what_stands_beside_it(
    upload: Uploads, beside: str, read_as: str | None
) -> None:
    stored = "Заметки.md".encode("cp866")
    entry = zipfile.ZipInfo("Z" * len(stored))
    named = struct.pack("<BL", 1, zlib.crc32(stored)) + beside.encode()
    entry.extra = struct.pack("<HH", 0x7075, len(named)) + named if beside else b""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(entry, "Open at nine")
    given = upload("v.zip", packed.getvalue().replace(b"Z" * len(stored), stored))
    if read_as is None:
        with pytest.raises(InvalidInput, match="outside itself"):
            Found(given)
    else:
        assert Found(given).texts == [f"{read_as}\n\nOpen at nine"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_two_files_of_one_name_the_later_counts(upload: Uploads) -> None:
    packed = io.BytesIO(zipped({"a.md": "Old", "b.md": "Other"}))
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("a.md", "New")

    assert Found(upload("v.zip", packed.getvalue())).texts == ["a\n\nNew", "b\n\nOther"]


def test_memory_stays_bounded_with_a_large_export(upload: Uploads) -> None:
    entry = as_bytes(TALK).decode()
    packed = zipped(
        {
            "conversations.json": "["
            + ",\n".join([entry.replace("693dfd6c", f"{number:08x}") for number in range(2000)])
            + "]"
        }
    )
    path = upload("x.zip", packed)
    reader = reader_for(path)
    tracemalloc.start()
    count = sum(1 for _ in reader.read(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert count > 2000
    assert peak < 8_000_000


def test_an_export_that_was_zipped_once_more_is_read(upload: Uploads) -> None:
    assert (
        len(Found(upload("x.zip", zipped({"downloads/chatgpt.zip": zipped(GOOD)}))).conversations) == 1
    )


def test_zips_that_were_attached_to_a_chat_are_left_alone(upload: Uploads) -> None:
    found = Found(
        upload("x.zip", zipped(GOOD | {"file-abc.zip": b"PK\x03\x04 broken", "user.json": {}}))
    )

    assert len(found.conversations) == 1
