"""Texts made to take long: each took minutes once, and now costs about what an ordinary one of its length does."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from apps.agent.offline.notes import MAX_CHOICES, _clauses, corrected
from apps.agent.tools.results import quoted
from apps.chat.summary.selectors import _TAG
from apps.core import text as core_text
from apps.core.quotes import MAX_CHARS, own_words, split_quotes
from apps.core.unmarked import unmarked
from apps.memory.prompts import json_in
from benchmarks.hostile import ORDINARY, Subject, subjects


@pytest.mark.parametrize("subject", subjects(), ids=lambda subject: subject.name)
def test_whatever_reads_text_from_outside_reads_all_kinds_of_it(subject: Subject) -> None:
    for unit in (ORDINARY, "a", "\n", " ", "<", "é", "1-", *subject.units):
        subject.call(subject.before + unit * (250 // len(unit)) + subject.after)


class Counting:
    """A pattern that knows how many characters it was asked to look at."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern, self.looked_at = pattern, 0

    def findall(self, text: str) -> list[str]:
        self.looked_at += len(text)
        return self.pattern.findall(text)


@pytest.mark.parametrize("unit", ["。", "a\n", ".\n", "日。", "a", "a "])
def test_text_is_cut_into_passages_by_looking_a_few_times_at_each_character(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = Counting(core_text._PIECE)
    monkeypatch.setattr(core_text, "_PIECE", counting)
    text = unit * (20_000 // len(unit))
    chunks = core_text.chunk_text(text)
    assert all(core_text.estimate_tokens(chunk) <= 500 for chunk in chunks)
    assert counting.looked_at < 40 * len(text)


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (json_in, "[" * 1_000_000, None),
        (json_in, "[{" * 500_000, None),
        (lambda text: len(quoted("page", text)), "<" + " " * 1_000_000, 1_000_016),
        (lambda text: quoted("page", text)[:20], "<  / page>", "<page>\n&lt;  / page>"),
        (unmarked, " " * 1_000_000 + "x", " " * 1_000_000 + "x"),
        (lambda text: _TAG.sub("", text), "<message " * 500_000, " " * 500_000),
        (lambda text: _TAG.sub("", text), '<message from="user">a</message>', "a"),
        (lambda text: len(_clauses(text)), "a" + " " * 1_000_000 + "b", 1),
        (lambda text: len(corrected(text, "The user likes green tea.")[1]), "The user likes tea. " * 1_000, MAX_CHOICES + 1),
    ],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_a_text_that_took_minutes_is_read_at_once(
    read: Callable[[str], Any], text: str, expected: object
) -> None:
    assert read(text) == expected


def test_of_a_very_long_message_the_end_counts_as_quoted() -> None:
    assert split_quotes("<doc " * 200_000)[0][1]
    assert own_words("I like tea. " * 10_000) == ("I like tea. " * 10_000)[:MAX_CHARS].strip()
