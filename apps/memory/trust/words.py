"""The words by which a text is recognised in another: which of them tell something, and what counts as the same word."""

import re
import unicodedata
from dataclasses import dataclass

from apps.search.language.analysis import DEFAULT_LANGUAGE, detect_language, split_words, stems, stop_words

_FRAMING = """user users nutzer nutzers benutzer utilisateur usuario utente izzy assistant name named names called say
    says said mention mentions mentioned state states stated tell tells told asked remember remembers note
    noted fact person currently now"""
FRAMING = frozenset(_FRAMING.split())
"""Words by which a note is put into the third person; they claim nothing by themselves."""

_MONTHS = """january february march april may june july august september october november december monday tuesday
    wednesday thursday friday saturday sunday januar februar märz mai juni juli oktober dezember montag
    dienstag mittwoch donnerstag freitag samstag sonntag"""
MONTHS = frozenset(_MONTHS.split())
_LIKED = "like likes liked love loves loved enjoy enjoys enjoyed prefer prefers favorite favourite"
_LIKING = frozenset(stems(_LIKED.split(), "en"))
"""Stems of the words that say that somebody likes something: one as good as the other."""

_TOKEN = re.compile(r"[^\s<>()\[\]{}\"'“”„«»,;]+")
_ADDRESS = re.compile(r"://|@|\w\.[^\W\d_]{2}")
_PREFIX = re.compile(r"^(?:mailto:|[a-z][a-z0-9+.-]*://)?(?:www\.)?")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_DAY = r"(?:\d{4}-\d{2}(?:-\d{2})?|(?:19|20)\d{2})"
_DATE = re.compile(rf"{_DAY}(?:[-/]{_DAY})*")
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-ZÀ-ÖØ-ÞА-ЯΑ-Ω][\w'’-]*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Words:
    """The telling words of a text, none of them in two of these.

    `exact` are addresses of the web and of mail and numbers, as written but for case; `names` words written with a
    capital inside a sentence; `dates` days, years and the names of months and weekdays; `plain` the stems of all
    others. Stop words and FRAMING tell nothing.
    """

    exact: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    dates: frozenset[str] = frozenset()
    plain: frozenset[str] = frozenset()

    @property
    def strict(self) -> frozenset[str]:
        """What has to be the same to the letter."""
        return self.exact | self.names

    @property
    def stated(self) -> frozenset[str]:
        """All but the dates."""
        return self.strict | self.plain

    def __len__(self) -> int:
        return len(self.stated) + len(self.dates)


def words_of(text: str, language: str = "") -> Words:
    """The telling words of a text; its language is found out where it is not given."""
    folded = unicodedata.normalize("NFKC", text)
    addresses, rest = _addresses(folded)
    numbers = frozenset(_NUMBER.findall(rest))
    days = frozenset(number for number in numbers if _DATE.fullmatch(number))
    language = language or detect_language(folded)
    stop = stop_words(language) | stop_words(DEFAULT_LANGUAGE) | FRAMING
    told = frozenset(split_words(_NUMBER.sub(" ", rest))) - stop
    telling = told - MONTHS
    names = _names(rest) & telling
    return Words(
        exact=addresses | (numbers - days),
        names=names,
        dates=days | (told & MONTHS),
        plain=frozenset(stems(sorted(telling - names), language)),
    )


@dataclass(frozen=True, slots=True)
class Heard:
    """Everything that a text says, to look the words of another up in.

    What stands inside of an address is not said: whoever pastes a link says no word of it.
    """

    exact: frozenset[str]
    words: frozenset[str]
    stems: frozenset[str]

    @classmethod
    def of(cls, text: str, language: str) -> "Heard":
        folded = unicodedata.normalize("NFKC", text)
        addresses, rest = _addresses(folded)
        words = frozenset([*split_words(rest), *split_words(_NUMBER.sub(" ", rest))])
        return cls(
            exact=addresses | frozenset(_NUMBER.findall(rest)),
            words=words,
            stems=frozenset(stems(sorted(words), language)),
        )

    def lacks(self, words: Words) -> Words:
        """Those of the words that are not in it."""
        return Words(
            exact=words.exact - self.exact,
            names=words.names - self.words,
            dates=words.dates - self.exact - self.words,
            plain=frozenset(stem for stem in words.plain if not self._has(stem)),
        )

    def _has(self, stem: str) -> bool:
        return stem in self.stems or (stem in _LIKING and bool(self.stems & _LIKING))


def _addresses(text: str) -> tuple[frozenset[str], str]:
    """The addresses in a text in one spelling (no scheme, no www., no slash or full stop at the end), and the rest."""
    found: list[str] = []

    def taken(match: re.Match[str]) -> str:
        token = match.group()
        if not _ADDRESS.search(token):
            return token
        found.append(_PREFIX.sub("", token.casefold()).rstrip(".:!?/"))
        return " "

    rest = _TOKEN.sub(taken, text)
    return frozenset(filter(None, found)), rest


def _names(text: str) -> frozenset[str]:
    return frozenset(word for match in _NAME.finditer(text) for word in split_words(match.group()))
