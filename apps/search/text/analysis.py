"""One analyser for documents and queries: words, their language, their stems, and what a misspelt one may have been meant
to be."""

import re
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

import snowballstemmer
import stopwordsiso

from apps.core.text import chunk_text
from apps.search.text.words import ENGLISH_TOO, STEMMERS, STOP_WORDS

DEFAULT_LANGUAGE = "en"
SHORT_CHARS = 500
"""A text of at most so many characters is one chunk in any language."""
MAX_TERMS = 2000
"""Terms of one query that count; more would only cost time."""
MAX_TERM_CHARS = 64
MIN_VOTES = 2
"""Function words that it takes to believe a text to be in another language than English."""

_SIGN = "(?:[^\\W_]|[\u0300-\u036f\u05b0-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u0e31-\u0e4e])"
_WORD = re.compile(f"{_SIGN}+(?:['’-]{_SIGN}+)*")
RUN = re.compile(f"{_SIGN}+")  # of word characters
_DENSE = re.compile(  # scripts written without spaces: searched by pairs of signs
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
_SCRIPTS = (
    ("el", re.compile("[\u0370-\u03ff]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("ta", re.compile("[\u0b80-\u0bff]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
)
_OTHER_WORDS = re.compile("[\u0370-\u03ff\u0590-\u06ff\u0900-\u097f\u0b80-\u0bff]+")
"""Of the scripts above that have spaces between words; of the others two signs count as one."""
_LATIN_WORDS = re.compile("[A-Za-z\u00c0-\u024f]+")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_UKRAINIAN = re.compile("[іїєґІЇЄҐ]")
_CLITICS = frozenset(["c", "d", "j", "l", "m", "n", "o", "s", "t", "qu"])  # of O'Brien and o'clock, too
_local = threading.local()


_VOTES: dict[str, list[str]] = {}
for _code, _words in [*STOP_WORDS.items(), (DEFAULT_LANGUAGE, ENGLISH_TOO)]:
    for _each in _words:
        _VOTES.setdefault(_each, []).append(_code)


def detect_language(text: str, words: Sequence[str] | None = None) -> str:
    """The language of a text by the script of most of it and its function words; English where too little tells. `words` are
    those of its beginning, where they have been split already."""
    if not text.isascii():
        for code, pattern in _SCRIPTS:
            if pattern.search(text, 0, 400):
                if _is_latin(text[:400]):
                    break
                return code
        if 2 * len(_CYRILLIC.findall(text, 0, 400)) > sum(map(str.isalpha, text[:400])):
            return "uk" if _UKRAINIAN.search(text, 0, 400) else "ru"
    counts: dict[str, int] = {}
    for word in split_words(text[:2000]) if words is None else words:
        for code in _VOTES.get(word, ()):
            counts[code] = counts.get(code, 0) + 1
    best = max(counts, key=counts.__getitem__, default=DEFAULT_LANGUAGE)
    known = counts.get(best, 0)
    return best if known >= MIN_VOTES and known > counts.get(DEFAULT_LANGUAGE, 0) else DEFAULT_LANGUAGE


def _is_latin(text: str) -> bool:
    """Whether most words of a text are in Latin letters, its addresses left aside: all but a name or a sign, such as the α of α-gal."""
    words = " ".join(word for word in text.split() if "/" not in word and "@" not in word)
    others = len(_OTHER_WORDS.findall(words)) + sum(map(len, _DENSE.findall(words))) / 2
    return len(_LATIN_WORDS.findall(words)) > others


def split_words(text: str) -> list[str]:
    """The words of a text, normalised (NFKC) and casefolded; possessives and elided articles are taken off."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("’", "'")
    elif "'" not in text and "-" not in text:
        return RUN.findall(text.casefold())
    words: list[str] = []
    for word in _WORD.findall(text.casefold()):
        if word.isascii() and word.isalnum():
            words.append(word)
        else:
            words.extend(_word_parts(word))
    return words


def _word_parts(word: str) -> list[str]:
    """Parts of a word with apostrophes, hyphens or signs beyond ASCII; a hyphenated word also counts joined."""
    if "-" in word:
        parts = word.split("-")
        joined = "".join(parts)
        return [piece for part in [*parts, joined] for piece in _word_parts(part)]
    if "'" in word:
        # Without the articles before it (d'l'eau) and what is behind it.
        *heads, last = word.split("'")
        rest = len(word)
        for head in heads:
            rest -= len(head) + 1
            if head not in _CLITICS or rest <= 1:
                return _word_parts(head)
        return _word_parts(last)
    if not _DENSE.search(word):
        return [word]
    runs = _DENSE.findall(word)
    pairs = [run[start : start + 2] for run in runs for start in range(max(len(run) - 1, 1))]
    return [*pairs, *filter(None, _DENSE.split(word))]


@lru_cache(maxsize=64)
def stop_words(language: str) -> frozenset[str]:
    known = STOP_WORDS.get(language)
    if known is not None:
        return known
    return (
        frozenset(stopwordsiso.stopwords(language)) if stopwordsiso.has_lang(language) else frozenset()
    )


def document_terms(text: str, language: str = "") -> tuple[str, list[str]]:
    """The language (detected where none is given) and the distinct stems of a document, without stop words.

    Stems stand in the order of their first appearance.
    """
    words = split_words(text)
    language = language or detect_language(text, words[:400])
    stop = stop_words(language)
    return language, list(dict.fromkeys(stems([word for word in words if word not in stop], language)))


def analysed_text(text: str, language: str) -> list[tuple[str, str, list[str]]]:
    """The text's chunks, each with the code of its language and its distinct stems."""
    return [(chunk, *document_terms(chunk, language)) for chunk in chunked(text)]


def chunked(text: str) -> list[str]:
    """The pieces of a document that are passages of their own."""
    return [text] if len(text) <= SHORT_CHARS else chunk_text(text)


def analysed_all(texts: list[str], language: str) -> list[list[tuple[str, str, list[str]]]]:
    return [analysed_text(text, language) for text in texts]


def stems(words: list[str], language: str) -> list[str]:
    """The stem of each word, accents folded, at most MAX_TERM_CHARS long."""
    stemmed, algorithm = words, STEMMERS.get(language)
    if algorithm is not None:
        stemmers = vars(_local)
        if algorithm not in stemmers:
            stemmers[algorithm] = snowballstemmer.stemmer(
                algorithm
            )  # PyStemmer's, where that is installed
        stemmed = list(stemmers[algorithm].stemWords(words))
    if "".join(stemmed).isascii() and max(map(len, stemmed), default=0) <= MAX_TERM_CHARS:
        return stemmed
    return [stem if stem.isascii() and len(stem) <= MAX_TERM_CHARS else _fold(stem) for stem in stemmed]


def _fold(stem: str) -> str:
    bare = "".join(
        sign for sign in unicodedata.normalize("NFD", stem) if not unicodedata.combining(sign)
    )
    return (bare or stem)[:MAX_TERM_CHARS]


MIN_SLIP_CHARS, MAX_SLIP_CHARS = 3, 20
"""Of the words that may be misspelt: shorter ones are one edit from anything, longer ones are no names."""
_LATIN = "abcdefghijklmnopqrstuvwxyz"


def one_edit_from(word: str) -> Iterator[str]:
    """The words that differ from this casefolded one by a letter too many, missing, other or changed with the next.

    The first letter stays: there people hardly ever slip. Letters are those of the Latin alphabet and the word's own,
    so at most about 1,100 words; some come more than once.
    """
    if not MIN_SLIP_CHARS <= len(word) <= MAX_SLIP_CHARS or not word.isalpha():
        return
    letters = "".join(dict.fromkeys(_LATIN + word))
    for place in range(1, len(word) + 1):
        before, behind = word[:place], word[place:]
        yield from (before + letter + behind for letter in letters)
        if behind:
            yield before + behind[1:]
            yield from (before + letter + behind[1:] for letter in letters)
        if len(behind) > 1:
            yield before + behind[1] + behind[0] + behind[2:]
