"""Judges whose words a memory repeats, and what follows from that."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.agent.selectors import ConversationTaint
from apps.core.person import third_person
from apps.memory.models import STANDING

from .models import Trust

_RANK = {Trust.UNTRUSTED: 0, Trust.ASSISTANT: 1, Trust.USER: 2}

_SECRET = re.compile(
    r"\b(?:pass(?:word|phrase|code|wort)|kennwort|contraseña|mot de passe|iban|bic|cvv|pin(?:[ -]?code)?(?= |:)|"
    r"credit card|kreditkarte|account number|kontonummer|social security|sozialversicherung\w*|passport number|"
    r"api[ -]?key|secret key|private key)\b|\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,}|\b(?:\d[ -]?){13,19}\b",
    re.IGNORECASE,
)


def least_trust(first: Trust | str, *others: Trust | str) -> Trust:
    """The lowest of these: user, then assistant, then untrusted. What comes out of a merge is trusted no more."""
    return min(map(Trust, (first, *others)), key=_RANK.__getitem__)


def looks_sensitive(content: str) -> bool:
    """Whether a text tells of a password, an account or a card, whatever the model makes of it."""
    return _SECRET.search(content) is not None


MAX_CHARS = 1000
"""A longer text is no sentence."""
REQUEST_CHARS = 100
"""A user's sentence may be longer by so much than twice what is made of it."""
VERB_REACH = 3
"""The verb of "I" stands within so many words after it, or after an "and"."""

_PARAGRAPHS = re.compile(r"\n[^\S\n]*\n")
_ENDS = re.compile(r"(?<=[.!?…])[\"'”’»)\]*_]*\s+(?=[^\sa-zß-öø-ÿ])|(?<=[。！？])")
# A full stop behind a short word or one of these may stand within a sentence ("Dr.", "approx.").
_SHORT, _LAST_CHARS = 3, 50
_ABBREVIATIONS = frozenset(
    [
        "prof",
        "capt",
        "dept",
        "assoc",
        "approx",
        "incl",
        "inkl",
        "exkl",
        "evtl",
        "mind",
        "vors",
        "sogen",
        "abbr",
    ]
)
_EDGES = "\"'“”„«»‘’,.;:!?…()[]{}*_`–—。！？、，"
_CONTRACTIONS = (
    (re.compile(r"\bcan['’]t\b|\bcannot\b"), "can not"),
    (re.compile(r"\bwon['’]t\b"), "will not"),
    (re.compile(r"n['’]t\b"), " not"),
    (re.compile(r"(?<=\w)['’]m\b"), " am"),
    (re.compile(r"(?<=\w)['’]ve\b"), " have"),
    (re.compile(r"(?<=\w)['’]re\b"), " are"),
    (re.compile(r"(?<=\w)['’]ll\b"), " will"),
)
_REQUEST = re.compile(
    r"^\W*(?:"
    r"(?:please |(?:can|could|will|would) you (?:please )?)?(?:remember|note(?: down)?|save|memori[sz]e|write down|"
    r"keep in mind|make a note|(?:do not|don['’]t) forget)(?: this| that)?|"
    r"(?:bitte )?(?:merke?|notiere?|speichere?|behalte?|vergiss nicht)(?: dir)?(?: bitte)?,?(?: dass)?"
    r")\b[\s:,–—-]*",
    re.IGNORECASE,
)
# Of the first person: what may stand for it in a note about "the user".
_PERSONS = {
    "i": ("the user",),
    "me": ("the user",),
    "my": ("the user's",),
    "mine": ("the user's",),
    "ich": ("der nutzer", "der benutzer", "die nutzerin", "die benutzerin"),
    "mich": ("den nutzer", "den benutzer", "die nutzerin", "die benutzerin"),
    "mir": ("dem nutzer", "dem benutzer", "der nutzerin", "der benutzerin"),
}
_SUBJECTS = {"i", "ich"}
_AND = {"and", "or", "but", "und", "oder", "aber"}
_IRREGULAR = {"bin": "ist", "habe": "hat"}


def is_own_sentence(text: str, messages: Iterable[str], *, asked: bool = False) -> bool:
    """Whether a text is one whole sentence of one of these messages of the user, which hold nothing that they quote.

    Case, punctuation, white space and a request to remember at the beginning make no difference, nor does the first
    person in place of "the user" with the form of its verb. A question is no statement. `asked`: only a sentence that
    begins with such a request counts.
    """
    words = _words(text) if len(text) <= MAX_CHARS else []
    longest = 2 * len(text) + REQUEST_CHARS
    for sentence in (each for message in messages for each in _sentences(message)):
        if not words or len(sentence) > longest or _asks(sentence) != _asks(text):
            continue
        statement = _REQUEST.sub("", sentence)
        if statement != sentence and _says(words, _words(statement)):
            return True
        if not asked and _says(words, _words(sentence)):
            return True
    return False


def spoken(text: str) -> frozenset[tuple[str, ...]]:
    """The sentences of a text as they are compared."""
    return frozenset(tuple(_words(sentence)) for sentence in _sentences(text))


