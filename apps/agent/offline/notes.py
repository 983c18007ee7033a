"""The rules about notes: remember, look up, correct, change, forget."""

import re
from collections.abc import Callable

from apps.agent.offline import phrases
from apps.agent.offline.correcting import corrected
from apps.agent.offline.dialogue import Dialogue
from apps.agent.offline.intents import Intent
from apps.agent.offline.matching import Note, best_matches, sharing
from apps.agent.offline.speech import Blocks, bullets, call, say, search, short, use
from apps.agent.offline.wording import echoed, note_text, to_you

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
    saved = dialogue.latest.json() if dialogue.latest else None
    if not isinstance(saved, dict):
        return None
    if saved.get("status") == "known":
        return say(_inline("I know already", to_you(str(saved.get("text")))))
    return say(phrases.TO_REVIEW) if saved.get("status") == "pending" else None


def look_up(dialogue: Dialogue, intent: Intent) -> Blocks:
    if dialogue.latest is None:
        return search(dialogue, intent.topic)
    found = _relevant(dialogue.notes, intent.topic)
    if not found:
        return say(_nothing_found(dialogue, intent.topic))
    return say(f"This is what I know about {short(echoed(intent.topic))}:\n\n{bullets(found)}")


def deep(dialogue: Dialogue, intent: Intent) -> Blocks:
    latest = dialogue.latest
    if latest is None:
        return use(dialogue, "deep_memory", {"query": intent.topic})
    found = latest.json()
    memories = found.get("memories", []) if isinstance(found, dict) else []
    if not memories:
        return say(phrases.NOTHING_FOUND.format(topic=_quoted(intent.topic)))
    lines = [f"- {to_you(item['text'])}{UNTRUSTED if item.get('untrusted') else ''}" for item in memories]
    listed = "\n".join(lines)
    return say(f"This is what I know deep down:\n\n{listed}")


def question(dialogue: Dialogue, intent: Intent) -> Blocks:
    if dialogue.latest is None:
        return search(dialogue, intent.topic) if "memory_search" in dialogue.tools else say(phrases.UNKNOWN)
    found = _bearing(dialogue, intent.topic)
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
        return say(_forgotten(dialogue))
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
    said = note_text(intent.topic)
    return _rewrite(dialogue, said, said, lambda note: corrected(note.text, said))


def change(dialogue: Dialogue, intent: Intent) -> Blocks:
    """`change X to Y`: Y takes the place of X in the note, or it is corrected by "X is Y"."""
    said = note_text(f"{intent.topic} is {intent.value}")

    def changed(note: Note) -> tuple[str, list[str]]:
        pattern = re.compile(rf"\b{re.escape(intent.topic)}\b", re.IGNORECASE)
        if not intent.topic.lower().startswith(("my ", "the ")) and pattern.search(note.text):
            return pattern.sub(lambda _: intent.value, note.text), []
        return corrected(note.text, said)

    return _rewrite(dialogue, intent.topic, said, changed)


def _rewrite(
    dialogue: Dialogue, about: str, said: str, changed: Callable[[Note], tuple[str, list[str]]]
) -> Blocks:
    """The note that is `about` it gets the text that `changed` is sure of, or the one that the user chooses; `said` is kept
    by itself where there is no such note."""
    latest = dialogue.latest
    if latest is None:
        return search(dialogue, about)
    if latest.name in ("memory_update", "memory_save"):
        return _not_written(dialogue) or say(f"Corrected: {to_you(str(latest.input['content']))}")
    chosen = _choose(dialogue, about, "Which note shall I change?")
    if not isinstance(chosen, Note):
        return chosen or use(dialogue, "memory_save", {"content": said})
    if chosen.excerpt:
        return say(phrases.TOO_LONG_TO_CHANGE)
    text, texts = changed(chosen)
    if not text:
        if not (answer := dialogue.answer(WHICH_TEXT)):
            own = f"Leave it, and remember by itself: {said}"
            return _ask(dialogue, WHICH_TEXT, [*texts, own]) or say(phrases.UNSURE)
        place = _numbered(answer, len(texts) + 1)
        if place == len(texts):
            return use(dialogue, "memory_save", {"content": said})
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
    return [call("ask_user", {"question": f"{question}\n\n{listed}\n\nAnswer with its number, or *none*."})]


def _numbered(answer: str, count: int) -> int | None:
    """The place from 0 of the option that an answer names by number or order; `count` for one that there is not, None where it
    names none."""
    if number := re.search(r"\d{1,9}", answer):
        place = int(number[0]) - 1
        return place if 0 <= place < count else count
    named = {"first": 0, "second": 1, "third": 2, "last": count - 1}
    return next((min(place, count) for word, place in named.items() if word in answer.lower().split()), None)


def _relevant(notes: list[Note], topic: str) -> list[Note]:
    """The notes that answer: those surely about the topic or sharing a word with it, else the likeliest one."""
    shared = {note.note_id for note in sharing(topic, notes)}
    sure = [note for note in notes if note.score >= CERTAIN or note.note_id in shared]
    return sure or [note for note in notes[:3] if note.score >= POSSIBLE]


def _bearing(dialogue: Dialogue, topic: str) -> list[Note]:
    """The notes that a question is about: those sharing a word with it, and those that Izzy brought up for it. However near
    a search finds them, others would be a strange answer to "what is 2+2"."""
    shared = {note.note_id for note in sharing(topic, dialogue.notes)}
    certain = {note.note_id for note in dialogue.notes if note.score >= CERTAIN}
    meant = shared | dialogue.surfaced | (dialogue.shown & certain)
    return [note for note in dialogue.notes if note.note_id in meant]


def _forgotten(dialogue: Dialogue) -> str:
    gone = {str(done.input.get("note_id")) for done in dialogue.done if done.name == "memory_delete"}
    texts = [to_you(note.text) for note in dialogue.notes if note.note_id in gone]
    listed = "\n".join(f"- ~~{text}~~" for text in texts)
    return f"I have forgotten this:\n\n{listed}\n\nIt can be restored on the memories page for 30 days."


def _quoted(topic: str) -> str:
    """The topic as Izzy names it: the user's own “me” is “you” to Izzy."""
    return "you" if topic.casefold() in ("me", "myself") else f"“{short(topic)}”"


def _nothing_found(dialogue: Dialogue, topic: str) -> str:
    text = phrases.NOTHING_FOUND.format(topic=_quoted(topic))
    nearest = dialogue.notes[:NEAREST]
    return f"{text} The nearest ones are:\n\n{bullets(nearest)}" if nearest else text


def _inline(before: str, text: str) -> str:
    """`I'll remember that you are tall.`, or with a colon where the text is not about the user."""
    if text.startswith(("You ", "Your ")):
        return f"{before} that {text[0].lower()}{text[1:]}"
    return f"{before}: {text}"
