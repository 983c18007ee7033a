"""Variants of a labelled data set, each of which breaks one of its habits; made from a seed, so the same in every run.

`bursts`: each message comes in one to four parts, cut at sentences, else at clauses. `turns`: bursts, of which what is
only an acknowledgement (up to five words, or a message of up to fifteen, that no question wants) is left out, so that one
speaker has several messages in a row. `names`: one edit in each name of a question. `dates`: dates in numbers, in questions
and messages (5/12/2023, 5/12/23, 2023-05-12, and with points, which begin with the day in each language: 12.05.23).
`letters`: neither capitals nor punctuation in questions and messages.

A message that was cut counts as found when any of its parts is, in a context block too; it stands there whole when all
of its parts do. Its parts take places of their own among the first hits.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

from apps.core.text import split_sentences
from benchmarks._questions import PART, Conversation, message_of

MOST_PARTS = 4
LEAST_CLAUSE = 3
"""Words that a clause must have to be sent by itself."""
SHORT_PART, SHORT_MESSAGE = 5, 15
"""Words up to which a part, or a whole message, is taken for an acknowledgement."""

_MONTHS = "january february march april may june july august september october november december"
MONTHS = tuple(_MONTHS.split())
_CLAUSE = re.compile(
    r"(?<=[,;:])\s+|\s+(?=(?:and|but|so|because|which|who|when|while|then|since|though|if)\s)"
)
_NAME = re.compile(r"(?<![^\W_])[A-ZÀ-Þ][a-zß-ÿ]{2,}")
_OTHERS = """the this that what when where which who whom whose why how did does was were has have had are monday tuesday
    wednesday thursday friday saturday sunday christmas halloween thanksgiving easter"""
_NO_NAMES = frozenset(word.capitalize() for word in [*_OTHERS.split(), *MONTHS])
_MONTH = f"({'|'.join(MONTHS)})"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,? ?\b((?:19|20)\d\d)\b)"
_DATES = re.compile(
    rf"\b(?:{_DAY} (?:of )?{_MONTH}{_YEAR}?|{_MONTH} {_DAY}\b{_YEAR}?|{_MONTH}{_YEAR})", re.IGNORECASE
)
_PUNCTUATION = re.compile(r"(?<!\d)[^\w\s]|[^\w\s](?!\d)")

Messages = Iterable[dict[str, Any]]


def _with_texts(conversation: Conversation, change: Callable[[str], str]) -> Conversation:
    """The conversation with each message and each question changed."""
    sessions = {
        session: [{**message, "content": change(message["content"])} for message in messages]
        for session, messages in conversation.sessions.items()
    }
    questions = [replace(question, text=change(question.text)) for question in conversation.questions]
    return _with_sessions(replace(conversation, questions=questions), sessions)


def _with_sessions(
    conversation: Conversation, sessions: dict[str, list[dict[str, Any]]]
) -> Conversation:
    """The conversation with other messages, of which its questions' evidence takes its texts."""
    texts: dict[str, list[str]] = {}
    for message in (message for messages in sessions.values() for message in messages):
        texts.setdefault(message_of(message["external_id"]), []).append(message["content"])
    questions = [
        replace(question, evidence={name: tuple(texts.get(name, ())) for name in question.evidence})
        for question in conversation.questions
    ]
    return replace(conversation, sessions=sessions, questions=questions)


def _bursts(conversation: Conversation) -> Conversation:
    cut = {session: list(_parts(messages)) for session, messages in conversation.sessions.items()}
    return _with_sessions(conversation, cut)


def _turns(conversation: Conversation) -> Conversation:
    wanted = {name for question in conversation.questions for name in question.evidence}
    told = {}
    for session, messages in conversation.sessions.items():
        spoken = [
            message
            for message in messages
            if message["external_id"] in wanted or _words(message) > SHORT_MESSAGE
        ]
        told[session] = [
            part
            for part in _parts(spoken)
            if message_of(part["external_id"]) in wanted or _words(part) > SHORT_PART
        ]
    return _with_sessions(conversation, {session: parts for session, parts in told.items() if parts})


def _words(message: dict[str, Any]) -> int:
    return len(message["content"].split())


def _parts(messages: Messages) -> Iterator[dict[str, Any]]:
    for message in messages:
        pieces = _cut(message["content"], Random(f"bursts/{message['external_id']}"))
        for number, piece in enumerate(pieces):
            name = message["external_id"] + (f"{PART}{number}" if len(pieces) > 1 else "")
            yield {**message, "external_id": name, "content": piece}


