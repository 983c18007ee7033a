"""The table of kinds of facts: by which words a note is known, and when a note of that kind matters.

The kinds stand in `kinds/LANGUAGE.toml`, one file a language, which docs/memory.md tells how to edit. A note is of a kind
where one of its cues is found, or two of those that are marked as hints. It gets the phrases of the best kinds, in turn.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, zip_longest
from pathlib import Path

from apps.search.text.analysis import split_words, stems

from .phrases import MAX_OCCASION_CHARS, MAX_OCCASIONS

FOLDER = Path(__file__).with_name("kinds")
MAX_KINDS = 3
MAX_WORDS = 150
"""A note is known by its first so many words."""
ENOUGH, HINT = 2, 1
"""A kind needs so much, which one cue is worth; and what a hint is worth."""
WORDS = 20_000
"""Words of which it is kept what the tables know of them, about 4 MB; a purge drops them."""
SLOT = re.compile(r"\{(\w+)\}")
SHORTEST = 2
"""Signs before or after the star of a cue that stands for part of a word."""

Run = tuple[str, ...]
"""Tokens in a row: stems, `=word` as it is, `begin*`, `*end`, `#` (begins with a digit), `@list`, `kind:fact`."""


@dataclass(frozen=True, slots=True)
class Cue:
    """A sign of a kind: each of `runs` stands somewhere in the note."""

    kind: str
    runs: tuple[Run, ...]
    tokens: frozenset[str]  # of all runs
    worth: int


@dataclass(frozen=True, slots=True)
class Table:
    """The kinds of one language. `cues` and `members` (of lists) stand under one of their tokens, the rarest."""

    occasions: Mapping[str, Sequence[str]]
    cues: Mapping[str, Sequence[Cue]]
    members: Mapping[str, Sequence[tuple[str, Run]]]
    tokens: frozenset[str]


class KnownWords:
    """The words of a note, with what the table knows of them at each place: its tokens, and how many words they take."""

    def __init__(self, text: str, tags: Sequence[str], kind: str, language: str, table: Table) -> None:
        self.words = split_words(text)[:MAX_WORDS]
        for tag in tags:
            self.words += ["", *split_words(tag)]  # no row of words goes from one into the next
        self.places: dict[str, dict[int, int]] = {f"kind:{kind}": {len(self.words): 1}}
        stemmed = stems(self.words, language)
        for place, (bare, stem) in enumerate(zip(stems(self.words, ""), stemmed, strict=True)):
            for token in tokens_of(bare, stem, language):
                self.places.setdefault(token, {})[place] = 1
        for token in [*self.places]:
            for name, run in table.members.get(token, ()):
                for place in self.starts(run) if self.places.keys() >= set(run) else ():
                    lengths = self.places.setdefault(f"@{name}", {})
                    lengths[place] = max(len(run), lengths.get(place, 0))

    def starts(self, run: Run) -> Iterator[int]:
        """Places where a run begins, all of whose tokens the note has."""
        for start in self.places[run[0]]:
            place = start
            for token in run:
                length = self.places[token].get(place)
                if length is None:
                    break
                place += length
            else:
                yield start

    def first_of(self, name: str) -> str:
        """The first words of the note that stand in a list, "" where none do."""
        places = self.places.get(f"@{name}")
        if not places:
            return ""
        start = min(places)
        return " ".join(self.words[start : start + places[start]])


@lru_cache(maxsize=WORDS)
def tokens_of(bare: str, stem: str, language: str) -> tuple[str, ...]:
    """The tokens of a language's table that may stand for a word: its stem, it as it is, a digit it begins with, its parts."""
    table = table_of(language)
    if table is None or not bare:
        return ()
    cuts = range(SHORTEST, len(bare) + 1)
    parts = [part for cut in cuts for part in (f"{bare[:cut]}*", f"*{bare[-cut:]}")]
    forms = [stem, f"={bare}", *parts, *(["#"] if bare[0].isdigit() else [])]
    return tuple(token for token in forms if token in table.tokens)


