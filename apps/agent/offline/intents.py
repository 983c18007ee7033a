"""The user's intent, by patterns. The first that fits counts."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

PATH = r"""["'`“]?(?P<path>/memories(?:/[^\s"'`”]*)?)["'`”]?"""
NEW_PATH = PATH.replace("<path>", "<new_path>")
A_FILE = r"(?:(?:the|a|my)\s+)?(?:new\s+)?(?:(?:memory\s+)?(?:file|directory|folder)\s+)?(?:called\s+|named\s+)?"
TEXT = r"(?P<text>.*)"
LINES = r"(?:\s*,?\s*lines?\s+(?P<first>\d{1,6})(?:\s*(?:-|–|to)\s*(?P<last>\d{1,6}|the end|end))?)?"

FILE_PATTERNS = [
    ("create", rf"(?:create|write|make|add|start)\s+{A_FILE}{PATH}(?:\s*(?:with|containing|saying|:)(?:\s+(?:the\s+)?(?:text|content|contents))?\s*:?\s*{TEXT})?"),
    ("create", rf"(?:write|save|put)\s{TEXT}\s(?:to|into|in)\s+{A_FILE}{PATH}"),
    ("rename", rf"(?:rename|move)\s+{A_FILE}{PATH}\s+(?:to|into|as)\s+{NEW_PATH}"),
    ("delete", rf"(?:delete|remove|erase|forget)\s+{A_FILE}{PATH}"),
    ("str_replace", rf"(?:replace|change)\s(?P<old>.+?)\s(?:with|by|to|into)\s(?P<new>.+?)\sin\s+{A_FILE}{PATH}"),
    ("str_replace", rf"in\s+{A_FILE}{PATH}\s*,?\s+(?:replace|change)\s(?P<old>.+?)\s(?:with|by|to|into)\s(?P<new>.+)"),
    ("cut", rf"(?:delete|remove|erase)\s(?P<old>.+?)\s(?:from|in)\s+{A_FILE}{PATH}"),
    ("insert", rf"(?:insert|add|put)\s{TEXT}\s(?:at|after|in|on)\s+line\s+(?P<line>\d{{1,6}})\s+(?:of|in|to|into)\s+{A_FILE}{PATH}"),
    ("top", rf"(?:insert|add|put)\s{TEXT}\s(?:at|to)\s+the\s+(?:top|beginning|start)\s+of\s+{A_FILE}{PATH}"),
    ("view", rf"(?:(?:view|show|open|read|list|display|cat|ls)(?:\s+me)?|what(?:'s|’s|\s+is)\s+in|look\s+(?:in|into|at))?\s*(?:what(?:'s|’s|\s+is)\s+in\s+|(?:all\s+)?(?:the\s+|my\s+)?(?:memory\s+)?files\s+(?:in|under)\s+)?{A_FILE}{PATH}{LINES}"),
]  # fmt: skip
FILE_COMPILED = [
    (name, re.compile(rf"{pattern}[\s.!?]*", re.IGNORECASE | re.DOTALL))
    for name, pattern in FILE_PATTERNS
]
FILE_MAX_CHARS = 2_000
"""Longer words are only looked at for what creates a file: the other patterns are not linear."""

QUOTES = {'"': '"', "'": "'", "“": "”", "`": "`"}


def file_command(words: str) -> dict[str, Any] | None:
    """The fields of the tool call that the words ask for; None where they are no file command."""
    if "/memories" not in words.lower():
        return None
    patterns = FILE_COMPILED if len(words) <= FILE_MAX_CHARS else FILE_COMPILED[:1]
    for name, pattern in patterns:
        if match := pattern.fullmatch(words):
            parts = {key: value for key, value in match.groupdict().items() if value is not None}
            return _fields(name, parts)
    return None


def _fields(name: str, parts: dict[str, str]) -> dict[str, Any]:
    path = parts["path"].rstrip(".,;:!?")
    match name:
        case "create":
            return {"command": name, "path": path, "file_text": _plain(parts.get("text", ""))}
        case "rename":
            return {"command": name, "old_path": path, "new_path": parts["new_path"].rstrip(".,;:!?")}
        case "str_replace":
            old, new = _plain(parts["old"]), _plain(parts["new"])
            return {"command": name, "path": path, "old_str": old, "new_str": new}
        case "cut":
            return {
                "command": "str_replace",
                "path": path,
                "old_str": _plain(parts["old"]),
                "new_str": "",
            }
        case "insert" | "top":
            line = int(parts.get("line", "0"))
            return {
                "command": "insert",
                "path": path,
                "insert_line": line,
                "insert_text": _plain(parts["text"]),
            }
    fields: dict[str, Any] = {"command": name, "path": path}
    if "first" in parts:
        last = parts.get("last", parts["first"])
        fields["view_range"] = [int(parts["first"]), int(last) if last.isdigit() else -1]
    return fields


def _plain(text: str) -> str:
    """The text without the quotation marks around it; `\\n` written out is a line break."""
    text = text.strip()
    closed = text.rstrip(".!")
    if len(closed) >= 2 and QUOTES.get(closed[0]) == closed[-1]:
        text = closed[1:-1]
    return text.replace("\\n", "\n")


Kind = StrEnum(
    "Kind",
    [
        "HELP",
        "GREETING",
        "THANKS",
        "CONVERSATION_LIST",
        "CONVERSATION_SEARCH",
        "CONVERSATION_DELETE",
        "NOTE_LIST",
        "REMEMBER",
        "FORGET_LAST",
        "FORGET_ALL",
        "FORGET",
        "CHANGE",
        "CORRECT",
        "LOOK_UP",
        "DEEP",
        "QUESTION",
        "FACT",
        "FILE",
        "CAPABILITY_LIST",
        "CAPABILITY_RUN",
        "TOO_LONG",
        "UNKNOWN",
    ],
)
"""Each is answered by a rule or a text in `responder`."""


@dataclass(frozen=True, slots=True)
class Intent:
    """`topic` is what it is about, in the user's words; `value` the new value of a change."""

    kind: Kind
    topic: str = ""
    value: str = ""


MAX_CHARS = 20_000
"""Longer messages are not looked at: the patterns run on the event loop."""

OPENING = re.compile(
    r"^(?:(?:hey|hi|hello|ok|okay|well|please|and|so|izzy|yes|oh)\b[\s,.!:]*)*"
    r"(?:(?:can|could|would|will) you\s+(?:please\s+)?)?(?:please\s+)?",
    re.IGNORECASE,
)
NOTES = r"(?:memories|memory|notes?|things you (?:know|remember)(?: about me)?|saved (?:things|notes))"
TALKS = r"(?:conversations?|chats?|history|(?:past |old |previous )?messages)"

NAME = r"[`\"']?(?P<topic>[a-z][a-z0-9_]*(?:[ _-][a-z0-9]+){0,5})[`\"']?"
KNOW = r"(?:(?:what|everything|all)(?: that)?(?: do)? you (?:know|remember|have saved)|your (?:memory|memories|notes))"

PATTERNS: list[tuple[Kind, str]] = [
    (Kind.HELP, r"(?:help(?: me)?|\?|commands|what can (?:you|i) (?:do|say|ask)|what do you understand|who are you|how do(?:es)? (?:you|this) work)"),
    (Kind.GREETING, r"(?:hi|hello|hey|good (?:morning|afternoon|evening|day)|greetings)(?: there)?(?:,? izzy)?"),
    (Kind.THANKS, r"(?:thanks|thank you|thx|great|cool|nice|perfect|good)(?: you| a lot| very much| so much| izzy)?"),
    (Kind.CAPABILITY_LIST, r"(?:list|show|what are|which are)(?: me)?(?: all)?(?: of)?(?: (?:my|your|the|our))? (?:capabilities|tools)(?: (?:do )?(?:you|i) have)?"),
    (Kind.CAPABILITY_LIST, r"(?:what|which) (?:capabilities|tools)(?: (?:do )?(?:you|i) have| are there)?"),
    (Kind.CAPABILITY_RUN, rf"(?:run|execute)(?: (?:the|my))?(?: (?:capability|tool))? {NAME}(?: (?:capability|tool))?(?:\s*,)?\s+with(?: (?:the )?(?:input|arguments))?:?\s+(?P<value>.+)"),
    (Kind.CAPABILITY_RUN, r"(?:run|execute)(?: (?:the|my))?(?: (?:capability|tool))? [`\"']?(?P<topic>[a-z][a-z0-9_]*)[`\"']?(?: (?:capability|tool))?:?\s*(?P<value>\{.*\})?"),
    (Kind.CONVERSATION_LIST, rf"(?:list|show|what are)(?: me)? (?:all )?(?:of )?(?:my|our|the) {TALKS}"),
    (Kind.CONVERSATION_DELETE, r"(?:delete|remove|forget) (?:the|my|our|that) (?:conversation|chat)(?: (?:about|on|called|titled|named))? (?P<topic>.+)"),
    (Kind.CONVERSATION_SEARCH, rf"(?:search|look (?:in|through)|go through|find in)(?: (?:in|through))? (?:my|our|the|all|past)(?: past| old| previous)? {TALKS}(?: (?:for|about))? (?P<topic>.+)"),
    (Kind.CONVERSATION_SEARCH, r"(?:what|when) did (?:we|i|you) (?:say|said|talk|discuss|speak|write|chat)(?: about)? (?P<topic>.+)"),
    (Kind.DEEP, rf"(?:think|search|look|dig) (?:(?:really|very) )?(?:hard|deep|deeply)\b[\s,:–-]*(?:(?:about|on|for|in|into|through)\b\s*)?(?:{KNOW}\s*)?(?:(?:about|of|on|for)\b\s*)?(?P<topic>.+)"),
    (Kind.DEEP, r"(?:tell me )?what do you (?:know|remember) (?:deep|deeply)(?: down)?(?: (?:about|of|on))? (?P<topic>.+)"),
    (Kind.DEEP, r"(?:tell me )?what do you (?:know|remember) (?:about|of|on) (?P<topic>.+?),? deep down"),
    (Kind.NOTE_LIST, rf"(?:list|show|what are|read)(?: me)? (?:all )?(?:of )?(?:my|the|your) {NOTES}"),
    (Kind.NOTE_LIST, r"(?:what|tell me what|list what|show(?: me)? what|everything)(?: (?:all|else))? (?:do )?you (?:know|remember|have saved)(?: about me| of me)?"),
    (Kind.REMEMBER, r"(?:do not|don'?t|never) forget(?: that|:)?\s+(?P<topic>.+)"),
    (Kind.REMEMBER, r"(?:remember|memori[sz]e|note|note down|save|store|keep in mind|write down|make a note|take a note|add a note)(?: for me)?(?: (?:of )?(?:that|this|down))?(?: to (?:my )?(?:memory|notes))?\s*[:,]?\s+(?!when we|what|who|where|how)(?P<topic>.+)"),
    (Kind.FORGET_LAST, r"(?:forget|delete|remove|erase|undo) (?:it|that|this|that one|the last one|the last note|that note)(?: again)?"),
    (Kind.FORGET_ALL, r"(?:forget|delete|remove|erase) (?:everything|all(?: of)?(?: my| your| the)? (?:notes|memories)|all)(?: you (?:know|remember))?(?: (?:about|of) me)?"),
    (Kind.FORGET, r"(?:forget|delete|remove|erase|drop)(?: (?P<all>everything|all(?: (?:notes|memories))?))?(?: you know)?(?: (?:the|my) (?:notes?|memory|memories))?(?: (?:about|on|that|of))?\s+(?P<topic>.+)"),
    (Kind.CHANGE, r"(?:change|correct|update|replace|set)(?: (?:the|my) note(?: about| on)?)? (?P<topic>.+?) (?:to|into|with|by)(?: be| say| read)?[: ]\s*(?P<value>.+)"),
    (Kind.CORRECT, r"(?:no[,.]? )?(?:actually|correction|in fact|to be precise|i meant|rather)\b[\s,:–-]*(?P<topic>.+)"),
    (Kind.CORRECT, r"no,\s+(?P<topic>(?:i|i'm|i’m|my|the|it|we|he|she|they)\b.+)"),
    (Kind.CORRECT, r"(?P<topic>.+?),? (?:actually|instead)"),
    (Kind.CORRECT, r"(?P<topic>(?:i|my)\b.*?\b(?:any ?more|no longer)\b.*)"),
    (Kind.LOOK_UP, r"(?:what|tell me what|show me what) (?:do|did) (?:you|i) (?:know|remember|tell you|say|have (?:saved|noted)|save|note)(?: (?:about|of|on|for))? (?P<topic>.+)"),
    (Kind.QUESTION, r"tell me (?!(?:everything|anything|something|about|of|on|what|if|whether|you)\b)(?P<topic>.+)"),
    (Kind.LOOK_UP, r"(?:do you (?:know|remember)|tell me(?: everything)?(?: you know)?|search(?: my (?:notes|memory|memories))?|look up|find|recall|remember)(?: (?:for|about|of|if|whether|anything about|something about))?\s+(?P<topic>.+)"),
    (Kind.QUESTION, r"(?P<topic>(?:what|who|whom|whose|where|when|which|how|why|do|does|did|is|are|am|was|were|can|could|should|would|have|has)\b.+)"),
    (Kind.QUESTION, r"(?P<topic>.+)\?"),
    (Kind.FACT, r"(?P<topic>(?:my\b.+?\b(?:is|are|was|were|has|have|lives?|works?|likes?|loves?|hates?|called)\b|i (?:really |also |always |never |only |mostly |usually )?(?:am|have|like|love|hate|prefer|enjoy|live|lived|moved|work|worked|play|study|studied|own|drive|speak|need|want|can't|cannot|don't|was born)\b|i(?:'|’)(?:m|ve)\b|call me\b).+)"),
]  # fmt: skip
COMPILED = [
    (kind, re.compile(rf"{pattern}[\s.!?]*", re.IGNORECASE | re.DOTALL)) for kind, pattern in PATTERNS
]


def intent_of(words: str) -> Intent:
    """The intent of the user's words, politeness aside."""
    text = words.strip()
    if len(text) > MAX_CHARS:
        return Intent(Kind.TOO_LONG)
    for candidate in dict.fromkeys((OPENING.sub("", text, count=1).strip() or text, text)):
        if file_command(candidate):
            return Intent(Kind.FILE, candidate)
        for kind, pattern in COMPILED:
            if match := pattern.fullmatch(candidate):
                parts = match.groupdict("")
                topic, value = (parts.get(name, "").strip().rstrip("?!.") for name in ("topic", "value"))
                return Intent(kind, topic.strip(), "all" if parts.get("all") else value)
    return Intent(Kind.UNKNOWN, text)
