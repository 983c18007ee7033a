"""Notes as their owner reads them.

Notes are written for the model, about "the user". On a page that user is the reader: what is theirs is "your", and a
sentence about them begins with what they do ("Is allergic to shellfish."). Only what is shown changes: forms, searches
and models have the text as it is stored. The same rules stand in `static/js/core/addressing.js`; one table tests both.
"""

import re

from apps.core.person import SECOND, second_person


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SENTENCES = re.compile(r"((?<=[.!?])\s+|\n+)")
_FIRST = re.compile(r"(?:The user|User)(['’]s\b| (?=[a-z])|\b)")
_THE_USER = re.compile(r"\bthe user(['’]s\b|\b(?!['’]))(?: ([A-Za-z'’]+))?", re.IGNORECASE)
_CLAUSE = re.compile(
    r"(?:\b(?:that|because|when|if|while|since|where|what|which|who|how|why|whether|although|before|after|until)|,) ?$"
)
CLAUSE_CHARS = 12
"""How far back the word before "the user" is looked for."""
_NOUNS = _words(
    "account data experience group guide guides id input interface list manual manuals name names profile settings story"
)
"""Nouns that make "the user" a name: the user manual of the boiler is nobody's."""
_AFTER_YOU = _words(
    "a about after again an and as at because before by during every for from if in into like of on or out over since so "
    "than that the then this to under until up when where which while who with without your"
)
"""Words that follow a person without being said of them."""
_SAME = _words("can could did had may might must should will would")


def addressed(text: str) -> str:
    """`The user's sister is Ada. The user likes tea.` as `Your sister is Ada. Likes tea.`"""
    if "user" not in text.lower():
        return text
    return "".join(map(_sentence, _SENTENCES.split(text)))


def _sentence(text: str) -> str:
    first = _FIRST.match(text)
    if first is None:
        return _THE_USER.sub(_inside, text)
    rest = text[first.end() :]
    word = re.match(r"[a-z'’]*", rest)
    follows = word[0] if word else ""
    if first[1].endswith("s"):
        return "Your" + _THE_USER.sub(_inside, rest)
    if not first[1] or follows in _NOUNS:
        return text
    rest = _THE_USER.sub(_inside, rest)
    return f"You {rest}" if follows in {"and", "or"} else rest[:1].upper() + rest[1:]


def _inside(found: re.Match[str]) -> str:
    """ "the user" within a sentence; left alone where the words around do not tell what it is."""
    whole, possessive, follows = found[0], found[1], found[2]
    capital = whole[0] == "T"
    if possessive:
        return ("Your" if capital else "your") + whole[len("the user") + len(possessive) :]
    you = "You" if capital else "you"
    if not follows:
        return you
    verb = _verb(
        follows.lower(),
        _CLAUSE.search(found.string[max(0, found.start() - CLAUSE_CHARS) : found.start()]) is not None,
    )
    return f"{you} {verb}" if verb else whole


def _verb(word: str, in_clause: bool) -> str:
    """The word as it follows "you"; "" where it is not known."""
    if word in _NOUNS:
        return ""
    if word in _AFTER_YOU or word in _SAME:
        return word
    verb = second_person(word)
    return verb if verb != word and (in_clause or word in SECOND) else ""
