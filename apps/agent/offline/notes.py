"""The rules about notes: remember, look up, correct, change, forget."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from apps.agent.offline import phrases
from apps.agent.offline.dialogue import (
    Blocks,
    Dialogue,
    bullets,
    call,
    say,
    search,
    short,
    stands_in,
    use,
)
from apps.agent.offline.intents import Intent
from apps.agent.offline.wording import (
    ADVERBS,
    Note,
    best_matches,
    content_words,
    echoed,
    note_text,
    sharing,
    to_you,
)

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


def corrected(note: str, utterance: str) -> tuple[str, list[str]]:
    """The text of `note` after the statement `utterance`; "" where it is not sure what is meant, with the texts to choose from."""
    utterance = _CONTRACTED.sub(r"\1 is", utterance)
    clauses = _clauses(note)
    statement = next(iter(_clauses(utterance)), None)
    made: list[str] = []
    if statement and statement.verb:
        predicate = utterance[statement.start :].strip().rstrip(_MARKS)
        made = [
            f"{note[: clause.start].rstrip()} {predicate}{note[end:]}".strip()
            for clause in _matching(note, clauses, utterance, statement)[:MAX_CHOICES]
            for end in ([clause.end] if clause.weak is None else [clause.weak, clause.end])
        ]
    # A statement takes the place of a note where it brings as many new words as it takes away.
    old, new = _words(note), _words(utterance)
    as_much = len(old - new) <= len(new - old)
    whole = utterance if len(clauses) == 1 and clauses[0].weak is None and as_much else ""
    sure = made[0] if len(made) == 1 else "" if made else whole
    return sure, list(dict.fromkeys([*made, utterance]))


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
            said_of = (
                None if statement["subject"] is None and not own else _words(statement["subject"] or "")
            )
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


def _matching(note: str, clauses: list[_Clause], utterance: str, statement: _Clause) -> list[_Clause]:
    """The clauses of the same subject and verb. "The user is …" holds for much: there what is said must share a word."""
    any_subject = utterance[: statement.start].strip().lower() in _PRONOUNS
    value = _words(utterance[statement.start :]) - {statement.verb}
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


LISTED = 20
CERTAIN = 0.45
POSSIBLE = 0.3
NEAREST = 3
WHICH_TEXT = "How shall the note read?"
UNTRUSTED = " *(from an untrusted source)*"


def remember(dialogue: Dialogue, intent: Intent) -> Blocks:
    note = note_text(intent.topic)
    if dialogue.latest is None:
        return use(dialogue, "memory_save", {"content": note})
    return _not_written(dialogue) or say(_inline("I'll remember", to_you(note)))


def _not_written(dialogue: Dialogue) -> Blocks | None:
    """Reply about a note that must be reviewed first, or was known already; None where it was written."""
    saved = dialogue.latest
    status = saved.value("status") if saved else None
    if saved and status == "known":
        return say(_inline("I know already", to_you(str(saved.value("text")))))
    return say(phrases.TO_REVIEW) if status == "pending" else None


def look_up(dialogue: Dialogue, intent: Intent) -> Blocks:
    if dialogue.latest is None:
        return search(dialogue, intent.topic)
    # Those surely about the topic or sharing a word with it, else the likeliest ones.
    notes = dialogue.notes
    shared = {note.note_id for note in sharing(intent.topic, notes)}
    sure = [note for note in notes if note.score >= CERTAIN or note.note_id in shared]
    found = sure or [note for note in notes[:3] if note.score >= POSSIBLE]
    if not found:
        text = phrases.NOTHING_FOUND.format(topic=_quoted(intent.topic))
        nearest = notes[:NEAREST]
        return say(f"{text} The nearest ones are:\n\n{bullets(nearest)}" if nearest else text)
    return say(f"This is what I know about {short(echoed(intent.topic))}:\n\n{bullets(found)}")


def deep(dialogue: Dialogue, intent: Intent) -> Blocks:
    latest = dialogue.latest
    if latest is None:
        return use(dialogue, "deep_memory", {"query": intent.topic})
    memories = latest.items("memories")
    if not memories:
        return say(phrases.NOTHING_FOUND.format(topic=_quoted(intent.topic)))
    lines = [
        f"- {to_you(item['text'])}{UNTRUSTED if item.get('untrusted') else ''}" for item in memories
    ]
    return say("This is what I know deep down:\n\n" + "\n".join(lines))


def question(dialogue: Dialogue, intent: Intent) -> Blocks:
    if dialogue.latest is None:
        return (
            search(dialogue, intent.topic) if "memory_search" in dialogue.tools else say(phrases.UNKNOWN)
        )
    # Those that share a word with it, and those that Izzy brought up for it. However near a search finds them, others would be
    # a strange answer to "what is 2+2".
    notes = dialogue.notes
    shared = {note.note_id for note in sharing(intent.topic, notes)}
    found = [
        note
        for note in notes
        if note.note_id in shared
        or stands_in(note, dialogue.surfaced)
        or (note.score >= CERTAIN and stands_in(note, dialogue.shown))
    ]
    return say(f"From your notes:\n\n{bullets(found)}" if found else phrases.NOT_A_MODEL)


def note_list(dialogue: Dialogue, intent: Intent) -> Blocks:
    if dialogue.latest is None:
        return search(dialogue, "the user", LISTED)
    notes = dialogue.notes
    if not notes:
        return say(phrases.NO_NOTES)
    more = "\n\nThe memories page shows all of them." if len(notes) >= LISTED else ""
    return say(f"This is what I remember:\n\n{bullets(notes)}{more}")


def forget(dialogue: Dialogue, intent: Intent) -> Blocks:
    latest = dialogue.latest
    if latest is None:
        return search(dialogue, intent.topic)
    if latest.name == "memory_delete":
        gone = {str(done.input.get("note_id")) for done in dialogue.done if done.name == "memory_delete"}
        texts = [f"- ~~{to_you(note.text)}~~" for note in dialogue.notes if note.note_id in gone]
        listed = "\n".join(texts)
        return say(
            f"I have forgotten this:\n\n{listed}\n\nIt can be restored on the memories page for 30 days."
        )
    if intent.value == "all" and (all_of_it := sharing(intent.topic, dialogue.notes)):
        return [call("memory_delete", {"note_id": note.note_id}) for note in all_of_it]
    chosen = _choose(dialogue, intent.topic, "Which note shall I forget?")
    if isinstance(chosen, Note):
        return use(dialogue, "memory_delete", {"note_id": chosen.note_id})
    return chosen or say(phrases.NOTHING_FOUND.format(topic=_quoted(intent.topic)))


def forget_last(dialogue: Dialogue, intent: Intent) -> Blocks:
    if dialogue.latest is not None:
        return say("I have forgotten it.")
    if not dialogue.last_note_id:
        return say(phrases.NOTHING_TO_FORGET)
    return use(dialogue, "memory_delete", {"note_id": dialogue.last_note_id})


def correct(dialogue: Dialogue, intent: Intent) -> Blocks:
    """`actually …`: the best matching note changes in the part that is named; where none fits it becomes a new note."""
    utterance = note_text(intent.topic)
    return _rewrite(dialogue, utterance, utterance, lambda note: corrected(note.text, utterance))


def change(dialogue: Dialogue, intent: Intent) -> Blocks:
    """`change X to Y`: Y takes the place of X in the note, or it is corrected by "X is Y"."""
    utterance = note_text(f"{intent.topic} is {intent.value}")

    def changed(note: Note) -> tuple[str, list[str]]:
        pattern = re.compile(rf"\b{re.escape(intent.topic)}\b", re.IGNORECASE)
        if not intent.topic.lower().startswith(("my ", "the ")) and pattern.search(note.text):
            return pattern.sub(lambda _: intent.value, note.text), []
        return corrected(note.text, utterance)

    return _rewrite(dialogue, intent.topic, utterance, changed)


def _rewrite(
    dialogue: Dialogue, about: str, utterance: str, changed: Callable[[Note], tuple[str, list[str]]]
) -> Blocks:
    """The note that is `about` it gets the text that `changed` is sure of, or the one that the user chooses; `utterance` is kept
    by itself where there is no such note."""
    latest = dialogue.latest
    if latest is None:
        return search(dialogue, about)
    if latest.name in ("memory_update", "memory_save"):
        return _not_written(dialogue) or say(f"Corrected: {to_you(str(latest.input['content']))}")
    chosen = _choose(dialogue, about, "Which note shall I change?")
    if not isinstance(chosen, Note):
        return chosen or use(dialogue, "memory_save", {"content": utterance})
    if chosen.excerpt:
        return say(phrases.TOO_LONG_TO_CHANGE)
    text, texts = changed(chosen)
    if not text:
        if not (answer := dialogue.answer(WHICH_TEXT)):
            own = f"Leave it, and remember by itself: {utterance}"
            return _ask(dialogue, WHICH_TEXT, [*texts, own]) or say(phrases.UNSURE)
        place = _numbered(answer, len(texts) + 1)
        if place == len(texts):
            return use(dialogue, "memory_save", {"content": utterance})
        if place is None or place > len(texts):
            return say(phrases.NONE_CHOSEN)
        text = texts[place]
    return use(dialogue, "memory_update", {"note_id": chosen.note_id, "content": text})


def _choose(dialogue: Dialogue, about: str, asked: str) -> Note | Blocks | None:
    """The one note that is meant; else a question to the user (or what follows from its answer); None if there is none."""
    notes = dialogue.notes
    candidates = best_matches(about, notes) or [note for note in notes if note.score >= CERTAIN]
    if len(candidates) <= 1:
        return candidates[0] if candidates else None
    if answer := dialogue.answer(asked):
        place = _numbered(answer, len(candidates))
        meant = best_matches(answer, candidates) if place is None else candidates[place : place + 1]
        return meant[0] if len(meant) == 1 else say(phrases.NONE_CHOSEN)
    return _ask(dialogue, asked, [note.text for note in candidates]) or candidates[0]


def _ask(dialogue: Dialogue, question: str, options: list[str]) -> Blocks | None:
    """A question with numbered options; None in a conversation in which nothing can be asked."""
    if "ask_user" not in dialogue.tools:
        return None
    listed = "\n".join(f"{number}. {to_you(option)}" for number, option in enumerate(options, 1))
    return [
        call("ask_user", {"question": f"{question}\n\n{listed}\n\nAnswer with its number, or *none*."})
    ]


def _numbered(answer: str, count: int) -> int | None:
    """The place from 0 of the option that an answer names by number or order; `count` for one that there is not, None where it
    names none."""
    if number := re.search(r"\d{1,9}", answer):
        place = int(number[0]) - 1
        return place if 0 <= place < count else count
    named = {"first": 0, "second": 1, "third": 2, "last": count - 1}
    return next(
        (min(place, count) for word, place in named.items() if word in answer.lower().split()), None
    )


def _quoted(topic: str) -> str:
    """The topic as Izzy names it: the user's own “me” is “you” to Izzy."""
    return "you" if topic.casefold() in ("me", "myself") else f"“{short(topic)}”"


def _inline(before: str, text: str) -> str:
    """`I'll remember that you are tall.`, or with a colon where the text is not about the user."""
    if text.startswith(("You ", "Your ")):
        return f"{before} that {text[0].lower()}{text[1:]}"
    return f"{before}: {text}"
