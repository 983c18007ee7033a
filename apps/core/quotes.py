"""Tells a speaker's own words from what they repeat, by marks alone: in doubt it counts as quoted.

What is quoted by mistake waits for review; what is taken for the user's own words by mistake would be believed.
"""

import re

from apps.core.db.writing import once

MAX_CHARS = 20_000  # of a message that are looked at; what follows counts as quoted
MARKED_WORDS = 6
"""Text of more words in quotation marks counts as quoted; a title or a name does not."""
LONG_CHARS = 600
"""Of a longer message of the user's only the first paragraph is theirs."""

_FENCE = re.compile(
    r"^[ \t]{0,3}(`{3,}+|~{3,}+)[^\n]*\n.*?(?:^[ \t]{0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_ELEMENT = re.compile(
    r"(?<!\w)<([a-z][\w-]*)(?=[\s<>/])[^<>]*+[<>].*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL
)
_ARROWS = re.compile(r"^[ \t]*(?:&gt;|>).*(?:\n[ \t]*(?:&gt;|>).*)*", re.MULTILINE)
_MARKS = re.compile(r"“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|»[^«»]*«|\"[^\"]*\"|‘[^‘’\n]*’")
_HEADERS = re.compile(
    r"^(?:-{3,}[^\n-][^\n]*-{3,}[ \t]*$|(?:from|von):[ \t]\S[^\n]*\n(?:\S[^\n]*\n){0,3}(?:to|an|subject|betreff|date|sent|"
    r"datum|gesendet)[ \t]?:.*|(?:on|am) [^\n]{6,80}(?:wrote|schrieb)[^\n]{0,80}:)",
    re.IGNORECASE | re.MULTILINE,
)
_PARAGRAPH_END = re.compile(r"(?<=\S)[^\S\n]*\n[^\S\n]*\n")


def split_quotes(text: str, by_user: bool = True) -> list[tuple[str, bool]]:
    """The text in order as (part, whether it is quoted); parts without a word are left out.

    Of a long message `by_user` what follows its first paragraph is taken for pasted.
    """
    looked_at = text[:MAX_CHARS]
    spans = [match.span() for mark in (_FENCE, _ELEMENT, _ARROWS) for match in mark.finditer(looked_at)]
    spans += [
        found.span() for found in _MARKS.finditer(looked_at) if len(found[0].split()) > MARKED_WORDS
    ]
    if header := _HEADERS.search(looked_at):
        spans.append((header.start(), len(text)))
    if by_user and len(text) > LONG_CHARS and (paragraph := _PARAGRAPH_END.search(looked_at)):
        spans.append((paragraph.start(), len(text)))
    if len(text) > MAX_CHARS:
        spans.append((MAX_CHARS, len(text)))
    parts: list[tuple[str, bool]] = []
    place = 0
    for begin, end in sorted(spans):
        if end > place:
            start = max(begin, place)
            parts += [(text[place:start], False), (text[start:end], True)]
            place = end
    parts.append((text[place:], False))
    return [(part.strip(), quoted) for part, quoted in parts if re.search(r"\w", part)]


def own_words(text: str) -> str:
    """A user's message without what it quotes; what is pasted without any mark cannot be distinguished from their own."""
    return "\n".join(part for part, quoted in once(split_quotes, text, True) if not quoted)


def quotes_others(text: str, by_user: bool = True) -> bool:
    """Whether a message holds words of others."""
    return any(quoted for _, quoted in once(split_quotes, text, by_user))
