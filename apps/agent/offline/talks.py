"""The rules about past conversations and memory files."""

from apps.agent.offline import phrases
from apps.agent.offline.dialogue import SEARCHED, Blocks, Dialogue, fenced, say, short, use
from apps.agent.offline.intents import Intent, file_command
from apps.agent.offline.wording import Note, best_matches

LISTED = 20
SHOWN = 5
QUOTED = 160


def conversation_list(dialogue: Dialogue, intent: Intent) -> Blocks:
    latest = dialogue.latest
    if latest is None:
        return use(dialogue, "conversation_list", {"limit": LISTED})
    titles = [f"- {item.get('title') or 'untitled'}" for item in latest.items("conversations")]
    return say(
        "Our conversations, newest first:\n\n" + "\n".join(titles) if titles else "There are none yet."
    )


def conversation_search(dialogue: Dialogue, intent: Intent) -> Blocks:
    if dialogue.latest is None:
        if "conversation_search" in dialogue.tools:
            return use(dialogue, "conversation_search", {"query": intent.topic})
        arguments = {"query": intent.topic, "top_k": SEARCHED, "include_conversation": True}
        return use(dialogue, "memory_search", arguments)
    found = dialogue.latest.items("results")
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
    # Never the one under way, whose title may be these very words.
    others = [item for item in latest.items("conversations") if not item.get("current")]
    known = [Note(str(item.get("id")), str(item.get("title") or ""), 0) for item in others]
    called = [note for note in known if note.text.casefold() == intent.topic.strip().casefold()]
    meant = called or best_matches(intent.topic, known)
    if len(meant) != 1:
        return say(
            f"I could not tell which conversation “{short(intent.topic)}” is. Give me more of its title."
        )
    arguments = {"conversation_id": meant[0].note_id}
    return use(dialogue, "conversation_delete", arguments)


def file_work(dialogue: Dialogue, intent: Intent) -> Blocks:
    """Calls the tool, then says what it answered."""
    latest = dialogue.latest
    fields = file_command(intent.topic)
    if latest is None and fields is not None:
        return use(dialogue, "memory", fields) if "memory" in dialogue.tools else say(phrases.NO_TOOL)
    result = latest.result if latest is not None else ""
    first, _, rest = result.partition("\n")
    return say(f"{first}\n\n{fenced(rest)}" if rest else first)
