"""Whether a text repeats only what somebody said: the one answer for the tools that write and for what is captured."""

from collections.abc import Iterable, Mapping
from typing import Any

from apps.search.language.analysis import detect_language

from .denial import turns_round
from .words import Heard, words_of

MOST_NEW = 0.5
"""The share of a rephrased text's words that may be new."""


def grounded(content: str, said: Iterable[str]) -> bool:
    """Whether everything telling in a text stands in what was `said`: addresses, numbers, dates and names to the letter,
    all other words by their stems.

    Nothing telling at all is not grounded, nor is what denies what was affirmed, or the other way round.
    """
    spoken = "\n".join(said)
    language = detect_language(f"{content}\n{spoken}")
    words = words_of(content, language)
    if not (words.stated or words.dates) or turns_round(content, [spoken]):
        return False
    missing = Heard.of(spoken, language).lacks(words)
    return not (missing.stated or missing.dates)


def rephrases(content: str, said: Iterable[str], others: Iterable[str]) -> bool:
    """`grounded` for what a model was asked to put into words of its own.

    Dates need not have been said, since it works them out from "yesterday". Of the words that are neither names, numbers
    nor addresses other forms count too, and half may be new, but none may come from what `others` said.
    """
    spoken, foreign = "\n".join(said), "\n".join(others)
    language = detect_language(f"{content}\n{spoken}")
    words = words_of(content, language)
    if not words.stated or turns_round(content, [spoken]):
        return False
    missing = Heard.of(spoken, language).lacks(words, forms=True)
    if missing.strict or len(missing.plain) > MOST_NEW * len(words.stated):
        return False
    return not Heard.of(foreign, language).has_any(missing)


def telling_text(content: str, fields: Mapping[str, Any]) -> str:
    """What of a new note has to be grounded: the text, and what of its labels says more than one word."""
    labels = [*fields.get("tags", []), fields.get("category", "")]
    return "\n".join([content, *(label for label in labels if label and not label.isalpha())])
