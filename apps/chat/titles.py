"""The titles of conversations: made of the first words that were said, or of a model's proposal."""

import re

TITLE_CHARS = 60
_MARKUP = re.compile(r"[*_`#>\[\]]+|https?://\S+")
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s")
_POLITE = re.compile(
    r"^(hi|hey|hello|please|izzy|ok|okay|so|well|um|hallo|bitte)\b[\s,.!:]+", re.IGNORECASE
)


def heuristic_title(text: str) -> str:
    """The first sentence with a word in it, without markup and greeting, cut at a word to 60 characters."""
    plain = " ".join(_MARKUP.sub(" ", text).split())
    sentences = [part for part in _SENTENCE_END.split(plain) if re.search(r"\w", part)]
    title = sentences[0] if sentences else plain
    shorter = _POLITE.sub("", title)
    title = (shorter if len(shorter.split()) > 1 else title).rstrip(" .,;:!…")
    if len(title) > TITLE_CHARS:
        title = title[:TITLE_CHARS].rsplit(" ", 1)[0].rstrip(" .,;:") + "…"
    return title[:1].upper() + title[1:] or "New conversation"


def clean_title(text: str) -> str:
    """A model's proposal as a title: one line, no quotes, at most 60 characters; "" when it is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    title = " ".join(_MARKUP.sub(" ", lines[0]).split()).removeprefix("Title:").strip(" \"'“”«».")
    return title if 0 < len(title) <= TITLE_CHARS else ""
