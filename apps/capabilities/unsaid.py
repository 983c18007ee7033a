"""What of an input its user did not say: what could carry something of theirs to the hosts that a tool reaches.

Izzy, talked into it by a page, could put a private fact into any text. What stands in the user's own messages they have
given out themselves; what a schema lists, small numbers, days close by and short codes can say little.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from apps.agent.canonical import canonical_json
from apps.search.language.analysis import DEFAULT_LANGUAGE, detect_language, split_words, stems, stop_words

from .schemas import nodes_of

MAX_CHARS = 20_000  # of the messages, their end
MOST_VALUES = 20
"""So many of an input's values may be chosen freely, from however short a list."""
MOST_DIGITS, DIGITS_OF_NUMBER, DIGITS_IN_TEXT = 14, 7, 4
"""In all values together, in one number and in one text: enough for a place on the map or a time of day, too few for a card,
an account, a telephone or a birthday."""
MOST_LETTERS, LETTERS_AT_ONCE = 6, 3
"""Of short codes such as EUR, together and in one."""
MOST_FILLERS = 12
"""Function words and those of the calendar, where the user did not use them."""
CLOSE_BY = timedelta(days=400)
DESCRIBED_CHARS = 40
"""Of a value that stands in the description of a property; shorter ones than a code are taken for codes."""

_CALENDAR = frozenset(
    split_words(
        "today tomorrow tonight yesterday morning noon afternoon evening night midnight hour day week weekend month year "
        "hourly daily weekly monthly current latest next last monday tuesday wednesday thursday friday saturday sunday "
        "january february march april may june july august september october november december"
    )
)
_TIME = r"[T ]\d{2}:\d{2}(?::\d{2}(?:\.0+)?)?(?:Z|[+-]\d{2}:?\d{2})?"
_DAY = re.compile(rf"(?<![\d.])(\d{{4}}-\d{{2}}-\d{{2}})(?:{_TIME})?(?![\d.])")
_RUN = re.compile(r"[^\W_]+")
"""A word of letters and digits; in scripts without spaces all there is up to the next sign."""
_BETWEEN = re.compile(r"[ \n.,;:!?'’\"()/&%+#@_=–-]{0,3}")
"""What stands between two words of an ordinary text."""


def unsaid(
    args: dict[str, Any],
    *,
    schema: dict[str, Any],
    said: Sequence[str],
    known: Iterable[Any] = (),
    today: date,
) -> str:
    """The first piece of an input that is neither the user's own nor harmless, as it stands there; "" for none.

    `said` are their own messages. `known` are values that may be used too: the inputs of examples, and what the same tool
    was given before.
    """
    listed = {canonical_json(leaf) for value in [*known, *_listed(schema)] for leaf in _leaves(value, ())}
    inspection = _Inspection(_Said.of(said), listed, _descriptions(schema), today)
    pieces = map(inspection.piece, _leaves(args, _property_names(schema)))
    return next(filter(None, pieces), "")


@dataclass(frozen=True, slots=True)
class _Said:
    """The words of the user's messages, and the function words of their language."""

    text: str
    language: str
    exact: frozenset[str]
    words: frozenset[str]
    stems: frozenset[str]
    plain: frozenset[str]

    @classmethod
    def of(cls, messages: Sequence[str]) -> "_Said":
        text = unicodedata.normalize("NFKC", "\n".join(messages)[-MAX_CHARS:])
        runs, language = frozenset(_RUN.findall(text)), detect_language(text)
        words = [word for run in runs for word in split_words(run)]
        plain = stop_words(language) | stop_words(DEFAULT_LANGUAGE) | _CALENDAR
        return cls(text, language, runs, frozenset(words), frozenset(stems(words, language)), plain)

    def has(self, word: str) -> bool:
        return word in self.words or stems([word], self.language)[0] in self.stems


