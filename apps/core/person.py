"""English verbs as they follow "the user", and as they follow "I" or "you": "the user likes tea" is "you like tea"."""

import re

THIRD = {
    "am": "is",
    "are": "is",
    "was": "was",
    "wasn't": "wasn't",
    "were": "was",
    "have": "has",
    "haven't": "hasn't",
    "do": "does",
    "don't": "doesn't",
}
SECOND = {
    "is": "are",
    "isn't": "aren't",
    "was": "were",
    "wasn't": "weren't",
    "has": "have",
    "hasn't": "haven't",
    "does": "do",
    "doesn't": "don't",
}


def third_person(verb: str) -> str:
    """The present form that follows "the user" of a verb in lower case that follows "I" or "you": `likes` of `like`."""
    if verb in THIRD:
        return THIRD[verb]
    if re.search(r"[^aeiou]y$", verb):
        return f"{verb[:-1]}ies"
    return f"{verb}es" if re.search(r"(?:s|sh|ch|x|z|o)$", verb) else f"{verb}s"


def second_person(verb: str) -> str:
    """The form that follows "you" of one in lower case that follows "the user": `like` of `likes`; without such an ending as
    it is."""
    if verb in SECOND:
        return SECOND[verb]
    if not verb.endswith("s") or verb.endswith("ss"):
        return verb
    if verb.endswith("ies") and len(verb) > 4:
        return f"{verb[:-3]}y"
    return verb[:-2] if re.search(r"(?:sh|ch|ss|x|zz|o)es$", verb) else verb[:-1]
