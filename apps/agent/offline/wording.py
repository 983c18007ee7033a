"""Words of notes: turned into sentences about "the user" and back into "you", and compared however inflected."""

import re
from dataclasses import dataclass
from functools import lru_cache

import snowballstemmer

from apps.core.addressing import addressed
from apps.core.person import third_person


def word_set(text: str) -> frozenset[str]:
    """The words of the text, which are separated by white space."""
    return frozenset(text.split())


STOP = word_set(
    """
    a about actually all am an and any anymore are at be been but by did do does don't everything for
    from had has have i i'm in instead is it it's its just like me memory mine my no not note notes now
    of on one only or our rather really so some something that the their them there they this thing
    things to too user user's was we were what where which who with you your
    """
)
"""Words that do not tell one note from another."""


ADVERBS = word_set(
    """
    absolutely actually almost also always currently definitely especially generally just longer mainly
    mostly never no now often only probably rarely really recently regularly simply sometimes still
    strictly strongly truly usually
    """
)


UNCHANGED = word_set(
    """
    can can't cannot could couldn't may might must mustn't shall should shouldn't will won't would
    wouldn't used was wasn't had hadn't did didn't went got made bought saw met left became grew lost
    found took came said told read put won broke began knew thought felt heard kept ran sold sent spent
    taught wrote ate drove gave fell forgot chose built caught brought slept spoke stood wore cut quit
    set
    """
)


PIECES = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?|[^A-Za-z]+")
SUBJECTS = {
    "i'm": "the user is",
    "i've": "the user has",
    "i'd": "the user would",
    "i'll": "the user will",
}
OTHERS = {"my": "the user's", "mine": "the user's", "me": "the user", "myself": "the user"}
BACK = {"my": "your", "mine": "yours", "me": "you", "myself": "yourself"}


def note_text(utterance: str) -> str:
    """`I'm allergic to my cat` becomes `The user is allergic to the user's cat.`: one sentence, third person."""
    out: list[str] = []
    verb_follows = False
    for piece in PIECES.findall(utterance.strip()):
        word = piece.lower().replace("’", "'")
        if word in SUBJECTS:
            out.append(SUBJECTS[word])
        elif word in OTHERS:
            out.append(OTHERS[word])
        elif word == "i":
            out.append("the user")
            verb_follows = True
        elif verb_follows and word[0].isalpha() and word not in ADVERBS:
            past = word.endswith("ed") and not word.endswith("eed")
            out.append(word if past or word in UNCHANGED else third_person(word))
            verb_follows = False
        else:
            out.append(piece)
    return _sentence("".join(out))


def echoed(utterance: str) -> str:
    """Words of the user as Izzy says them back: `my coffee` becomes `your coffee`."""
    return re.sub(
        r"(?<![\w'’])(?:my|mine|me|myself)(?![\w'’])",
        lambda word: BACK[word[0].lower()],
        utterance,
        flags=re.IGNORECASE,
    )


def to_you(note: str) -> str:
    """`The user is allergic to nuts.` becomes `You are allergic to nuts.`; other notes stay as they are."""
    return _sentence(addressed(note))


def _sentence(text: str) -> str:
    text = text.strip()
    if not text:
        return text
    ended = text if text[-1] in ".!?…)" else text.rstrip(",;:") + "."
    return ended[0].upper() + ended[1:]


PREFIX_CHARS = 6
MAX_WORDS = 500


@dataclass(frozen=True, slots=True)
class Note:
    """A note as `memory_search` gave it."""

    note_id: str
    text: str
    score: float
    excerpt: bool = False  # a part of a longer text


def content_words(text: str) -> list[str]:
    """The words that carry meaning, in lower case, each once, at most 500."""
    found = re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.lower().replace("’", "'"))
    kept = [
        word.removesuffix("'s")
        for word in found
        if word not in STOP and word.removesuffix("'s") not in STOP
    ]
    return list(dict.fromkeys(kept))[:MAX_WORDS]


def best_matches(text: str, notes: list[Note]) -> list[Note]:
    """The notes that share most words with `text`, best first; several when they match equally well, none when no
    note shares a word."""
    wanted = _keys(text)
    counts = [_shared(wanted, note.text) for note in notes]
    most = max(counts, default=0)
    return [note for count, note in zip(counts, notes, strict=True) if count == most and most > 0]


def sharing(text: str, notes: list[Note]) -> list[Note]:
    """Every note that shares a word with `text`."""
    wanted = _keys(text)
    return [note for note in notes if _shared(wanted, note.text)]


def _shared(wanted: list[frozenset[str]], text: str) -> int:
    present = frozenset().union(*_keys(text))
    return sum(not present.isdisjoint(keys) for keys in wanted)


def _keys(text: str) -> list[frozenset[str]]:
    """For each word what it is known by: its stem and, where it is long, its beginning (allergy, allergic)."""
    return [
        frozenset({_stem(word), word[:PREFIX_CHARS]} if len(word) >= PREFIX_CHARS else {_stem(word)})
        for word in content_words(text)
    ]


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    stem: str = snowballstemmer.stemmer("english").stemWord(word)
    return stem
