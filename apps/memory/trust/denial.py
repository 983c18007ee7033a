"""Whether a text affirms or denies: "not allergic to walnuts" has all the words of "allergic to walnuts"."""

import re
from collections.abc import Iterable, Mapping

from apps.search.language.analysis import detect_language, split_words, stems, stop_words

_DENIAL = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|without|neither|nor|cannot|stopped|quit|former|formerly|longer|\w+n['’]t|"
    r"nicht|kein\w*|nie|niemals|ohne|nunca|jamás|sin|pas|jamais|sans|non|mai|senza)\b",
    re.IGNORECASE,
)
_AVERSION = re.compile(
    r"\b(?:hat(?:e|es|ed|ing)|dislik\w*|avoid\w*|detest\w*|refus\w*|loath\w*|can['’]t stand|hass\w*|meid\w*|odia\w*|déteste\w*)\b",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"[.!?;\n]+(?:\s|$)|\n")
_CLAUSES = re.compile(
    r"[,:]\s|\s[–—-]\s|\b(?:and|but|und|aber|sondern|et|mais|pero|ma|però|because|since|so|though|although|weil|da|porque|perché)\b",
    re.IGNORECASE,
)

_AFFIRMED, _DENIED = 1, 2


def denies(text: str) -> bool:
    """Whether a statement denies something; denied twice is affirmed."""
    return (len(_DENIAL.findall(text)) + len(_AVERSION.findall(text))) % 2 == 1


def turns_round(content: str, said: Iterable[str]) -> bool:
    """Whether a text denies what was only affirmed in what was `said`, or affirms what was only denied.

    Looked at sentence by sentence, by the stems of the telling words that occur in both. What was said is also looked
    at clause by clause ("no, I eat fish"), so that either way of reading it counts.
    """
    spoken = "\n".join(said)
    language = detect_language(f"{content}\n{spoken}")
    heard = _stances(spoken, language, by_clause=True)
    claimed = _stances(content, language, by_clause=False)
    return any(stance & ~heard[word] for word, stance in claimed.items() if word in heard)


def _stances(text: str, language: str, *, by_clause: bool) -> Mapping[str, int]:
    """By stem whether it stands in what affirms, in what denies, or (both bits) in either."""
    parts = _SENTENCES.split(text)
    if by_clause:
        parts += [clause for part in parts for clause in _CLAUSES.split(part)]
    skipped = stop_words(language) | stop_words("en")
    found: dict[str, int] = {}
    for part in parts:
        stance = _DENIED if denies(part) else _AFFIRMED
        words = [word for word in split_words(part) if word not in skipped and not denies(word)]
        for stem in stems(words, language):
            found[stem] = found.get(stem, 0) | stance
    return found
