"""Whose words a message holds: the speaker's own, and what it quotes; and whether a note repeats only such words."""

import re
from collections.abc import Iterable

from apps.search.language.analysis import detect_language, split_words, stems, stop_words

_FENCE = re.compile(r"(?ms)^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)")
_TAGGED = re.compile(
    r"(?is)<(document|documents|quote|blockquote|page|email|file|context|article)\b[^>]*>.*?(?:</\1\s*>|\Z)"
)
_TRIPLE = re.compile(r'(?s)"""(.*?)(?:"""|\Z)')
_FORWARDED = re.compile(
    r"(?im)^[ \t]*(?:-{2,}[ \t]*(?:original message|forwarded message|begin forwarded message|ursprüngliche nachricht|"
    r"weitergeleitete nachricht|message d'origine|mensaje original).*|begin forwarded message:.*|"
    r"on .{4,80} wrote:[ \t]*|am .{4,80} schrieb .{2,80}:[ \t]*)$"
)
_ADDRESS = re.compile(r"[^\s<>()\"',;]*(?:://|@|\w\.\w)[^\s<>()\"',;]*")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")

FRAMING = frozenset(
    [
        "user",
        "users",
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
    """A message without what it quotes: lines that begin with >, fenced blocks, tagged or triple-quoted documents, and
    forwarded or answered mail. What is pasted without any mark cannot be told from the speaker's own."""
    forwarded = _FORWARDED.search(text)
    if forwarded:
        text = text[: forwarded.start()]
    for pattern in (_FENCE, _TAGGED, _TRIPLE):
        text = pattern.sub("\n", text)
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(">")).strip()


def quotes_others(text: str) -> bool:
    """Whether a message holds something that `own_words` leaves out."""
    return len("".join(own_words(text).split())) < len("".join(text.split()))


def grounded(content: str, said: Iterable[str]) -> bool:
    """Whether everything telling in a text stands in what was `said`: addresses and numbers to the letter, words by stem.

    Stop words and the framing of a note ("the user prefers") are not telling. Nothing telling at all is not grounded.
    """
    spoken = "\n".join(said)
    if not spoken.strip():
        return False
    exact = {
        match.casefold().strip(".") for pattern in (_ADDRESS, _NUMBER) for match in pattern.findall(content)
    }
    heard = {
        match.casefold().strip(".") for pattern in (_ADDRESS, _NUMBER) for match in pattern.findall(spoken)
    }
    telling = _telling(content)
    return (
        bool(telling or exact) and exact <= heard and telling <= _all_stems(spoken, detect_language(content))
    )


def _telling(text: str) -> set[str]:
    language = detect_language(text)
    stop = stop_words(language)
    words = [word for word in split_words(text) if word not in stop and word not in FRAMING]
    return set(stems(_alike(words), language))


def _all_stems(text: str, language: str) -> set[str]:
    return set(stems(_alike(split_words(text)), language))


def _alike(words: list[str]) -> list[str]:
    """The words, with one for all that say that somebody likes something."""
    return ["prefer" if word in _LIKING else word for word in words]
