"""Whether the user asked for what the assistant is about to keep.

Passwords, accounts and cards are kept at once where the user said "remember …" and named them; where the assistant
thought of it by itself they wait for the user's word, as the preferences say.
"""

import re
from collections.abc import Callable, Sequence

from apps.memory.capture.items import looks_sensitive
from apps.search.language.analysis import detect_language, split_words

from .quotes import own_words
from .words import Heard, words_of

POINTER_WORDS = 8
"""A request of at most so many words that names nothing sensitive itself ("please remember that") points back."""
SHARE = 0.6
"""Of the telling words of a note so many have to be the user's; the assistant adds some ("home", "of the account")."""

_KEEP = (
    r"remember|memori[sz]e|save|store|note|keep|write (?:it |this |that )?down|jot|"
    r"merk\w*|speicher\w*|notier\w*|behalt\w*|retien\w*|souviens|enregistre\w*|mémorise\w*|"
    r"recuerd\w*|guarda\w*|anota\w*|apunta\w*|ricorda\w*|memorizza\w*|salva\w*|annota\w*|lembra\w*|onthoud\w*|bewaar\w*"
)
_FORGET = r"forget|vergiss|vergessen|oublie|olvides|dimenticare|esqueças|vergeet"
_NOT = r"(?:not|n['’]?t|never|nicht|nie|niemals|kein\w*|pas|jamais|no|nunca|non|mai|não|niet)"
_ASKS = re.compile(
    rf"\b(?:{_KEEP})\b|\b\w*{_NOT}\s+(?:to\s+)?(?:{_FORGET})\b|\bvergiss\w*\s+(?:\w+\s+)?nicht\b|n['’]oublie",
    re.IGNORECASE,
)
_DECLINES = re.compile(
    rf"\b\w*{_NOT}\s+(?:\w+\s+){{0,2}}(?:{_KEEP})\b|\b(?:merk|speicher|notier|behalt)\w*\s+(?:\w+\s+){{0,3}}nicht\b|"
    r"\b(?:do|did) you (?:still )?(?:remember|recall)\b|"
    r"\bi (?:can|do|did|could)(?: not|n['’]?t)? (?:remember|recall)\b",
    re.IGNORECASE,
)
_FORMED = re.compile(r"\S*[\d@]\S*|\S*[^\W\d_][^\w\s'’.,:;!?()\"-]\S*")


def needs_a_look(content: str, said: Callable[[], Sequence[str]], *, known: str = "") -> bool:
    """Whether a text is sensitive and the user, whose messages `said` gives, has not asked to keep it.

    `known` is the text of a note that it replaces: what the user keeps already may be corrected in their own words.
    """
    if not looks_sensitive(content) or _stands_in(content, known):
        return False
    own = [own_words(text) for text in said()]
    if looks_sensitive(known):
        return not any(_stands_in(content, f"{known}\n{text}") for text in own)
    return not any(_stands_in(content, text) for text in _requests(own))


def _requests(said: Sequence[str]) -> list[str]:
    """What the user asked to keep, each request with the message that it leans on."""
    found: list[str] = []
    for place, text in enumerate(said):
        if not _ASKS.search(text) or _DECLINES.search(text):
            continue
        if looks_sensitive(text):
            found.append("\n".join(said[place : place + 2]))
        elif len(split_words(text)) <= POINTER_WORDS and place:
            found.append("\n".join(said[place - 1 : place + 1]))
    return found


def _stands_in(content: str, text: str) -> bool:
    """Whether whatever looks like a code, a number or an address stands in a text to the letter, and most words do."""
    heard = text.casefold()
    codes = {code.strip(".,:;!?()\"'").casefold() for code in _FORMED.findall(content)}
    if not text or not all(code in heard for code in codes):
        return False
    language = detect_language(f"{content}\n{text}")
    words = words_of(content, language)
    return len(Heard.of(text, language).lacks(words)) <= (1 - SHARE) * len(words)
