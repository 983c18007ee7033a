"""The user's intent, by patterns. The first that fits counts."""

import re
from dataclasses import dataclass
from enum import StrEnum

from apps.agent.offline.file_words import file_command


class Kind(StrEnum):
    """Each is answered by the function of that name in `responder`."""

    HELP = "help"
    GREETING = "greeting"
    THANKS = "thanks"
    CONVERSATION_LIST = "conversation_list"
    CONVERSATION_SEARCH = "conversation_search"
    CONVERSATION_DELETE = "conversation_delete"
    NOTE_LIST = "note_list"
    REMEMBER = "remember"
    FORGET_LAST = "forget_last"
    FORGET_ALL = "forget_all"
    FORGET = "forget"
    CHANGE = "change"
    CORRECT = "correct"
    LOOK_UP = "look_up"
    DEEP = "deep"
    QUESTION = "question"
    FACT = "fact"
    FILE = "file"
    CAPABILITY_LIST = "capability_list"
    CAPABILITY_RUN = "capability_run"
    TOO_LONG = "too_long"
    UNKNOWN = "unknown"


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
    said = words.strip()
    if len(said) > MAX_CHARS:
        return Intent(Kind.TOO_LONG)
    for candidate in dict.fromkeys((OPENING.sub("", said, count=1).strip() or said, said)):
        if file_command(candidate):
            return Intent(Kind.FILE, candidate)
        for kind, pattern in COMPILED:
            if match := pattern.fullmatch(candidate):
                return _intent(kind, match)
    return Intent(Kind.UNKNOWN, said)


def _intent(kind: Kind, match: re.Match[str]) -> Intent:
    parts = match.groupdict()
    topic = (parts.get("topic") or "").strip().rstrip("?!.")
    value = (parts.get("value") or "").strip().rstrip("?!.")
    if kind == Kind.FORGET and parts.get("all"):
        value = "all"
    return Intent(kind, topic.strip(), value)
