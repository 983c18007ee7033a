"""The benchmarks run through the real paths and report what they promise."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError

from apps.search.models import Passage
from apps.search.proactive.odds import (
    ADAPTED,
    AGAINST,
    BESIDE,
    ENCODED_OCCASION,
    ENCODER,
    EVIDENCE,
    MANY,
    odds_of,
)
from apps.search.proactive.odds import Observed as PeopleObserved
from apps.search.ranking.relevance import CALIBRATION
from apps.search.ranking.signals import WEIGHTS
from benchmarks import calibrate, ingest
from benchmarks._people import KINDS, Person, Said
from benchmarks._questions import PART, Block, Conversation, Question, Tally, message_of
from benchmarks._variants import VARIANTS, bare_letters, misspelt, numeric_dates, varied
from benchmarks.calibrate import area_under_curve, logistic
from benchmarks.report import Report
from benchmarks.retrieval import NAMES, REFITTED, Observed, fitted_weights, mean_recall
from benchmarks.weights import AUDIBLE, Choice, _add_figures, _fitted, _wanted
from tests.benchmarking import benchmark

DATA = [
    {
        "id": "talk",
        "messages": [
            {
                "external_id": f"m{number}",
                "session": 1 + number // 3,
                "speaker": ("Ann", "Ben")[number % 2],
                "text": text,
                "created_at": f"2025-0{1 + number // 3}-01T10:00:00",
            }
            for number, text in enumerate(
                [
                    "I adopted a dog.",
                    "Lovely!",
                    "He is called Rex.",
                    "I bought a boat.",
                    "A sailing boat?",
                    "Yes, a red one.",
                ]
            )
        ],
        "questions": [
            {"question": "What is the dog called?", "category": "single", "evidence": ["m2"]},
            {"question": "What did Ben buy?", "category": "single", "evidence": ["m3"]},
            {"question": "No evidence is known", "category": "none", "evidence": []},
        ],
    }
]

OTHER_TALK = {
    "messages": [
        {
            "external_id": f"n{number}",
            "session": 1,
            "speaker": ("Eve", "Dan")[number % 2],
            "text": text,
            "created_at": "2025-05-01T10:00:00",
        }
        for number, text in enumerate(
            ["I planted roses.", "Which colour?", "Yellow roses, by the fence."]
        )
    ],
    "questions": [
        {"question": "Which roses did Eve plant?", "category": "single", "evidence": ["n2", "n0"]}
    ],
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("extra", [[], ["--together"]])
def test_retrieval_reports_recall_beside_its_baselines(tmp_path: Path, extra: list[str]) -> None:
    (tmp_path / "data.json").write_text(json.dumps(DATA))
    figures = benchmark("retrieval", "--dataset", str(tmp_path / "data.json"), *extra)
    methods = {row["method"]: row for row in figures["sections"][0]["rows"]}
    assert set(methods) == {"Izzy", "plain BM25", "plain cosine"}
    assert methods["Izzy"]["recall@10"] == 100
    assert methods["Izzy"]["evidence@500"] == methods["Izzy"]["whole"] == 100
    assert methods["Izzy"]["questions"] == 2
    assert figures["settings"]["largest context block, tokens"] <= 500
    assert all(figures["aims"].values())
    assert not Passage.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_weights_are_fitted_without_the_conversation_that_is_asked(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text(json.dumps([*DATA, {**OTHER_TALK, "id": "other"}]))
    figures = benchmark("retrieval", "--leave-one-out", "--dataset", str(tmp_path / "data.json"))
    sections = {section["title"]: section["rows"] for section in figures["sections"]}
    methods = {row["method"]: row for row in sections["Recall in %, all questions"]}
    assert methods[REFITTED]["questions"] == methods["Izzy"]["questions"] == 3
    fitted = sections["Weights fitted without"]
    assert [row["conversation"] for row in fitted] == ["talk", "other", "in use"]
    assert fitted[-1] == {"conversation": "in use", **WEIGHTS}
    (left_out,) = [rows for title, rows in sections.items() if title.endswith("one signal left out")]
    assert [row["signal"] for row in left_out] == list(WEIGHTS)
    assert any("Not refitted" in note for note in figures["notes"])


def test_leaving_one_out_needs_two_conversations(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text(json.dumps(DATA))
    with pytest.raises(CommandError, match="two conversations"):
        benchmark("retrieval", "--leave-one-out", "--dataset", str(tmp_path / "data.json"))


def test_a_message_that_was_cut_is_evidence_but_not_whole() -> None:
    block = Block({"a", "b"}, "Ann: We saw the red boat. Ben: The harbour …", {"red", "boat"})
    tally = Tally()
    evidence = {"a": ("We saw  the red boat.",), "b": ("The harbour was closed.",), "c": ()}
    tally.add(["a"], Question("What did Ann see?", "single", evidence, "a red car"), block)
    assert tally.evidence == [2 / 3]
    assert tally.whole == [1 / 3]
    assert tally.answered == [1 / 2]


def test_a_message_in_parts_is_found_by_any_and_whole_by_all() -> None:
    question = Question(
        "What did Ann see?", "single", {"a": ("The boat", "was red."), "b": ("No.",)}, ""
    )
    names = {f"a{PART}0", f"b{PART}1"}
    tally = Tally()
    tally.add(["c", f"a{PART}1", f"a{PART}0"], question, Block(names, "Ann: The boat", set()))
    assert tally.recall[5] == [1 / 2]
    assert tally.reciprocal == [1 / 2]
    assert (tally.evidence, tally.whole) == ([1], [0])
    tally.add(["b"], question, Block(names, "Ann: The boat Ann: was red. No.", set()))
    assert tally.whole == [0, 1]


def variant_of(name: str, *, wanted: str = "") -> Conversation:
    texts = (
        "We got there on May 3, 2023, and the harbour was closed. Nobody told us. [shares a photo: a boat. And a dog]",
        "Oh no!",
        "That's sad, Ann. We were lucky: we went in June 2023, because Ben-Eli had asked.",
    )
    messages = [
        {"external_id": f"m{number}", "speaker": ("Ann", "Ben")[number % 2], "content": text}
        for number, text in enumerate(texts * 8)
    ]
    question = Question(
        "What did Ann tell Ben?", "single", {"m0": (), **({wanted: ()} if wanted else {})}, ""
    )
    return varied(Conversation("talk", {"1": messages}, [question]), name)


def test_bursts_hold_all_words_in_their_order() -> None:
    plain, bursts = variant_of("plain"), variant_of("bursts")
    parts: dict[str, list[str]] = {}
    for message in bursts.messages:
        parts.setdefault(message_of(message["external_id"]), []).append(message["content"])
    assert {name: " ".join(texts) for name, texts in parts.items()} == {
        message["external_id"]: message["content"] for message in plain.messages
    }
    assert {1, 3} < set(map(len, parts.values())) <= {1, 2, 3, 4}
    assert all(
        "[" not in text or "[shares a photo: a boat. And a dog]" in text
        for texts in parts.values()
        for text in texts
    )
    assert bursts.questions[0].evidence["m0"] == tuple(parts["m0"])
    assert bursts == variant_of("bursts")


def test_turns_leave_out_acknowledgements_that_no_question_wants() -> None:
    assert "Oh no!" not in [message["content"] for message in variant_of("turns").messages]
    kept = variant_of("turns", wanted="m1")
    assert [message["content"] for message in kept.messages].count("Oh no!") == 1
    assert kept.questions[0].evidence["m1"] == ("Oh no!",)


def test_names_of_a_question_are_misspelt_by_one_edit() -> None:
    (question,) = variant_of("names").questions
    ann, ben = re.fullmatch(r"What did (\w+) tell (\w+)\?", question.text).groups()  # type: ignore[union-attr]
    assert (ann[0], ben[0]) == ("A", "B")
    assert ann != "Ann"
    assert ben != "Ben"
    assert misspelt("When did Christmas come in May?") == "When did Christmas come in May?"


def test_dates_are_written_in_numbers() -> None:
    for text in ("Seen on 3 May 2023.", "Seen on May 3rd, 2023.", "Seen on the 3rd of May,2023."):
        written = numeric_dates(text)
        assert any(form in written for form in ("5/3/2023", "5/3/23", "2023-05-03", "03.05.23"))
        assert "May" not in written
    assert numeric_dates("On May 3 we may go.") == "On 5/3 we may go."
    assert numeric_dates("In May, and in March 9 of us") == "In May, and in 3/9 of us"
    texts = [message["content"] for message in variant_of("dates").messages]
    assert "May" not in texts[0]
    assert "June" not in texts[2]


def test_letters_have_neither_capitals_nor_punctuation() -> None:
    assert bare_letters("It's Ann's well-known 2.5 kg dog, isn't it? (Yes!)") == (
        "its anns well known 2.5 kg dog isnt it yes"
    )
    conversation = variant_of("letters")
    assert conversation.questions[0].text == "what did ann tell ben"
    assert conversation.messages[0]["speaker"] == "Ann"
    assert conversation.questions[0].evidence["m0"] == (conversation.messages[0]["content"],)


@pytest.mark.django_db(transaction=True)
def test_each_variant_is_measured_beside_the_plain_set(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text(json.dumps([*DATA, {**OTHER_TALK, "id": "other"}]))
    figures = benchmark(
        "retrieval", "--variant", "all", "--leave-one-out", "--dataset", str(tmp_path / "data.json")
    )
    sections = {section["title"]: section["rows"] for section in figures["sections"]}
    rows = [row for row in sections["By variant"] if row["method"] == "Izzy"]
    assert [row["variant"] for row in rows] == ["plain", *VARIANTS]
    assert all(row["recall@10"] == 100 for row in rows)
    assert [row["conversation"] for row in sections["Weights fitted without"]] == [
        "talk",
        "other",
        "in use",
    ]
    assert not Passage.objects.exists()


def test_fitted_weights_find_the_signal_that_tells() -> None:
    draw = np.random.default_rng(1)
    signals = draw.random((40, len(NAMES), 50)).astype(np.float32)
    evidence = np.argmax(signals[:, NAMES.index("name")], axis=1)
    right = (np.arange(50)[None, :] == evidence[:, None]).astype(np.int8)
    observed = Observed(signals, np.zeros(50, dtype=np.float32), right, np.ones(40, dtype=np.int64))
    fitted = fitted_weights([observed])
    assert fitted["name"] == max(fitted.values())
    assert mean_recall([observed], np.array(list(fitted.values()), dtype=np.float32)) > 0.8


@pytest.mark.django_db(transaction=True)
def test_calibrate_fits_without_each_conversation_and_says_how_good_the_score_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrate, "SIZES", (3,))
    monkeypatch.setattr(calibrate, "DRAWS", 1)
    monkeypatch.setattr(calibrate, "NONSENSE", ("Hi there", "xyzzy plugh", "hello", "blorf snazz"))
    (tmp_path / "data.json").write_text(json.dumps([*DATA, {**OTHER_TALK, "id": "other"}]))
    figures = benchmark("calibrate", "--dataset", str(tmp_path / "data.json"))
    sections = {section["title"]: section["rows"] for section in figures["sections"]}
    fitted = {row["without"]: row for row in sections["Fitted"]}
    assert list(fitted) == ["talk", "other", "nothing left out", "in use"]
    assert fitted["in use"]["fall"] == CALIBRATION.fall
    assert fitted["talk"]["offset"] != fitted["other"]["offset"]
    best = {row["conversation"]: row for row in sections["Score in use: the best hit"]}
    assert (best["own"]["questions"], best["other"]["questions"]) == (3, 3)
    assert best["other"]["area under curve"] > 0.5
    assert figures["aims"]["in use: no nonsense is worth showing"] is True
    assert not Passage.objects.exists()


def test_the_area_is_the_share_of_pairs_in_order() -> None:
    assert area_under_curve(np.array([3.0, 1.0]), np.array([2.0, 1.0])) == (1 + 1 + 0 + 0.5) / 4


def test_the_fit_finds_the_factors_that_made_the_data() -> None:
    draw = np.random.default_rng(1)
    features = np.c_[draw.normal(size=(20_000, 2)), np.ones(20_000)]
    chance = 1 / (1 + np.exp(-features @ [2.0, -1.0, 0.5]))
    found = logistic(features, draw.random(20_000) < chance, np.ones(20_000))
    assert found == pytest.approx([2.0, -1.0, 0.5], abs=0.1)


@pytest.mark.parametrize(
    "content", ["", "[", "{}", '[{"messages": []}]', '[{"messages": [], "questions": []}]', "[1]"]
)
def test_what_is_no_data_set_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "data.json").write_text(content)
    with pytest.raises(CommandError):
        benchmark("retrieval", "--dataset", str(tmp_path / "data.json"))


@pytest.mark.django_db(transaction=True)
def test_latency_puts_each_figure_beside_its_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    if url := os.environ.get("TEST_DATABASE_URL"):  # of its own processes
        monkeypatch.setenv("DATABASE_URL", url)
    figures = benchmark("latency", "--sizes", "50", "--others", "50", "--no-http", "--quick")
    rows = {row["what"]: row for row in figures["sections"][0]["rows"]}
    for name in ("vector part", "search", "load the index", "save one note", "save in bulk, per note"):
        assert rows[name]["p50"] > 0
        assert rows[name]["floor p50"] > 0
    assert "search, 50 of another user beside" in rows
    assert not Passage.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_ingest_finds_what_it_took_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "BATCHES", (1, 5))
    monkeypatch.setattr(ingest, "SINGLES", 2)
    figures = benchmark("ingest", "--messages", "20", "--extract")
    rows = {row["messages per call"]: row for row in figures["sections"][0]["rows"]}
    assert rows["1"]["p50"] > rows["1"]["floor"] > 0
    assert rows["5 that came before"]["p50"] > 0
    assert figures["settings"]["messages of the session at the end"] >= 18
    assert figures["aims"]["what was sent is found when the call answers"] is True
    assert not Passage.objects.exists()


def test_the_bar_of_an_encoder_is_swept_and_kept_where_weights_are_fitted() -> None:
    """A note that stands out by so much less than chance speaks below its bar alone."""
    evidence = np.zeros((1, len(EVIDENCE)), dtype=np.float32)
    evidence[0, [ADAPTED, ENCODED_OCCASION]] = -0.5, -2.5
    seen = PeopleObserved(
        evidence, np.zeros(len(AGAINST), dtype=np.float32), np.array([1]), [True], ("",), ENCODER, 14
    )
    ours, yes, no = (np.array([given]) for given in (5, True, False))
    person = Person("anna", "en", (), ())
    choices = [
        Choice(person, Said(kind, ("x",), frozenset(wanted), frozenset()), seen, given, no, no, ours)
        for kind in (*KINDS, "nobody")
        for wanted, given in [({"a"}, yes) if kind not in {"idle", "nobody"} else (set(), no)]
    ]
    assert _fitted(choices, [], ENCODER).audible == ENCODER.audible
    report = Report("weights")
    eager = replace(ENCODER, threshold=-9.0)
    _add_figures(report, "swept", choices, [eager] * len(choices))
    (section,) = report.sections
    column = section.columns.index("direct %")
    heard = {row[1]: row[column] for row in section.rows if row[0] == -9.0}
    assert heard == {bar: 100.0 * (bar < -0.5) for bar in AUDIBLE}


def test_the_fit_of_the_second_step_finds_the_weights_that_made_what_is_wanted() -> None:
    draw = np.random.default_rng(1)
    true = np.array(
        [*(0.3, 0.0, 3.0, 0.0, 2.5, 0.4, 1.5), *(2.0, -2.5, -2.0, -3.0), *(0.3, 0.4, 0.3, 0.5)]
    )
    like, choices = replace(ENCODER, wanted=tuple(true)), []
    person = Person("fifth anna", "de", (), ())
    for _ in range(3000):
        size = int(draw.integers(5, 20))
        usual = draw.normal([-1, 0.1, 0.2, -1, 0.2, -1, -1], [1, 0.1, 0.4, 1, 0.3, 1, 1], (size, 7))
        evidence = np.clip(usual, -2.5, 2.5).astype(np.float32)
        against = np.array([1, draw.random(), *draw.normal(0, 0.8, 2)], dtype=np.float32)
        number = int(draw.choice([14, 50, MANY]))
        places, no = np.arange(size), np.zeros(size, dtype=bool)
        seen = PeopleObserved(evidence, against, places, [True] * size, ("",) * size, like, number)
        wanted = draw.random(size) < 1 / (1 + np.exp(-odds_of(seen) @ true))
        said = Said("oblique", ("x",), frozenset("a" if wanted.any() else ""), frozenset())
        choices.append(Choice(person, said, seen, wanted, no, no, np.full(size, 3)))
    found = np.array(_wanted(choices, like))
    assert len(found) == len(EVIDENCE) + len(AGAINST) + len(BESIDE)
    assert not found[true == 0].any()
    assert np.abs(found - true).max() < 0.35
    assert np.corrcoef(found, true)[0, 1] > 0.99
    for few in (choices[:1], [replace(choices[0], wanted=np.zeros_like(choices[0].wanted))]):
        assert np.isfinite(_wanted(few, like)).all()
