"""Tables: CSV and its relatives, whatever their separator and their words for the columns."""

import csv
import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from apps.core.errors import InvalidInput, IzzyError

from ..records import Read, Reader, Skipped, Upload, Wrong
from .archives import Document, documents
from .encoding import SAMPLE_BYTES, encoding_of, open_text, sketch
from .fields import category_of, joined, key_of, kind_of, moment, notes_of, tags_of, text_of

SEPARATORS = ",;\t|"
_SEPARATOR = re.compile(r"\ufeff?sep=([,;\t|])\s*$", re.MULTILINE)  # how Excel names it in a first line
_NO_SEPARATOR = "\x1f"  # for lines that are no rows: their commas belong to their text
MAX_FIELD_CHARS = 4_000_000
_COLUMNS = {
    "content": "content text memory memories note notes fact body value memo message inhalt notiz erinnerung texte contenu "
    "souvenir texto contenido recuerdo nota testo contenuto ricordo tekst treść 内容 记忆 本文 メモ 내용 текст заметка",
    "title": "title name subject heading headline titel titre título titolo 标题 タイトル 제목 заголовок",
    "description": "description beschreibung descripción descrizione details detail comment comments",
    "id": "id uuid key note_id memory_id guid",
    "tags": "tags tag labels label keywords keyword categories schlagwörter étiquettes etiquetas etichette 标签 タグ теги",
    "category": "category kategorie catégorie categoría categoria topic group folder",
    "kind": "kind type art typ memory_type",
    "importance": "importance priority wichtigkeit rating",
    "created": "created created_at createdat created_date creation_date date datetime timestamp time added saved date_saved "
    "erstellt datum créé fecha creado data creato 日期 日付 날짜 дата",
    "updated": "updated updated_at updatedat modified modified_at last_modified changed geändert modifié",
    "valid_from": "valid_from",
    "valid_to": "valid_to expires expires_at expiration_date expiration",
}
_NAMES = {name: column for column, names in _COLUMNS.items() for name in names.split()}


def matches(upload: Upload) -> bool:
    try:
        listed = [
            each
            for each in documents(upload)
            if each.suffix in {".csv", ".tsv", ""} or upload.head(2) != b"PK"
        ]
        return bool(listed) and all(_is_table(document) for document in listed[:3])
    except (IzzyError, csv.Error):
        return False


def _is_table(document: Document) -> bool:
    """Named as a table, or with a column of texts in a first line of several columns."""
    if sketch(document):
        return False
    sample = document.head(SAMPLE_BYTES)
    first, _, rest = sample.decode(encoding_of(sample), "replace").lstrip("\ufeff").partition("\n")
    if document.suffix in {".csv", ".tsv"}:
        return bool(first.strip())
    header = _header(next(csv.reader([first], delimiter=_separator(first + "\n" + rest)), []))
    return (
        len(header) > 1
        and "content" in header.values()
        and len(header) == sum(map(bool, header.values()))
        and bool(rest.strip())
    )


def read(upload: Upload) -> Iterator[Read]:
    csv.field_size_limit(MAX_FIELD_CHARS)
    listed = documents(upload)
    tables = [each for each in listed if each.suffix in {".csv", ".tsv"}] or listed
    for document in tables:
        sample = document.head(SAMPLE_BYTES)
        separator = _separator(sample.decode(encoding_of(sample), "replace"))
        with open_text(document) as file:
            lines = (
                line.replace("\x00", "\ufffd").lstrip("\ufeff")
                for line in file
                if not _SEPARATOR.match(line)
            )
            yield from _rows(
                document.name, csv.reader(lines, delimiter=separator, strict=True, skipinitialspace=True)
            )


