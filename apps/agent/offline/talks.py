"""The rules about past conversations and memory files."""

import re
from typing import Any

from apps.agent.offline import phrases
from apps.agent.offline.dialogue import SEARCHED, Blocks, Dialogue, Done, say, short, use
from apps.agent.offline.intents import Intent, file_command
from apps.agent.offline.wording import Note, best_matches

LISTED = 20
SHOWN = 5
QUOTED = 160


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
        return say(f"I found nothing that was said about “{short(intent.topic)}”.")
    listed = "\n".join(f"- {short(text, QUOTED)}" for text in texts)
    return say(f"This came up about {short(intent.topic)}:\n\n{listed}")


def conversation_delete(dialogue: Dialogue, intent: Intent) -> Blocks:
    latest = dialogue.latest
    if latest is None:
        return use(dialogue, "conversation_list", {"limit": LISTED})
    if latest.name == "conversation_delete":
        return say("The conversation is deleted.")
    meant = _meant(intent.topic, _conversations(latest))
    if len(meant) != 1:
        return say(
            f"I could not tell which conversation “{short(intent.topic)}” is. Give me more of its title."
        )
    arguments = {"conversation_id": meant[0].note_id}
    return use(dialogue, "conversation_delete", arguments)


def _meant(topic: str, conversations: list[dict[str, Any]]) -> list[Note]:
    """The conversations the words may mean: those called so, else those whose titles share most words. Never the one
    under way, whose title may be these very words."""
    others = [item for item in conversations if not item.get("current")]
    known = [Note(str(item.get("id")), str(item.get("title") or ""), 0) for item in others]
    called = [note for note in known if note.text.casefold() == topic.strip().casefold()]
    return called or best_matches(topic, known)


def _conversations(done: Done) -> list[dict[str, Any]]:
    found = done.json()
    listed = found.get("conversations", []) if isinstance(found, dict) else found
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def _found(done: Done) -> list[dict[str, Any]]:
    found = done.json()
    items = found.get("results", []) if isinstance(found, dict) else found
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def file_work(dialogue: Dialogue, intent: Intent) -> Blocks:
    """Calls the tool, then says what it answered."""
    latest = dialogue.latest
    fields = file_command(intent.topic)
    if latest is None and fields is not None:
        return use(dialogue, "memory", fields) if "memory" in dialogue.tools else say(phrases.NO_TOOL)
    result = latest.result if latest is not None else ""
    first, _, rest = result.partition("\n")
    fence = "`" * (2 + max(map(len, re.findall("`+", rest)), default=1))
    return say(f"{first}\n\n{fence}text\n{rest}\n{fence}" if rest else first)