@dataclass(slots=True)
class _Inspection:
    """Looks at one value after the other and adds up the little that each may say."""

    said: _Said
    listed: Collection[str]
    described: str
    today: date
    values: int = 0
    digits: int = 0
    letters: int = 0
    fillers: int = 0

    def piece(self, value: Any) -> str:
        """The piece of a value (no list, no object) by which it says too much, or ""."""
        if value is None or isinstance(value, bool) or self._is_listed(value):
            return self._chosen(str(value))
        return self._text(value) if isinstance(value, str) else self._digits(str(value), DIGITS_OF_NUMBER)

    def _is_listed(self, value: Any) -> bool:
        """Whether the version itself names this value, or its schema does in words ("one of relevance, published_at")."""
        if canonical_json(value) in self.listed:
            return True
        if not isinstance(value, str) or not LETTERS_AT_ONCE < len(value) <= DESCRIBED_CHARS:
            return False
        whole = rf"(?<!\w){re.escape(value)}(?!\w)"
        return value in self.described and re.search(whole, self.described) is not None

    def _chosen(self, shown: str) -> str:
        self.values += 1
        return shown if self.values > MOST_VALUES else ""

    def _digits(self, shown: str, most: int) -> str:
        digits = sum(len(run) for run in re.findall(r"\d+", shown) if run not in self.said.words)
        if not digits:
            return ""
        self.digits += digits
        much = digits > most or self.digits > MOST_DIGITS
        return shown if much else self._chosen(shown)

    def _text(self, shown: str) -> str:
        text = unicodedata.normalize("NFKC", _DAY.sub(self._day, shown))
        if odd := next((gap for gap in _RUN.split(text) if not self._is_ordinary(gap)), ""):
            return odd.strip() or shown
        runs = _RUN.findall(text)
        words = (self._word(run) for run in runs if not run.isdigit())
        return next(filter(None, words), "") or self._digits(
            " ".join(filter(str.isdigit, runs)), DIGITS_IN_TEXT
        )

    def _day(self, match: re.Match[str]) -> str:
        """A day close by goes for a value that was chosen; another stays, to be looked at as numbers."""
        try:
            close = abs(date.fromisoformat(match[1]) - self.today) <= CLOSE_BY
        except ValueError:
            close = False
        return " " if close and not self._chosen(match[0]) else match[0]

    def _is_ordinary(self, gap: str) -> bool:
        return _BETWEEN.fullmatch(gap) is not None or gap in self.said.text

    def _word(self, run: str) -> str:
        if not _is_plainly_written(run) and run not in self.said.exact:
            return run
        words = split_words(run)
        if all(map(self.said.has, words)):
            return ""
        if len(run) > 1 and self.said.plain.issuperset(words):
            self.fillers += 1
            return run if self.fillers > MOST_FILLERS else ""
        if run.isascii() and len(run) <= LETTERS_AT_ONCE:
            self.letters += len(run)
            return run if self.letters > MOST_LETTERS else ""
        return run


def _is_plainly_written(run: str) -> bool:
    """Capitals here and there could spell something out."""
    return run in {run.lower(), run.upper(), run.capitalize()}


def _leaves(value: Any, names: Collection[str]) -> Iterator[Any]:
    """What a value is made of; the names in objects too, but for these."""
    if isinstance(value, dict):
        yield from (name for name in value if name not in names)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if inner is None:
        yield value
        return
    for item in inner:
        yield from _leaves(item, names)


def _listed(schema: dict[str, Any]) -> list[Any]:
    """The values that a schema itself names."""
    lists = (node.get(name) for node in nodes_of(schema) for name in ("enum", "examples"))
    single = (node[name] for node in nodes_of(schema) for name in ("const", "default") if name in node)
    return [*(item for values in lists if isinstance(values, list) for item in values), *single]


def _descriptions(schema: dict[str, Any]) -> str:
    texts = (node.get("description") for node in nodes_of(schema))
    return "\n".join(text for text in texts if isinstance(text, str))


def _property_names(schema: dict[str, Any]) -> frozenset[str]:
    properties = (node.get("properties") for node in nodes_of(schema))
    return frozenset(name for each in properties if isinstance(each, dict) for name in each)
