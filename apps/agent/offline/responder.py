"""The rules: what the offline model answers, given the user's words and what its tool calls brought so far."""

import re
from collections.abc import Callable
from typing import Any, TypeAlias
from uuid import uuid4

from apps.agent.offline import phrases
from apps.agent.offline.dialogue import Dialogue, Done, read_dialogue
from apps.agent.offline.intents import Intent, Kind, intent_of
from apps.agent.offline.matching import Note, best_matches, sharing
from apps.agent.offline.wording import note_text, to_you

Blocks: TypeAlias = list[dict[str, Any]]

SEARCHED = 10
LISTED = 20
CERTAIN = 0.45
POSSIBLE = 0.3
NEAREST = 3
SHOWN = 5
QUOTED = 160
SHORT = 80


def respond(request: dict[str, Any]) -> Blocks:
    """The content blocks that answer a Messages API request."""
    dialogue = read_dialogue(request)
    intent = intent_of(dialogue.words)
    failed = dialogue.latest
    if failed is not None and failed.is_error:
        return say(phrases.FAILED.format(reason=failed.result))
    return RULES[intent.kind](dialogue, intent)


def say(text: str) -> Blocks:
    return [{"type": "text", "text": text}]


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_offline_{uuid4().hex}", "name": name, "input": arguments}


def use(dialogue: Dialogue, name: str, arguments: dict[str, Any]) -> Blocks:
    """A call of a tool, or a sentence that says why there is none."""
    if name in dialogue.tools:
        return [call(name, arguments)]
    return say(phrases.NO_MEMORY if name.startswith("memory_") else phrases.NO_TOOL)


def search(dialogue: Dialogue, query: str, top_k: int = SEARCHED) -> Blocks:
    return use(dialogue, "memory_search", {"query": query, "top_k": top_k})


def fixed(text: str) -> Callable[[Dialogue, Intent], Blocks]:
    def rule(dialogue: Dialogue, intent: Intent) -> Blocks:
        return say(text)

    return rule


def remember(dialogue: Dialogue, intent: Intent) -> Blocks:
    note = note_text(intent.topic)
    if dialogue.latest is None:
        return use(dialogue, "memory_save", {"content": note})
    return say(_inline("I'll remember", to_you(note)))


def look_up(dialogue: Dialogue, intent: Intent) -> Blocks:
    if dialogue.latest is None:
        return search(dialogue, intent.topic)
    found = _relevant(dialogue.notes, intent.topic)
    if not found:
        return say(_nothing_found(dialogue, intent.topic))
    return say(f"This is what I know about {_short(intent.topic)}:\n\n{_bullets(found)}")


def question(dialogue: Dialogue, intent: Intent) -> Blocks:
    if dialogue.latest is None:
        return search(dialogue, intent.topic) if "memory_search" in dialogue.tools else say(phrases.UNKNOWN)
    found = _relevant(dialogue.notes, intent.topic)
    return say(f"From your notes:\n\n{_bullets(found)}" if found else phrases.NOT_A_MODEL)


def note_list(dialogue: Dialogue, intent: Intent) -> Blocks:
    if dialogue.latest is None:
        return search(dialogue, "the user", LISTED)
    notes = dialogue.notes
    if not notes:
        return say(phrases.NO_NOTES)
    more = "\n\nThe memories page shows all of them." if len(notes) >= LISTED else ""
    return say(f"This is what I remember:\n\n{_bullets(notes)}{more}")


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
    return chosen or say(phrases.NOTHING_FOUND.format(topic=f"“{_short(intent.topic)}”"))


def forget_last(dialogue: Dialogue, intent: Intent) -> Blocks:
    if dialogue.latest is not None:
        return say("I have forgotten it.")
    if not dialogue.last_note_id:
        return say(phrases.NOTHING_TO_FORGET)
    return use(dialogue, "memory_delete", {"note_id": dialogue.last_note_id})


def correct(dialogue: Dialogue, intent: Intent) -> Blocks:
    """`actually …`: the best matching note gets the new text; where none fits it becomes a new note."""
    return _rewrite(dialogue, note_text(intent.topic), lambda _: note_text(intent.topic))


def change(dialogue: Dialogue, intent: Intent) -> Blocks:
    """`change X to Y`: Y takes the place of X in the note, or the note becomes "X is Y"."""
    whole = note_text(f"{intent.topic} is {intent.value}")

    def changed(note: Note) -> str:
        pattern = re.compile(rf"\b{re.escape(intent.topic)}\b", re.IGNORECASE)
        if not intent.topic.lower().startswith(("my ", "the ")) and pattern.search(note.text):
            return pattern.sub(lambda _: intent.value, note.text)
        return whole

    return _rewrite(dialogue, intent.topic, changed)


def conversation_list(dialogue: Dialogue, intent: Intent) -> Blocks:
    latest = dialogue.latest
    if latest is None:
        return use(dialogue, "conversation_list", {"limit": LISTED})
    titles = [f"- {item.get('title') or 'untitled'}" for item in _conversations(latest)]
    return say(
        "Our conversations, newest first:\n\n" + "\n".join(titles) if titles else "There are none yet."
    )


def conversation_search(dialogue: Dialogue, intent: Intent) -> Blocks:
    if dialogue.latest is None:
        if "conversation_search" in dialogue.tools:
            return use(dialogue, "conversation_search", {"query": intent.topic})
        arguments = {"query": intent.topic, "top_k": SEARCHED, "include_conversation": True}
        return use(dialogue, "memory_search", arguments)
    found = _found(dialogue.latest)
    spoken = [item for item in found if item.get("source") == "conversation"] or found
    texts = [" ".join(str(item.get("text", "")).split()) for item in spoken[:SHOWN]]
    if not texts:
        return say(f"I found nothing that was said about “{_short(intent.topic)}”.")
    listed = "\n".join(f"- {_short(text, QUOTED)}" for text in texts)
    return say(f"This came up about {_short(intent.topic)}:\n\n{listed}")


