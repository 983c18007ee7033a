"""Tables and plain lists."""

import pytest

from apps.core.errors import InvalidInput

from .reading import Found, Uploads


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_a_table_is_read_whatever_parts_its_columns(upload: Uploads, separator: str) -> None:
    rows = [
        ["ID", "Title", "Content", "Tags", "Created At", "Importance"],
        ["1", "Tea", '"Likes ""green"" tea,\nand; | cake"', '"food,drink"', "2024-05-01 10:00:00", "4"],
        ["2", "", "Hat einen Hund", "", "not a date", "high"],
        ["3", "", "", "", "", ""],
    ]
    found = Found(upload("notes.csv", "\r\n".join(separator.join(row) for row in rows)))

    assert found.reader.name == "csv"
    assert found.texts == ['Tea\n\nLikes "green" tea,\nand; | cake', "Hat einen Hund"]
    assert found.notes[0].tags == ["food", "drink"]
    assert found.notes[0].importance == 4
    assert str(found.notes[0].created_at) == "2024-05-01 10:00:00+00:00"
    assert found.notes[1].created_at is None
    assert found.skipped == ["notes.csv, row 4: It has no text."]


@pytest.mark.parametrize("name", ["notes.csv", "notes.txt", ""])
def test_a_table_is_known_by_its_content_too(upload: Uploads, name: str) -> None:
    assert Found(upload(name, "memory,tags\nLikes tea,food\nHas a dog,\n")).texts == [
        "Likes tea",
        "Has a dog",
    ]


@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("Inhalt;Schlagwörter;Erstellt", "Mag Tee;Essen;01.05.2024"),
        ("内容,标签,日期", "喜欢茶,食物,2024-05-01"),
    ],
)
def test_columns_are_known_in_other_languages(upload: Uploads, head: str, row: str) -> None:
    [note] = Found(upload("n.csv", f"{head}\n{row}\n")).notes

    assert note.content in {"Mag Tee", "喜欢茶"}
    assert len(note.tags) == 1
    assert note.created_at


def test_without_known_names_the_column_of_the_longest_texts_counts(upload: Uploads) -> None:
    found = Found(upload("n.csv", "a,The user likes long walks\nb,The user has a dog\n"))

    assert found.texts == ["The user likes long walks", "The user has a dog"]


def test_an_open_quotation_mark_is_named_with_its_row(upload: Uploads) -> None:
    found = Found(upload("n.csv", 'content,tags\nfine,x\n"never closed,y\nlost,z\n'))

    assert found.texts == ["fine"]
    assert found.wrong == ["n.csv, row 3: A quotation mark is opened here and never closed."]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252", "cp1251"])
def test_tables_come_in_other_encodings(upload: Uploads, encoding: str) -> None:
    text = (
        "Привет, мир! Это заметка о чае и пирогах"
        if encoding == "cp1251"
        else "Größe über alles; Äpfel, Öl und süße Früchte für Köln"
    )
    found = Found(upload("n.csv", f'id,content\n1,"{text}"\n'.encode(encoding)))

    assert found.texts == [text]


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Ada mag Tee; grün"),
        ("cp1252", "Créée l’été « où »…"),
        ("cp1252", "ä"),
        ("cp1251", "Я люблю чай и хлеб"),
        ("shift_jis", "私はお茶が好きです。コーヒーも。"),
    ],
)
def test_the_encoding_of_a_short_table_is_told_too(upload: Uploads, encoding: str, text: str) -> None:
    found = Found(upload("n.csv", f'id,content\n1,"{text}"\n'.encode(encoding)))

    assert found.texts == [text]


ANSWER = """Here is what I remember about you:

## Preferences
- [2024-05-02] - Likes green tea
- [unknown] - Dislikes meetings
  before ten
1. 2025-01-01: Runs on Sundays
* **Name**: Ada

**Work:**
• 東京で働いている
- Likes green tea
"""


@pytest.mark.parametrize("fence", ["", "```"])
def test_a_pasted_answer_gives_a_note_a_bullet(upload: Uploads, fence: str) -> None:
    found = Found(upload("", f"{fence}\n{ANSWER}\n{fence}", pasted=True))

    assert found.reader.name == "text"
    assert found.texts == [
        "Likes green tea",
        "Dislikes meetings\nbefore ten",
        "Runs on Sundays",
        "**Name**: Ada",
        "東京で働いている",
    ]
    assert [str(note.created_at)[:10] for note in found.notes] == [
        "2024-05-02",
        "None",
        "2025-01-01",
        "None",
        "None",
    ]
    assert found.notes[0].tags == ["Preferences"]
    assert found.notes[4].tags == ["Work"]
    assert len(found.skipped) == 1


def test_lines_without_bullets_are_a_note_each(upload: Uploads) -> None:
    found = Found(
        upload(
            "",
            "Aime le vin.\nHabite à Lyon\nand has a long sentence that\ngoes on here.\n\nJoue du piano.",
            pasted=True,
        )
    )

    assert found.texts == [
        "Aime le vin.",
        "Habite à Lyon\nand has a long sentence that\ngoes on here.",
        "Joue du piano.",
    ]


def test_a_list_all_in_small_letters_is_a_note_each_line_too(upload: Uploads) -> None:
    listed = Found(upload("", "likes tea\nowns a boat\n\nplays chess", pasted=True))
    assert listed.texts == ["likes tea", "owns a boat", "plays chess"]


def test_a_markdown_file_of_bullets_is_a_list(upload: Uploads) -> None:
    assert Found(
        upload("memories.md", "# Memories\n- Likes tea\n- Has a dog\n- Lives in Rome\n")
    ).texts == ["Likes tea", "Has a dog", "Lives in Rome"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"   \n",
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x01\xff\xfe\x00",
        b"%PDF-1.7\n%\xe2\xe3",
        b"\x00\x01\x02\x03" * 99,
    ],
)
def test_what_is_no_text_is_refused_with_a_sentence(upload: Uploads, content: bytes) -> None:
    with pytest.raises(InvalidInput):
        Found(upload("file", content))


def test_a_number_of_thousands_of_digits_is_refused_with_a_sentence(upload: Uploads) -> None:
    with pytest.raises(InvalidInput, match="broken"):
        Found(upload("m.json", '[{"content": "Likes tea", "id": ' + "1" * 5000 + "}]"))


def test_a_dated_line_outside_of_the_list_is_no_note(upload: Uploads) -> None:
    text = "- Likes tea\n- Has a dog\n2026-05-01: That is all.\nThat is all."
    assert Found(upload("memories.txt", text)).texts == ["Likes tea", "Has a dog"]


@pytest.mark.parametrize(
    ("written", "tags"),
    [
        ("machine learning, C#", ["machine learning", "C#"]),
        ("#one #two", ["one", "two"]),
        ("#one, #two words #three", ["one", "two words", "three"]),
    ],
)
def test_tags_are_parted_by_commas_or_by_their_signs(
    upload: Uploads, written: str, tags: list[str]
) -> None:
    assert Found(upload("notes.csv", f'memory,tags\nLikes tea,"{written}"\n')).notes[0].tags == tags