def occasions_by_rule(text: str, tags: Sequence[str], kind: str, language: str) -> list[str]:
    """When a note matters, by the kinds of facts it is known to hold: at most eight phrases, the best first.

    `kind` is the note's own ("fact", "decision", …), `language` a code such as "de". Empty where no kind fits or no
    table stands for the language.
    """
    table = table_of(language)
    if table is None:
        return []
    note = KnownWords(text, tags, kind, language, table)
    lists = [_filled(table.occasions[name], note) for name in kinds_of(note, table)]
    phrases = dict.fromkeys(filter(None, chain.from_iterable(zip_longest(*lists))))
    return list(phrases)[:MAX_OCCASIONS]


def kinds_of(note: KnownWords, table: Table) -> list[str]:
    """The names of the kinds that a note is known to be of, the best first, equals in the order of the table."""
    worth: dict[str, int] = {}
    excluded = set()
    for token in note.places:
        for cue in table.cues.get(token, ()):
            if note.places.keys() >= cue.tokens and all(
                any(True for _ in note.starts(run)) for run in cue.runs
            ):
                worth[cue.kind] = worth.get(cue.kind, 0) + cue.worth
                if not cue.worth:
                    excluded.add(cue.kind)
    known = [name for name in table.occasions if name not in excluded and worth.get(name, 0) >= ENOUGH]
    return sorted(known, key=worth.__getitem__, reverse=True)[:MAX_KINDS]


def _filled(phrases: Sequence[str], note: KnownWords) -> list[str]:
    """Phrases with the note's own words in their slots; without those whose slot stays empty or that get too long."""
    filled = []
    for phrase in phrases:
        for name in SLOT.findall(phrase):
            word = note.first_of(name)
            phrase = phrase.replace(f"{{{name}}}", word) if word else ""
        if 0 < len(phrase) <= MAX_OCCASION_CHARS:
            filled.append(phrase)
    return filled


@cache
def table_of(language: str) -> Table | None:
    """The table of a language, None where there is none."""
    known = {file.stem: file for file in FOLDER.glob("*.toml")}
    if language not in known:
        return None
    source = tomllib.loads(known[language].read_text(encoding="utf-8"))
    cues: dict[str, list[Cue]] = {}
    members: dict[str, list[tuple[str, Run]]] = {}
    for name, listed in source["words"].items():
        for run in (run_of(member, language) for member in _listed(listed, ",")):
            members.setdefault(_telling(run), []).append((name, run))
    for name, kind in source["kinds"].items():
        listed = [_cue_of(name, text, language) for text in _listed(kind["cues"], ",")]
        for cue in {cue.runs: cue for cue in sorted(listed, key=lambda cue: cue.worth)}.values():
            cues.setdefault(_telling(chain(*cue.runs)), []).append(cue)
    runs = [run for each in members.values() for _, run in each]
    runs += [run for each in cues.values() for cue in each for run in cue.runs]
    occasions = {name: tuple(_listed(kind["when"], ";")) for name, kind in source["kinds"].items()}
    return Table(occasions, cues, members, frozenset(chain(*runs)))


def _cue_of(kind: str, text: str, language: str) -> Cue:
    """`word` tells a kind, `word?` is a hint, `!word` rules the kind out; `a & b` asks for both."""
    worth = 0 if text[0] == "!" else HINT if text[-1] == "?" else ENOUGH
    parts = text.strip("!?").split(" & ")
    runs = tuple(run_of(part, language) for part in parts)
    return Cue(kind, runs, frozenset(chain(*runs)), worth)


def run_of(text: str, language: str) -> Run:
    """The tokens of words in a row, as they stand in a table."""
    tokens: list[str] = []
    for word in text.split():
        if word == "#" or word.startswith(("@", "kind:")):
            tokens.append(word)
        elif word[0] == "=":
            tokens += (f"={bare}" for bare in stems(split_words(word), ""))
        elif "*" in word:
            tokens.append("*".join(stems(word.casefold().split("*"), "")))
        else:
            tokens += stems(split_words(word), language)
    return tuple(tokens)


def _listed(text: str, separator: str) -> list[str]:
    return [part for part in map(str.strip, text.split(separator)) if part]


def _telling(tokens: Iterable[str]) -> str:
    """The token by which a cue is looked up: the longest, any word rather than a list."""
    return max(tokens, key=lambda token: (token[0] not in "@#", len(token)))