def conversation_delete(dialogue: Dialogue, intent: Intent) -> Blocks:
    latest = dialogue.latest
    if latest is None:
        return use(dialogue, "conversation_list", {"limit": LISTED})
    if latest.name == "conversation_delete":
        return say("The conversation is deleted.")
    known = [Note(str(item.get("id")), str(item.get("title") or ""), 0) for item in _conversations(latest)]
    meant = best_matches(intent.topic, known)
    if len(meant) != 1:
        return say(
            f"I could not tell which conversation “{_short(intent.topic)}” is. Give me more of its title."
        )
    arguments = {"conversation_id": meant[0].note_id}
    return use(dialogue, "conversation_delete", arguments)


def _rewrite(dialogue: Dialogue, about: str, changed: Callable[[Note], str]) -> Blocks:
    latest = dialogue.latest
    if latest is None:
        return search(dialogue, about)
    if latest.name in ("memory_update", "memory_save"):
        return say(f"Corrected: {to_you(str(latest.input['content']))}")
    chosen = _choose(dialogue, about, "Which note shall I change?")
    if isinstance(chosen, Note):
        return use(dialogue, "memory_update", {"note_id": chosen.note_id, "content": changed(chosen)})
    return chosen or use(dialogue, "memory_save", {"content": changed(Note("", about, 0))})


def _choose(dialogue: Dialogue, about: str, asked: str) -> Note | Blocks | None:
    """The one note that is meant; else a question to the user (or what follows from its answer); None if there is none."""
    notes = dialogue.notes
    candidates = best_matches(about, notes) or [note for note in notes if note.score >= CERTAIN]
    if answer := dialogue.answer():
        return _picked(answer, candidates) or say(phrases.NONE_CHOSEN)
    if len(candidates) <= 1:
        return candidates[0] if candidates else None
    if "ask_user" not in dialogue.tools:
        return candidates[0]
    options = "\n".join(f"{number}. {to_you(note.text)}" for number, note in enumerate(candidates, 1))
    return [call("ask_user", {"question": f"{asked}\n\n{options}\n\nAnswer with its number, or *none*."})]


def _picked(answer: str, candidates: list[Note]) -> Note | None:
    if number := re.search(r"\d+", answer):
        place = int(number[0])
        return candidates[place - 1] if 1 <= place <= len(candidates) else None
    named = {"first": 0, "second": 1, "third": 2, "last": -1}
    for word, place in named.items():
        if word in answer.lower().split() and len(candidates) > place:
            return candidates[place]
    meant = best_matches(answer, candidates)
    return meant[0] if len(meant) == 1 else None


def _relevant(notes: list[Note], topic: str) -> list[Note]:
    """The notes that answer: those surely about the topic or sharing a word with it, else the likeliest one."""
    shared = {note.note_id for note in sharing(topic, notes)}
    sure = [note for note in notes if note.score >= CERTAIN or note.note_id in shared]
    return sure or [note for note in notes[:3] if note.score >= POSSIBLE]


def _forgotten(dialogue: Dialogue) -> str:
    gone = {str(done.input.get("note_id")) for done in dialogue.done if done.name == "memory_delete"}
    texts = [to_you(note.text) for note in dialogue.notes if note.note_id in gone]
    listed = "\n".join(f"- ~~{text}~~" for text in texts)
    return f"I have forgotten this:\n\n{listed}\n\nIt can be restored on the memories page for 30 days."


def _nothing_found(dialogue: Dialogue, topic: str) -> str:
    text = phrases.NOTHING_FOUND.format(topic=f"“{_short(topic)}”")
    nearest = dialogue.notes[:NEAREST]
    return f"{text} The nearest ones are:\n\n{_bullets(nearest)}" if nearest else text


def _inline(before: str, text: str) -> str:
    """`I'll remember that you are tall.`, or with a colon where the text is not about the user."""
    if text.startswith(("You ", "Your ")):
        return f"{before} that {text[0].lower()}{text[1:]}"
    return f"{before}: {text}"


def _bullets(notes: list[Note]) -> str:
    return "\n".join(f"- {to_you(note.text)}" for note in notes)


def _conversations(done: Done) -> list[dict[str, Any]]:
    found = done.json()
    listed = found.get("conversations", []) if isinstance(found, dict) else found
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def _found(done: Done) -> list[dict[str, Any]]:
    found = done.json()
    items = found.get("results", []) if isinstance(found, dict) else found
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _short(text: str, limit: int = SHORT) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


RULES: dict[Kind, Callable[[Dialogue, Intent], Blocks]] = {
    Kind.HELP: fixed(phrases.HELP),
    Kind.GREETING: fixed(phrases.GREETING),
    Kind.THANKS: fixed(phrases.THANKS),
    Kind.UNKNOWN: fixed(phrases.UNKNOWN),
    Kind.FORGET_ALL: fixed(phrases.FORGET_ALL),
    Kind.CONVERSATION_LIST: conversation_list,
    Kind.CONVERSATION_SEARCH: conversation_search,
    Kind.CONVERSATION_DELETE: conversation_delete,
    Kind.NOTE_LIST: note_list,
    Kind.REMEMBER: remember,
    Kind.FACT: remember,
    Kind.FORGET_LAST: forget_last,
    Kind.FORGET: forget,
    Kind.CHANGE: change,
    Kind.CORRECT: correct,
    Kind.LOOK_UP: look_up,
    Kind.QUESTION: question,
}
