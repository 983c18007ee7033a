"""Words are compared one by one: a text that says what a message tells in other words has its share of it."""

from pathlib import Path

import pytest

from apps.accounts.models import User
from apps.search.embedders import own
from apps.search.proactive import word_table as words
from apps.search.proactive.concern import whole_lesson
from apps.search.proactive.contextual_query import REPLY_CHARS, contextual_query, in_context
from apps.search.proactive.word_table import WordTable, word_table

from .conftest import save
from .test_recall import up


@pytest.fixture
def table() -> WordTable:
    found = word_table("en")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("word", "near", "far"),
    [
        ("physician", "an appointment with my doctor", "a password for the router"),
        ("dentist", "a sore tooth", "planting tulips"),
        ("kitten", "taking the cat to the vet", "the tax return"),
        ("mum", "calling my mother", "a new tyre"),
    ],
)
def test_a_word_is_nearer_to_one_of_its_matter(table: WordTable, word: str, near: str, far: str) -> None:
    likely, unlikely = table.shares({word: 1.0}, [near, far])
    assert likely > 0.15
    assert unlikely < likely / 2


def test_the_same_words_are_all_that_a_message_tells(table: WordTable) -> None:
    content = {"dentist": 0.8, "appointment": 0.6}
    shares = table.shares(content, ["The appointment is with the dentist.", "", "?! zzzzqx"])
    assert shares.tolist() == pytest.approx([1.0, 0.0, 0.0], abs=1e-3)


def test_a_word_counts_as_much_as_it_tells(table: WordTable) -> None:
    content = {"dentist": 0.9, "router": 0.3}
    dentist, router = table.shares(content, ["dentist", "router"])
    assert dentist == pytest.approx(0.75, abs=0.05)
    assert router == pytest.approx(0.25, abs=0.05)


def test_it_knows_a_message_by_half_of_what_it_tells(table: WordTable) -> None:
    assert table.knows({"dentist": 0.5, "стоматолог": 0.5})
    assert not table.knows({"dentist": 0.4, "стоматолог": 0.5})
    assert not table.knows({})


def test_there_is_no_table_for_other_languages() -> None:
    assert word_table("de") is None


def test_a_longer_word_is_known_by_its_pieces(table: WordTable) -> None:
    likely, same, unlikely = table.shares(
        {"shellfish": 1.0}, ["fresh fish", "no shellfish", "the tax return"]
    )
    assert same == pytest.approx(1.0, abs=1e-3)
    assert likely > 0.15
    assert unlikely < 0.05


def test_words_of_other_scripts_and_signs_are_compared_with_nothing(table: WordTable) -> None:
    assert not table.knows({"日本語": 1.0})
    assert table.shares({"日本語": 1.0, "москва": 1.0}, ["日本語 москва", "42 !?", ""]).tolist() == [
        0.0,
        0.0,
        0.0,
    ]


def test_without_the_package_or_with_a_damaged_one_there_is_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "model.zip").write_bytes(b"no zip")
    for found in ([], [tmp_path / "gone.zip"], [tmp_path / "model.zip"]):
        for module in (own, words):
            monkeypatch.setattr(module, "weights_files", lambda _, found=found: found)
        assert words.word_table.__wrapped__("en") is None
    assert len(caplog.records) == 2


def test_vectors_that_were_kept_are_those_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: WordTable
) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    made = words.read_table()
    (kept,) = tmp_path.iterdir()
    texts, content = ["an appointment with my doctor", "shellfish"], {"physician": 1.0, "oyster": 0.5}
    monkeypatch.setattr(words, "_shortened", None)  # it is read, not made again
    assert words.read_table().shares(content, texts).tolist() == made.shares(content, texts).tolist()
    kept.unlink()
    with pytest.raises(TypeError):
        words.read_table()


@pytest.mark.parametrize("damaged", [b"", bytes(4096)])
def test_kept_vectors_that_are_damaged_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: WordTable, damaged: bytes
) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    words.read_table()
    (kept,) = tmp_path.iterdir()
    size = kept.stat().st_size
    kept.write_bytes(damaged)
    texts, content = ["an appointment with my doctor", "shellfish"], {"physician": 1.0, "oyster": 0.5}
    made = words.read_table().shares(content, texts)
    assert made == pytest.approx(table.shares(content, texts), abs=0.02)
    assert kept.stat().st_size == size


def test_of_a_talk_the_newest_message_is_read_first() -> None:
    """An encoder reads the beginning of a long text: the answer before may be longer than that."""
    talk = ["How hot does a kiln get?", "Very hot. " * 100, "And would that be too much for mine?"]
    query = contextual_query(talk, ["en"])
    assert query.lean
    assert query.queries[0][0].split("\n")[:2] == [talk[2], talk[0]]


def test_a_note_in_other_words_comes_up_and_says_by_what(alice: User) -> None:
    save(alice, "My physician is Dr Lowe.", "The router stands in the hall.", "We painted the fence.")
    assert up(alice, "Who is my doctor again?") == ["My physician is Dr Lowe."]


def test_a_question_that_leans_on_what_concerned_nobody_concerns_nobody() -> None:
    idle = (
        "Translate 'force majeure', what does it mean literally?",
        "Superior force.",
        "and in Latin?",
    )
    personal = ("What should I get my sister for her wedding?", "Does she cook?", "and in Latin?")
    one, other = (contextual_query(talk, ["en"]) for talk in (idle, personal))
    assert one.lean == other.lean == 1.0
    lesson = whole_lesson(near=False)
    assert one.concern_by(lesson) < other.concern_by(lesson)
    alone = contextual_query(idle[-1:], ["en"])
    assert alone.before == ""
    assert one.concern_by(lesson) < alone.concern_by(lesson) < other.concern_by(lesson)


def test_an_encoder_reads_the_newest_message_first_and_the_end_of_a_long_answer() -> None:
    assert in_context(["and in Latin?"]) == ""
    long = "So many words. " * 100 + "Shall I order it?"
    whole = in_context(["earlier still", "Where is the nearest forge?", long, "yes"])
    newest, before, *reply = whole.split("\n")
    assert (newest, before) == ("yes", "Where is the nearest forge?")
    assert "\n".join(reply) == long[-REPLY_CHARS:]
    assert in_context(["Shall I order it?", "yes"]) == "yes\nShall I order it?"
    for talk in (["Where is the nearest forge?", "In Lyme Street.", "is it open"], ["a", "b"]):
        assert contextual_query(talk, ["en"]).whole == in_context(talk)
