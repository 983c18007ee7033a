"""Correction of a note: only the part that it names changes, and where that is not sure, the user chooses."""

import re
from dataclasses import dataclass

from apps.agent.offline.matching import content_words
from apps.agent.offline.wordlists import ADVERBS

_VERB = (
    r"(?:is|isn't|are|aren't|was|were|has|have|had|costs?|drives?|hates?|likes?|lives?|loves?|needs?|owns?|plays?|prefers?|"
    r"speaks?|starts?|begins?|ends?|takes?|wants?|works?)"
)
_ADVERBS = rf"(?:(?:{'|'.join(sorted(ADVERBS))})\s+){{0,3}}"
_STATEMENT = re.compile(
    rf"(?:the user\s+{_ADVERBS}(?P<own>[\w'’]+)|(?:(?P<subject>\S(?:.*?\S)?)\s+)?{_ADVERBS}(?P<verb>{_VERB}))(?:\s+(?P<value>.+))?",
    re.IGNORECASE | re.DOTALL,
)
"""A subject, adverbs, a verb, and what is said; after "and" the subject may be that of the clause before."""
_SEPARATOR = re.compile(
    r"(?P<weak>,\s+(?:and\s+|but\s+)?|(?<!\s)\s+(?:and|but)\s+)|(?<=[!?;:])\s+|(?<=\.)(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bSt\.)\s+|\n+"
)
"""Between clauses; a comma or "and" (weak) may as well stand inside of one."""
_PRONOUNS = frozenset({"he", "it", "she", "that", "they", "this"})
_CONTRACTED = re.compile(rf"^({'|'.join(sorted(_PRONOUNS))})['’]s\b", re.IGNORECASE)
_MARKS = ".,;:!? "
MAX_CHOICES = 5  # clauses that may be meant; among more nobody would choose


@dataclass(slots=True)
class _Clause:
    """`subject` holds its content words (None: none of its own), `text[start:end]` is what is said of it; at `weak` it may
    end already."""

    subject: frozenset[str] | None
    verb: str
    start: int
    end: int
    weak: int | None = None


def corrected(note: str, said: str) -> tuple[str, list[str]]:
    """The text of `note` after the statement `said`; "" where it is not sure what is meant, with the texts to choose from."""
    said = _CONTRACTED.sub(r"\1 is", said)
    clauses = _clauses(note)
    matching = _matching(note, clauses, said)
    made = [
        _replaced(note, clause.start, end, said) for clause in matching[:MAX_CHOICES] for end in _ends(clause)
    ]
    whole = said if len(clauses) == 1 and clauses[0].weak is None and _takes_as_much(note, said) else ""
    sure = made[0] if len(made) == 1 else "" if made else whole
    return sure, list(dict.fromkeys([*made, said]))


def _clauses(text: str) -> list[_Clause]:
    found: list[_Clause] = []
    start, weak = 0, False
    separators = [*_SEPARATOR.finditer(text), None]
    for separator in separators:
        end = separator.start() if separator else len(text)
        piece = text[start:end]
        statement = _STATEMENT.match(piece)
        if weak and found and not statement:  # "tea and coffee": more of the same clause
            found[-1].weak = found[-1].weak or found[-1].end
            found[-1].end = _end(text, start, end)
        elif statement:
            own = statement["own"]
            said_of = None if statement["subject"] is None and not own else _words(statement["subject"] or "")
            subject = found[-1].subject if said_of is None and weak and found else said_of
            at = start + statement.end("subject") if statement["subject"] else start
            at = start + len("the user") if own else at
            verb = own or statement["verb"]
            found.append(_Clause(subject, verb.lower(), at, _end(text, start, end)))
        elif piece.strip(_MARKS):
            found.append(_Clause(None, "", start, _end(text, start, end)))
        start, weak = (separator.end(), bool(separator["weak"])) if separator else (end, False)
    return found


def _end(text: str, start: int, end: int) -> int:
    return start + len(text[start:end].rstrip(_MARKS))


def _words(text: str) -> frozenset[str]:
    return frozenset(content_words(text)) - ADVERBS


def _matching(note: str, clauses: list[_Clause], said: str) -> list[_Clause]:
    """The clauses of the same subject and verb. "The user is …" holds for much: there what is said must share a word."""
    statement = next(iter(_clauses(said)), None)
    if statement is None or not statement.verb:
        return []
    any_subject = said[: statement.start].strip().lower() in _PRONOUNS
    value = _words(said[statement.start :]) - {statement.verb}
    found = []
    for clause in clauses:
        if clause.verb != statement.verb or clause.subject is None:
            continue
        named = statement.subject or frozenset()
        about = named and named <= clause.subject
        alike = not clause.subject and not named and value & (_words(note[clause.start : clause.end]))
        if about or alike or any_subject:
            found.append(clause)
    return found


def _ends(clause: _Clause) -> list[int]:
    return [clause.end] if clause.weak is None else [clause.weak, clause.end]


def _replaced(note: str, start: int, end: int, said: str) -> str:
    (statement,) = _clauses(said)[:1]
    predicate = said[statement.start :].strip().rstrip(_MARKS)
    return f"{note[:start].rstrip()} {predicate}{note[end:]}".strip()


def _takes_as_much(note: str, said: str) -> bool:
    """Whether a statement that takes the place of a note brings as many new words as it takes away."""
    old, new = _words(note), _words(said)
    return len(old - new) <= len(new - old)
