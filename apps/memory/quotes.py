"""Whose words a message holds: the speaker's own, and what it quotes; and whether a note repeats only such words."""

import re
from collections.abc import Iterable

from apps.search.language.analysis import DEFAULT_LANGUAGE, detect_language, split_words, stems, stop_words

from .capture.quotes import split_quotes
from .denial import turns_round

_BETWEEN = re.compile(r"[\s<>()\"',;]+")
_ADDRESS = re.compile(r"://|@|\w\.\w")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")

FRAMING = frozenset(
    [
        "user",
        "users",
        "nutzer",
        "nutzers",
        "benutzer",
        "utilisateur",
        "usuario",
        "utente",
        "name",
        "named",
        "names",
        "called",
        "say",
        "says",
        "said",
        "mention",
        "mentions",
        "mentioned",
        "state",
        "states",
        "stated",
        "tell",
        "tells",
        "told",
        "asked",
        "remember",
        "remembers",
        "note",
        "noted",
        "fact",
        "person",
        "currently",
        "now",
    ]
)
"""Words by which a note is put into the third person; they claim nothing by themselves."""

_LIKING = frozenset(
    [
        "like",
        "likes",
        "liked",
        "love",
        "loves",
        "loved",
        "enjoy",
        "enjoys",
        "enjoyed",
        "prefer",
        "prefers",
        "preferred",
        "favorite",
        "favourite",
    ]
)


def own_words(text: str) -> str:
    """A message without what it quotes; what is pasted without any mark cannot be told from the speaker's own."""
    return "\n".join(part for part, quoted in split_quotes(text) if not quoted)


def quotes_others(text: str) -> bool:
    """Whether a message holds something that `own_words` leaves out."""
    return any(quoted for _, quoted in split_quotes(text))


def grounded(content: str, said: Iterable[str]) -> bool:
    """Whether everything telling in a text stands in what was `said`: addresses and numbers to the letter, words by stem.

    Stop words and the framing of a note ("the user prefers") are not telling. Nothing telling at all is not grounded,
    nor is what denies what was affirmed, or the other way round.
    """
    spoken = "\n".join(said)
    if not spoken.strip():
        return False
    exact, heard = _exact(content), _exact(spoken)
    language = detect_language(f"{content}\n{spoken}")
    telling = _telling(content, language)
    if not (telling or exact) or not exact <= heard or not telling <= _all_stems(spoken, language):
        return False
    return not turns_round(content, [spoken])


def _exact(text: str) -> set[str]:
    """Addresses of the web and of mail, and numbers, as they are written."""
    addresses = {word.casefold().strip(".") for word in _BETWEEN.split(text) if _ADDRESS.search(word)}
    return addresses | set(_NUMBER.findall(text))


def _telling(text: str, language: str) -> set[str]:
    stop = stop_words(language) | stop_words(DEFAULT_LANGUAGE)
    words = [word for word in split_words(text) if word not in stop and word not in FRAMING]
    return set(stems(_alike(words), language))


def _all_stems(text: str, language: str) -> set[str]:
    return set(stems(_alike(split_words(text)), language))


def _alike(words: list[str]) -> list[str]:
    """The words, with one for all that say that somebody likes something."""
    return ["prefer" if word in _LIKING else word for word in words]
