"""Bytes of foreign files as text and as JSON, whatever their encoding, in pieces where the format allows it."""

import codecs
import io
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from charset_normalizer import from_bytes

from apps.core.errors import InvalidInput, IzzyError, TooLarge
from apps.core.text import plain_breaks

from ..records import Upload, Wrong
from .archives import Document, documents

MAX_TEXT_BYTES = 64 * 2**20
"""Of a file that is read as a whole: Markdown, CSV, an agent file."""
MAX_LINE_CHARS = 32 * 2**20
MAX_ENTRY_CHARS = 64 * 2**20
BLOCK_CHARS = 2**18
SAMPLE_BYTES = 2**18
SKETCHED = 50  # JSON files of an archive that are looked at to tell its format
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    *((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32")),
    *((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")),
)

_HIGH = re.compile(rb"[\x80-\xff]+")
_NO_LETTER = re.compile(rb"[\x81\x83\x8d\x8f\x90\x9d]")  # of cp1252: unused, or not in any text
_WESTERN_RUN = 4  # as in `é…”`

_DECODER = json.JSONDecoder(strict=False)
_END = object()
_SPACE = re.compile(r"[ \t\r\n]*")
_JSON = re.compile(r"\{\s*(?:[\"}]|\Z)|\[\s*(?:[\"{\]]|\Z)")
_CUT = re.compile(r"[.eE+-]{0,3}\Z")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"(?P<key>\s*:)?|\\?\Z)|[{}\[\]]', re.DOTALL)


def encoding_of(sample: bytes) -> str:
    """The encoding of a text that begins with these bytes: by its mark, by NULs between letters, UTF-8, else by guess.

    InvalidInput where it is no text.
    """
    for mark, name in _MARKS:
        if sample.startswith(mark):
            return name
    even, odd = sample[:2000:2], sample[1:2000:2]
    if len(sample) > 3 and b"\x00" in sample[:2000]:
        if sample[1:4:2] == b"\x00\x00" or (odd.count(0) > len(odd) * 0.6 and not even.count(0)):
            return "utf-16-le"
        if sample[0:3:2] == b"\x00\x00" or (even.count(0) > len(even) * 0.6 and not odd.count(0)):
            return "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)  # the sample may end within a letter
    except UnicodeDecodeError:
        if _is_western(sample):
            return "cp1252"
        best = from_bytes(
            sample[: 2**16], cp_isolation=["cp1252", "cp1251", "shift_jis", "gb18030", "euc_kr", "big5"]
        ).best()
        if best is None or sample[:4096].count(0) > 8:
            raise InvalidInput("It is not a text file.", code="no_text") from None
        return best.encoding
    return "utf-8"


def _is_western(sample: bytes) -> bool:
    """Whether letters beyond ASCII stand by themselves among others, as in western languages: a guess at the encoding of a short
    text takes `ü` and the letter behind it for one Chinese sign."""
    runs = _HIGH.findall(sample)
    single = sum(len(run) == 1 for run in runs)
    return (
        single >= 0.4 * len(runs)
        and max(map(len, runs)) <= _WESTERN_RUN
        and not any(_NO_LETTER.search(run) for run in runs)
    )


def open_text(document: Document) -> io.TextIOWrapper:
    """The document as text in its encoding; a byte that does not fit in it becomes a replacement character."""
    encoding = encoding_of(document.head(SAMPLE_BYTES))
    return io.TextIOWrapper(document.open(), encoding, errors="replace", newline="")


def read_text(document: Document) -> str:
    """The whole text with line breaks as `\\n`. TooLarge above 64 MB, InvalidInput where it is no text."""
    if document.size > MAX_TEXT_BYTES:
        raise TooLarge(_too_large(document))
    with open_text(document) as file:
        text = file.read(MAX_TEXT_BYTES + 1)
    if len(text) > MAX_TEXT_BYTES:
        raise TooLarge(_too_large(document))
    return plain_breaks(text)


def _too_large(document: Document) -> str:
    return f"{document.name} is larger than {MAX_TEXT_BYTES // 2**20} MB."


def json_items(document: Document) -> Iterator[Any]:
    """The entries of a JSON list, one at a time: of a large file no more than an entry is held.

    InvalidInput where the JSON is broken or cut off, TooLarge where an entry has more than MAX_ENTRY_CHARS characters.
    """
    with open_text(document) as file:
        buffer = file.read(BLOCK_CHARS).lstrip("\ufeff \t\r\n")
        if not buffer.startswith("["):
            raise InvalidInput(f"{document.name} does not hold a JSON list.", code="broken_json")
        place, wanted, count = 1, BLOCK_CHARS, 0
        while True:
            try:
                value, place = _entry(buffer, place, first=count == 0)
            except json.JSONDecodeError as error:
                more = file.read(wanted) if _may_go_on(error, buffer) else ""
                if not more:
                    raise InvalidInput(_broken(document), code="broken_json") from error
                if len(buffer) - place > MAX_ENTRY_CHARS:
                    raise TooLarge(f"Entry {count + 1} of {document.name} is too large.") from error
                buffer, place, wanted = buffer[place:] + more, 0, wanted * 2
                continue
            except (
                ValueError,
                RecursionError,
            ) as error:  # a number of thousands of digits, brackets without end
                raise InvalidInput(_broken(document), code="broken_json") from error
            if value is _END:
                break
            count, wanted = count + 1, BLOCK_CHARS
            yield value
        if (buffer[place:] + file.read(BLOCK_CHARS)).strip():
            raise InvalidInput(_broken(document), code="broken_json")


def _entry(buffer: str, place: int, *, first: bool) -> tuple[Any, int]:
    """The entry behind a place and where it ends, _END behind the last; JSONDecodeError where it is broken or cut off."""
    place = _space_end(buffer, place)
    if buffer[place : place + 1] == "]":
        return _END, place + 1
    if not first and buffer[place : place + 1] == ",":
        place = _space_end(buffer, place + 1)
    elif not first and place < len(buffer):
        raise json.JSONDecodeError("Expecting ',' delimiter", "", 0)
    value, end = _DECODER.raw_decode(buffer, place)
    if _CUT.match(buffer, end):  # a number may go on, and a list has an end
        raise json.JSONDecodeError("Unterminated list", buffer, end)
    return value, end


def _space_end(buffer: str, place: int) -> int:
    found = _SPACE.match(buffer, place)
    return found.end() if found else place


def _may_go_on(error: json.JSONDecodeError, buffer: str) -> bool:
    """Whether JSON that could not be read may only be cut off, at the end of what was read of it so far."""
    return error.msg.startswith("Unterminated") or (bool(error.doc) and error.pos > len(buffer) - 16)


def json_whole(document: Document) -> Any:
    """The value of a document that is one JSON text of at most 64 MB; JSON within a JSON string is read too."""
    text = read_text(document).lstrip("\ufeff").strip()
    try:
        value = json.loads(text, strict=False)
        if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            value = json.loads(value, strict=False)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(_broken(document), code="broken_json") from error
    return value


def _broken(document: Document) -> str:
    return f"{document.name} is broken or cut off: its JSON does not end as it should."


def json_lines(document: Document) -> Iterator[tuple[str, Any]]:
    """(place, value) of the lines of a JSON Lines file; a line that is none gives a `Wrong` as its value."""
    with open_text(document) as file:
        number = 0
        while line := file.readline(MAX_LINE_CHARS):
            number += 1
            place = f"{document.name}, line {number}"
            text = line.strip().lstrip("\ufeff")
            if not text:
                continue
            try:
                yield place, json.loads(text, strict=False)
            except (ValueError, RecursionError):
                yield place, Wrong(place, "This line is not JSON; it may be cut off.")


@lru_cache(maxsize=8)
def _sketched(path: Path, name: str, pasted: bool, changed: int) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for document in documents(Upload(path, name, pasted)):
        if len(found) >= SKETCHED:
            break
        if document.suffix in {".json", ".af", ".jsonl", ".txt", ""} or len(found) == 0:
            with_json = sketch(document)
            if with_json:
                found[document.name] = with_json
    return found


def sketches(upload: Upload) -> dict[str, frozenset[str]]:
    """Sketches of the JSON files of an upload, by name: see `sketch`. Empty where it cannot be opened."""
    try:
        return _sketched(upload.path, upload.name, upload.pasted, upload.path.stat().st_mtime_ns)
    except (IzzyError, OSError):
        return {}


def sketch(document: Document) -> frozenset[str]:
    """The paths of keys at the beginning of a JSON file, down to three levels: `item.mapping`, `results.item.memory`.

    Also what the top is: `[`, `{`. Empty for what is no JSON.
    """
    try:
        sample = document.head(SAMPLE_BYTES)
        text = sample.decode(encoding_of(sample), "ignore").lstrip("\ufeff \t\r\n")
    except IzzyError:
        return frozenset()
    if text[:1] == '"':
        text = re.sub(r"\\(.)", lambda found: found[1] if found[1] in '"\\/' else " ", text[1:]).lstrip()
    if not _JSON.match(text):
        return frozenset()
    found, stack = {text[0]}, list[str]()
    for token in _TOKEN.finditer(text):
        if token[0][0] in "{[":
            stack.append("item")  # an object's keys take its place
        elif token[0] in "}]":
            stack = stack[:-1]
        elif token["key"] and 0 < len(stack) <= 3:
            stack[-1] = token[0][: token.start("key") - token.start()].strip('"')
            found.add(".".join(stack))
    return frozenset(found)