def _sentences(message: str) -> Iterator[str]:
    """The sentences of a message; where it is in doubt two stay one."""
    for paragraph in _PARAGRAPHS.split(unicodedata.normalize("NFKC", message)):
        begun = 0
        for end in _ENDS.finditer(paragraph):
            if not _is_open(paragraph[max(begun, end.start() - _LAST_CHARS) : end.start()]):
                yield paragraph[begun : end.start()]
                begun = end.end()
        yield paragraph[begun:]


def _is_open(end: str) -> bool:
    """Whether the full stop that a text ends in may be that of an abbreviation or a number."""
    if not end.endswith(".") or end.endswith(".."):
        return False
    last = end.rsplit(maxsplit=1)[-1].strip(_EDGES).casefold()
    return len(last) <= _SHORT or "." in last or not last.isalpha() or last in _ABBREVIATIONS


def _asks(sentence: str) -> bool:
    return sentence.rstrip(" \t\n\"'”’»)]*_").endswith(("?", "？"))


def _words(text: str) -> list[str]:
    """The words as they are compared: folded, without what surrounds them, contractions spelt out."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    for contraction, words in _CONTRACTIONS:
        folded = contraction.sub(words, folded)
    return [word for part in folded.split() if (word := part.strip(_EDGES).replace("’", "'"))]


def _says(note: Sequence[str], sentence: Sequence[str]) -> bool:
    """Whether a note says a sentence word by word."""
    left, reach, spoken = " ".join(note) + " ", 0, False
    for word in sentence:
        forms = [word, *_PERSONS.get(word, ()), *(_third(word) if reach else ())]
        form = next((form for form in forms if left.startswith(f"{form} ")), None)
        if form is None:
            return False
        left, reach = left[len(form) + 1 :], max(reach - 1, 0)
        spoken = spoken or word in _SUBJECTS
        if spoken and (word in _SUBJECTS or word in _AND):
            reach = VERB_REACH
    return not left


def _third(verb: str) -> set[str]:
    """The forms of a verb that may follow "the user" where this one follows "I"."""
    if verb in _IRREGULAR:
        return {_IRREGULAR[verb]}
    if not verb.isalpha() or len(verb) < 2:
        return set()
    german = {verb[:-1] + "t", verb[:-1] + "et"} if verb.endswith("e") else set()
    return {third_person(verb)} | german


LABEL_CHARS = 12
"""One word of at most so many letters is a label: it finds a note, and claims nothing by itself."""


@dataclass(frozen=True, slots=True)
class Judged:
    """How far a new note is trusted, its fields as they may be kept, and the labels that were left out."""

    trust: Trust
    fields: dict[str, Any]
    left_out: Sequence[str] = ()


def texts_judged(taint: ConversationTaint, texts: Sequence[str]) -> Trust:
    """How far texts and names that the model writes now are trusted."""
    if not taint.is_tainted:
        return Trust.ASSISTANT
    own = taint.own()
    return Trust.ASSISTANT if all(is_own_sentence(text, own) for text in texts) else Trust.UNTRUSTED


def note_judged(own: Sequence[str], content: str, fields: Mapping[str, Any]) -> Judged:
    """Judges what may be kept of a note the model writes with these (cleaned) fields where others' words were read, by the
    user's own messages.

    Tags and category count like the text; single words that the user did not say as a sentence are left out of a note that
    does not wait. None becomes a standing note, and none has the occasions that come with it: they are made of its text.
    """
    category = fields.get("category", "")
    labels = [*fields.get("tags", []), *([category] if category else [])]
    phrases = [label for label in labels if not (label.isalpha() and len(label) <= LABEL_CHARS)]
    waits = not all(is_own_sentence(text, own) for text in [content, *phrases])
    kept = [
        label
        for label in labels
        if label.casefold() != STANDING and (waits or is_own_sentence(label, own))
    ]
    values = {name: value for name, value in fields.items() if name != "occasions"}
    if "tags" in fields:
        values["tags"] = [tag for tag in fields["tags"] if tag in kept]
    if category not in kept:
        values.pop("category", None)
    left_out = [label for label in labels if label not in kept]
    return Judged(Trust.UNTRUSTED if waits else Trust.ASSISTANT, values, left_out)


def program_judged(fields: Mapping[str, Any]) -> Judged:
    """Judges a new note that the model of another program writes: it is Izzy's to keep, and never standing."""
    values, left_out = dict(fields), []
    if fields.get("category", "").casefold() == STANDING:
        left_out.append(values.pop("category"))
    return Judged(Trust.ASSISTANT, values, left_out)


def needs_a_look(taint: ConversationTaint, texts: Sequence[str], *, known: str = "") -> bool:
    """Whether one of the texts is sensitive and the user has not asked for it: in one whole sentence that begins with a
    request to remember, or with none where the note that says `known` is sensitive already."""
    sensitive = [text for text in texts if _SECRET.search(text)]
    return any(
        not is_own_sentence(text, taint.own(), asked=not looks_sensitive(known)) for text in sensitive
    )