def _cut(text: str, draw: Random) -> list[str]:
    """The text in one to four parts, as drawn, or fewer where it has no more clauses; what stands in brackets stays whole."""
    wanted = draw.randint(1, MOST_PARTS)
    units = [
        sentence.strip()
        for run in re.split(r"(\[[^\]]*\])", text)
        for sentence in ([run] if run.startswith("[") else split_sentences(run))
        if sentence.strip()
    ]
    while len(units) < wanted:
        places = [place for place, unit in enumerate(units) if len(_clauses(unit)) > 1]
        if not places:
            break
        longest = max(places, key=lambda place: len(units[place]))
        units[longest : longest + 1] = _clauses(units[longest])
    inner = draw.sample(range(1, len(units)), max(min(wanted, len(units)), 1) - 1)
    bounds = [0, *sorted(inner), len(units)]
    return [" ".join(units[start:end]) for start, end in pairwise(bounds)]


def _clauses(unit: str) -> list[str]:
    """A sentence cut in two at the clause nearest to its middle; as it is where it has none."""
    ends = [] if unit.startswith("[") else [match.span() for match in _CLAUSE.finditer(unit)]
    fit = [
        (start, end)
        for start, end in ends
        if min(len(unit[:start].split()), len(unit[end:].split())) >= LEAST_CLAUSE
    ]
    if not fit:
        return [unit]
    start, end = min(fit, key=lambda span: abs(2 * span[0] - len(unit)))
    return [unit[:start], unit[end:]]


def _names(conversation: Conversation) -> Conversation:
    speakers = {word for message in conversation.messages for word in _NAME.findall(message["speaker"])}
    questions = [
        replace(question, text=misspelt(question.text, speakers)) for question in conversation.questions
    ]
    return replace(conversation, questions=questions)


def misspelt(question: str, speakers: Iterable[str] = ()) -> str:
    """A question with one edit in each name: what is a speaker's, or begins with a capital inside a sentence."""
    known = frozenset(speakers)

    def edit(match: re.Match[str]) -> str:
        name, before = match[0], question[: match.start()].rstrip()
        starts = not before or before[-1] in '.!?"“'
        if name not in known and (name in _NO_NAMES or starts):
            return name
        draw = Random(f"names/{name}/{question}")
        while (changed := _edited(name, draw)) == name:
            pass
        return changed

    return _NAME.sub(edit, question)


def _edited(name: str, draw: Random) -> str:
    """A letter left out, doubled, replaced or changed with the next; the first one stays."""
    place = draw.randrange(1, len(name))
    kind = draw.choice(("drop", "double", "replace", "swap"))
    if kind == "drop":
        return name[:place] + name[place + 1 :]
    if kind == "double":
        return name[:place] + name[place] + name[place:]
    if kind == "replace":
        return name[:place] + draw.choice("aeinorst") + name[place + 1 :]
    return name[:place] + name[place : place + 2][::-1] + name[place + 2 :]


def _dates(conversation: Conversation) -> Conversation:
    return _with_texts(conversation, numeric_dates)


def numeric_dates(text: str) -> str:
    """A text with its English dates in numbers; a month alone stays a word."""

    def write(match: re.Match[str]) -> str:
        groups = match.groups()
        day = groups[0] or groups[4]
        month = MONTHS.index((groups[1] or groups[3] or groups[6]).lower()) + 1
        year = groups[2] or groups[5] or groups[7]
        draw = Random(f"dates/{match[0]}/{text}")
        if not year:
            return f"{month}/{int(day)}"
        if not day:
            return draw.choice((f"{month}/{year}", f"{year}-{month:02}", f"{month:02}.{year}"))
        slashed, short = f"{month}/{int(day)}", year[2:]
        return draw.choice(
            (
                f"{slashed}/{year}",
                f"{slashed}/{short}",
                f"{year}-{month:02}-{int(day):02}",
                f"{int(day):02}.{month:02}.{short}",
            )
        )

    return _DATES.sub(write, text)


def _letters(conversation: Conversation) -> Conversation:
    return _with_texts(conversation, bare_letters)


def bare_letters(text: str) -> str:
    """A text in small letters, without punctuation but between digits; a hyphen parts words, an apostrophe does not."""
    spaced = re.sub(r"(?<=\w)[-–—/](?=[^\W\d])", " ", text.lower())
    return " ".join(_PUNCTUATION.sub("", spaced).split())


VARIANTS: dict[str, Callable[[Conversation], Conversation]] = {
    "bursts": _bursts,
    "turns": _turns,
    "names": _names,
    "dates": _dates,
    "letters": _letters,
}


def varied(conversation: Conversation, variant: str) -> Conversation:
    """A conversation in one of the VARIANTS, or as it is for "plain"."""
    return VARIANTS[variant](conversation) if variant in VARIANTS else conversation