def _separator(sample: str) -> str:
    """The sign that parts the columns: the one that the first lines hold equally often, or the first line most often."""
    if found := _SEPARATOR.match(sample):
        return found[1]
    lines = [re.sub(r'"[^"]*"', "", line) for line in sample.splitlines()[:20] if line.strip()]
    if not lines:
        return ","

    def score(sign: str) -> tuple[bool, int]:
        counts = [line.count(sign) for line in lines]
        return counts[0] > 0 and len(set(counts)) == 1, counts[0]

    best = max(SEPARATORS, key=score)
    if best not in lines[0]:
        return ","
    named = (
        "content" in _header(next(csv.reader([lines[0].lstrip("\ufeff")], delimiter=best), [])).values()
    )
    return best if named or score(best)[0] or len(lines) == 1 else _NO_SEPARATOR


def _header(cells: list[str]) -> dict[int, str]:
    """The meaning of each named column, "" where the name says nothing."""
    names = [re.sub(r"[\s-]+", "_", cell.strip().lower()) for cell in cells]
    found: dict[int, str] = {}
    for place, name in enumerate(names):
        column = _NAMES.get(name, "")
        found[place] = "" if column in found.values() and column != "tags" else column
    return found


def _rows(name: str, rows: Any) -> Iterator[Read]:
    counted = enumerate(_safe(rows), start=1)
    head = list(islice(counted, 50))
    texts = [row for _, row in head if isinstance(row, list) and any(row)]
    if not texts:
        raise InvalidInput(f"{name} holds no rows.")
    header = _header(texts[0])
    named = any(header.values())
    if not named:
        header = dict.fromkeys(range(max(map(len, texts))), "")
    if "content" not in header.values():
        header[_widest(texts[1:] if named and len(texts) > 1 else texts, header)] = "content"
    first = True
    for number, row in chain(head, counted):
        place = f"{name}, row {number}"
        if isinstance(row, str):
            yield Wrong(place, row)
        elif any(map(text_of, row)):
            if not (first and named):
                yield from _note(place, row, header)
            first = False


def _safe(rows: Any) -> Iterator[list[str] | str]:
    """The rows; a sentence for one that cannot be read."""
    while True:
        try:
            yield next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            cut = "unexpected end" in str(error)
            yield (
                "A quotation mark is opened here and never closed."
                if cut
                else "Its quotation marks do not fit together."
            )


def _widest(rows: list[list[str]], header: dict[int, str]) -> int:
    """The column without a meaning, or whatever column, whose texts are longest."""
    free = [place for place, column in header.items() if column in {"", "description", "title"}] or list(
        header
    )
    return max(free, key=lambda place: sum(len(row[place]) for row in rows if place < len(row)))


def _note(place: str, row: list[str], header: dict[int, str]) -> Iterator[Read]:
    cells: dict[str, str] = {}
    for number, column in header.items():
        text = text_of(row[number]) if number < len(row) else ""
        if column and text:
            cells[column] = joined([cells.get(column, ""), text], ", ")
    content = cells.get("content", "")
    title = cells.get("title", "")
    body = joined(
        [
            title if title and not content.startswith(title) else "",
            content,
            cells.get("description", ""),
        ],
        "\n\n",
    )
    if not body:
        yield Skipped(place, "It has no text.")
        return
    importance = cells.get("importance", "")
    yield from notes_of(
        place,
        key_of(cells.get("id"), "row", body),
        body,
        kind=kind_of(cells.get("kind")),
        tags=tags_of(cells.get("tags"), cells.get("category")),
        category=category_of(cells.get("category")),
        importance=int(importance) if importance in {"1", "2", "3", "4", "5"} else None,
        created_at=moment(cells.get("created")),
        updated_at=moment(cells.get("updated")),
        valid_from=moment(cells.get("valid_from")),
        valid_to=moment(cells.get("valid_to")),
    )


reader = Reader(
    name="csv",
    title="Table (CSV, TSV)",
    matches=matches,
    read=read,
    help="A table with a column of texts (content, text, memory, note …); columns such as tags, created, id are read too.",
    rank=85,
)
