"""Turns what a user says about themselves into a note about "the user", and back into "you" for an answer."""

import re

from apps.agent.offline.wordlists import ADVERBS, UNCHANGED

PIECES = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?|[^A-Za-z]+")
SUBJECTS = {"i'm": "the user is", "i've": "the user has", "i'd": "the user would", "i'll": "the user will"}
OTHERS = {"my": "the user's", "mine": "the user's", "me": "the user", "myself": "the user"}
BACK = {"my": "your", "mine": "yours", "me": "you", "myself": "yourself"}
THIRD = {
    "am": "is",
    "have": "has",
    "do": "does",
    "don't": "doesn't",
    "haven't": "hasn't",
    "are": "is",
    "were": "was",
}
SECOND = {
    "is": "are", "isn't": "aren't", "has": "have", "hasn't": "haven't", "does": "do", "doesn't": "don't",
    "was": "were", "wasn't": "weren't",
}  # fmt: skip


def note_text(said: str) -> str:
    """`I'm allergic to my cat` becomes `The user is allergic to the user's cat.`: one sentence, third person."""
    out: list[str] = []
    verb_follows = False
    for piece in PIECES.findall(said.strip()):
        word = piece.lower().replace("’", "'")
        if word in SUBJECTS:
            out.append(SUBJECTS[word])
        elif word in OTHERS:
            out.append(OTHERS[word])
        elif word == "i":
            out.append("the user")
            verb_follows = True
        elif verb_follows and word[0].isalpha() and word not in ADVERBS:
            out.append(_third_person(word))
            verb_follows = False
        else:
            out.append(piece)
    return _sentence("".join(out))


def echoed(said: str) -> str:
    """Words of the user as Izzy says them back: `my coffee` becomes `your coffee`."""
    return re.sub(
        r"(?<![\w'’])(?:my|mine|me|myself)(?![\w'’])",
        lambda word: BACK[word[0].lower()],
        said,
        flags=re.IGNORECASE,
    )


def to_you(note: str) -> str:
    """`The user is allergic to nuts.` becomes `You are allergic to nuts.`; other notes stay as they are."""
    out: list[str] = []
    verb_follows = False
    pieces = re.split(r"\b(the user's|the user|[A-Za-z]+(?:'[A-Za-z]+)?)\b", note, flags=re.IGNORECASE)
    for piece in pieces:
        word = piece.lower()
        if word == "the user's":
            out.append("your")
        elif word == "the user":
            out.append("you")
            verb_follows = True
        elif verb_follows and word[:1].isalpha() and word not in ADVERBS:
            out.append(_base_form(piece))
            verb_follows = False
        else:
            out.append(piece)
    return _sentence("".join(out))


def _sentence(text: str) -> str:
    text = text.strip()
    if not text:
        return text
    ended = text if text[-1] in ".!?…)" else text.rstrip(",;:") + "."
    return ended[0].upper() + ended[1:]


def _third_person(verb: str) -> str:
    if verb in THIRD:
        return THIRD[verb]
    if verb in UNCHANGED or (verb.endswith("ed") and not verb.endswith("eed")):
        return verb
    if re.search(r"(s|sh|ch|x|z|o)$", verb):
        return verb + "es"
    return verb[:-1] + "ies" if re.search(r"[^aeiou]y$", verb) else verb + "s"


def _base_form(verb: str) -> str:
    word = verb.lower()
    if word in SECOND:
        return SECOND[word]
    if word in UNCHANGED or not word.endswith("s") or word.endswith("ss"):
        return verb
    if word.endswith("ies") and len(word) > 4:
        return verb[:-3] + "y"
    return verb[:-2] if re.search(r"(sh|ch|ss|x|zz|o)es$", word) else verb[:-1]
