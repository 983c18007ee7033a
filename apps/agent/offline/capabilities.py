"""The rules about capabilities: run one, list them."""

import re
from typing import Any

from apps.agent.offline import phrases
from apps.agent.offline.capability_words import input_from
from apps.agent.offline.dialogue import Dialogue
from apps.agent.offline.intents import Intent
from apps.agent.offline.speech import Blocks, call, say, short, use

LISTED = 50
MARK = re.compile(r"^\[What follows was written by others\.[^\n]*\]\n")


def capability_list(dialogue: Dialogue, intent: Intent) -> Blocks:
    latest = dialogue.latest
    if latest is None:
        return use(dialogue, "list_capabilities", {"limit": LISTED})
    found = latest.json()
    entries = found.get("capabilities", []) if isinstance(found, dict) else []
    if not entries:
        return say(phrases.NO_CAPABILITIES)
    lines = [f"- `{entry['name']}`: {entry['description']}{_standing(entry)}" for entry in entries]
    more = "\n\nThe capabilities page shows all of them." if found["count"] > len(entries) else ""
    return say("Your capabilities:\n\n" + "\n".join(lines) + more)


def capability_run(dialogue: Dialogue, intent: Intent) -> Blocks:
    """Looks the capability up, for its input schema, and runs it with what the words give."""
    latest = dialogue.latest
    if latest is None:
        return use(dialogue, "lookup_capability", {"name": _snake(intent.topic), "query": intent.topic})
    if latest.name != "lookup_capability":
        return say(_told(latest.result))
    found = latest.json()
    if not isinstance(found, dict) or not found.get("found"):
        return say(phrases.NO_CAPABILITY.format(name=short(intent.topic)))
    arguments = input_from(intent.value, found.get("input_schema") or {})
    return _call(dialogue, str(found["name"]), arguments)


def _call(dialogue: Dialogue, name: str, arguments: dict[str, Any]) -> Blocks:
    if f"cap_{name}" in dialogue.tools:
        return [call(f"cap_{name}", arguments)]
    return use(dialogue, "execute_capability", {"name": name, "input": arguments})


def _snake(topic: str) -> str:
    return re.sub(r"[\s-]+", "_", topic.strip().lower())[:52]


def _told(result: str) -> str:
    """The result for people: without the mark that is meant for models."""
    text = MARK.sub("", result).strip()
    if not text:
        return "It ran and returned nothing."
    if "\n" not in text:
        return text
    fence = "`" * (2 + max(map(len, re.findall("`+", text)), default=1))
    return f"{fence}text\n{text}\n{fence}"


def _standing(entry: dict[str, Any]) -> str:
    return "" if entry.get("status") == "active" else f" *({entry.get('status')})*"
