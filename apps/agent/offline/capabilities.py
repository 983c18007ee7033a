"""The rules about capabilities: run one with the input that the words give, list them."""

import json
import re
from typing import Any

from apps.agent.offline import phrases
from apps.agent.offline.dialogue import Blocks, Dialogue, call, fenced, say, short, use
from apps.agent.offline.intents import QUOTES, Intent

SEPARATOR = r"\s*(?:=|:|\bis\b|\bto\b|\bas\b)?\s*"
YES, NO = frozenset({"yes", "true", "on"}), frozenset({"no", "false", "off"})


def input_from(words: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The input that the words give: `{"sides": 6}`, `sides 6 and count = 2`, or `6` where one thing is asked for.

    What does not fit is left as text: the tool's own check says what is wrong.
    """
    text = words.strip()
    if text.startswith("{") and isinstance(found := _json(text), dict):
        return found
    properties = schema.get("properties")
    known: dict[str, Any] = properties if isinstance(properties, dict) else {}
    if not text or not known:
        return {}
    # The one property that is asked for; the first where there are several.
    only = next((name for name in schema.get("required", []) if name in known), next(iter(known)))
    return _named(text, known) or {only: _value(text, known[only])}


def _named(text: str, known: dict[str, Any]) -> dict[str, Any]:
    """Values by the names that stand before them."""
    spelled = {
        re.escape(name).replace("_", "[_ ]"): name for name in sorted(known, key=len, reverse=True)
    }
    names = "|".join(f"({pattern})" for pattern in spelled)
    pieces = list(
        re.finditer(rf"(?<![\w-])(?:the )?(?:{names})(?![\w-]){SEPARATOR}", text, re.IGNORECASE)
    )
    if not pieces or text[: pieces[0].start()].strip():
        return {}
    found = {}
    for piece, following in zip(pieces, [*pieces[1:], None], strict=True):
        name = list(spelled.values())[(piece.lastindex or 1) - 1]
        raw = text[piece.end() : following.start() if following else len(text)]
        found[name] = _value(_without_joint(raw.strip()), known[name])
    return found


def _without_joint(text: str) -> str:
    """The text without the comma, semicolon or `and` that leads to the next value."""
    if text.endswith((",", ";")):
        return text[:-1].rstrip()
    head, _, last = text.rpartition("and")
    return head.rstrip() if not last and head[-1:].isspace() else text


def _value(text: str, schema: Any) -> Any:
    plain = text.strip()
    if len(plain) >= 2 and QUOTES.get(plain[0]) == plain[-1]:
        plain = plain[1:-1]
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind in ("integer", "number") and (number := _number(plain)) is not None:
        return number
    if kind == "boolean" and plain.lower() in YES | NO:
        return plain.lower() in YES
    if kind == "array":
        found = _json(plain) if plain.startswith("[") else None
        parts = [part for part in re.split(r",|\sand\s", plain) if part.strip()]
        return (
            found
            if isinstance(found, list)
            else [_value(part, schema.get("items", {})) for part in parts]
        )
    if kind == "object" or (kind is None and plain[:1] in '{["'):
        found = _json(plain)
        return plain if found is None else found
    return plain


def _number(text: str) -> int | float | None:
    if re.fullmatch(r"[+-]?\d{1,18}", text):
        return int(text)
    if re.fullmatch(r"[+-]?(?:\d{1,18}\.\d{0,18}|\.\d{1,18})", text):
        return float(text)
    return None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


LISTED = 50


def capability_list(dialogue: Dialogue, intent: Intent) -> Blocks:
    latest = dialogue.latest
    if latest is None:
        return use(dialogue, "list_capabilities", {"limit": LISTED})
    entries = latest.items("capabilities")
    if not entries:
        return say(phrases.NO_CAPABILITIES)
    lines = [
        f"- `{entry['name']}`: {entry['description']}"
        + ("" if entry.get("status") == "active" else f" *({entry.get('status')})*")
        for entry in entries
    ]
    more = "\n\nThe capabilities page shows all of them." if latest.value("count") > len(entries) else ""
    return say("Your capabilities:\n\n" + "\n".join(lines) + more)


def capability_run(dialogue: Dialogue, intent: Intent) -> Blocks:
    """Looks the capability up, for its input schema, and runs it with what the words give."""
    latest = dialogue.latest
    if latest is None:
        name = re.sub(r"[\s-]+", "_", intent.topic.strip().lower())[:52]
        return use(dialogue, "lookup_capability", {"name": name, "query": intent.topic})
    if latest.name != "lookup_capability":
        text = latest.text.strip()
        return say((fenced(text) if "\n" in text else text) or "It ran and returned nothing.")
    if not latest.value("found"):
        return say(phrases.NO_CAPABILITY.format(name=short(intent.topic)))
    name = str(latest.value("name"))
    arguments = input_from(intent.value, latest.value("input_schema") or {})
    if f"cap_{name}" in dialogue.tools:
        return [call(f"cap_{name}", arguments)]
    return use(dialogue, "execute_capability", {"name": name, "input": arguments})
