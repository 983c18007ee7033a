"""Telling a speaker's own words from what they repeat: quoted lines, code, documents, pasted text.

Where it is in doubt it counts as quoted: what is quoted by mistake waits for review, what is taken for the user's own
words by mistake would be believed.
"""

import re
from collections.abc import Iterable

from apps.core.beforehand import once
from apps.core.text import estimate_tokens

PASTED_TOKENS = 25
"""Text of at least so many tokens after “here is the article:” counts as pasted."""
MARKED_TOKENS = 6
"""Text in quotation marks of at least so many tokens counts as quoted; a title or a word does not."""
MAX_CHARS = 20_000  # of a message that are looked at; what follows counts as quoted
BLOCK_TOKENS = 350
"""A message that long, of several paragraphs of which one has the look of a document, is pasted from there on."""

_FENCE = re.compile(
    r"^[ \t]{0,3}(`{3,}+|~{3,}+)[^\n]*\n.*?(?:^[ \t]{0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_TRIPLE = re.compile(r"(\"\"\"|'''|“““|<<<)(.*?)(?:\"\"\"|'''|”””|>>>|\Z)", re.DOTALL)
_ELEMENT = re.compile(
    r"<(document|documents|doc|page|webpage|article|email|mail|message|context|source|sources|file|quote|blockquote|"
    r"text|content|result|results|search_results|tool_result|transcript|attachment|untrusted|data|html|body|pre|code|"
    r"instructions|system|input|output)\b[^<>]*+[<>].*?(?:</\1\s*>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_ARROWS = re.compile(r"^[ \t]*(?:&gt;|>|\|[ \t]).*(?:\n[ \t]*(?:&gt;|>|\|[ \t]).*)*", re.MULTILINE)
_MARKS = re.compile(
    r"“[^“”]{20,}”|„[^„“”]{20,}[“”]|«[^«»]{20,}»|\"[^\"\n]{20,}\"|‘[^‘’\n]{40,}’"  # no opening mark inside: linear time
)
_THING = (
    r"(?:article|page|web ?page|site|website|e-?mail|mail|message|text|document|doc|post|thread|letter|note from|"
    r"transcript|report|review|comment|chat|paragraph|passage|excerpt|abstract|paper|news|output|log|file|contract|"
    r"newsletter|story|readme|listing|description|quote|"
    r"artikel|seite|webseite|nachricht|brief|dokument|beitrag|absatz|auszug|bericht|datei|protokoll|vertrag|zitat|"
    r"artículo|correo|mensaje|documento|texto|página|articolo|pagina|messaggio|lettera|courriel|lettre|texte)"
)
_LEAD = re.compile(
    rf"(?:\b{_THING}s?\b[^\n:]{{0,80}}|\b(?:says|said|wrote|writes|reads|states|schreibt|schrieb|sagt|steht|escribió|"
    r"dice|écrit|dit|following|below|folgende[nrs]?|here it is|pasted?|forwarded|fwd|begin|quote)\b[^\n:]{0,40}):[ \t]*\n?",
    re.IGNORECASE,
)
_TASK = re.compile(
    r"\b(?:summari[sz]e|sum up|translate|proofread|rewrite|rephrase|shorten|correct|explain|analy[sz]e|tl;?dr|"
    r"what does (?:this|it) (?:say|mean)|fass\w* .{0,40}zusammen|zusammenfass\w*|übersetz\w*|korrigier\w*|resum\w*|"
    r"traduc\w*|traduis\w*|résum\w*|riassum\w*)\b[^\n:]{0,80}(?::[ \t]*\n?|\n)",
    re.IGNORECASE,
)
_HEADERS = re.compile(
    r"^(?:-{2,} ?(?:original|forwarded|ursprüngliche|weitergeleitete)[^\n]*|(?:from|von|de|da):[ \t]\S[^\n]*\n"
    r"(?:\S[^\n]*\n){0,3}(?:to|an|subject|betreff|date|sent|datum|asunto|oggetto|objet)[ \t]?:.*|"
    r"(?:on|am|le|el) [^\n]{6,80}(?:wrote|schrieb|a écrit|escribió)[^\n]{0,80}:)",
    re.IGNORECASE | re.MULTILINE,
)
_DOCUMENT_LOOK = re.compile(
    r"^(?:#{1,6} \S|\*\*\S|https?://|www\.|\[\d+\]|by [A-Z]|(?:published|updated|posted|copyright|©)\b)",
    re.IGNORECASE | re.MULTILINE,
)

Span = tuple[int, int]


def split_quotes(text: str) -> list[tuple[str, bool]]:
    """The text in order as (part, whether it is quoted); parts without a word are left out."""
    parts: list[tuple[str, bool]] = []
    place = 0
    beyond = [(MAX_CHARS, len(text))] if len(text) > MAX_CHARS else []
    for start, end in _merged([*_spans(text[:MAX_CHARS]), *beyond]):
        parts += [(text[place:start], False), (text[start:end], True)]
        place = end
    parts.append((text[place:], False))
    return [(part.strip(), quoted) for part, quoted in parts if re.search(r"\w", part)]


def own_words(text: str) -> str:
    """A message without what it quotes; what is pasted without any mark cannot be told from the speaker's own."""
    return "\n".join(part for part, quoted in split_quotes(text) if not quoted)


def quotes_others(text: str) -> bool:
    """Whether a message holds something that `own_words` leaves out."""
    return any(quoted for _, quoted in once(split_quotes, text))


def _spans(text: str) -> list[Span]:
    spans = [
        match.span() for pattern in (_FENCE, _TRIPLE, _ELEMENT, _ARROWS) for match in pattern.finditer(text)
    ]
    spans += [match.span() for match in _MARKS.finditer(text) if _is_long(match.group(), MARKED_TOKENS)]
    pasted = [
        start for start in (_after_lead(text), _from_header(text), _document(text)) if start is not None
    ]
    return [*spans, *((start, len(text)) for start in pasted)]


def _after_lead(text: str) -> int | None:
    """Where pasted text begins behind “here is the e-mail:” or “translate this:”; nothing marks its end but the text's."""
    for match in _LEAD.finditer(text):
        rest = text[match.end() :]
        new_line = match.group().endswith("\n") or rest.startswith("\n")
        if _is_long(rest, PASTED_TOKENS) or (new_line and _is_long(rest, MARKED_TOKENS)):
            return match.end()
    task = _TASK.search(text)
    return task.end() if task and _is_long(text[task.end() :], MARKED_TOKENS) else None


def _from_header(text: str) -> int | None:
    match = _HEADERS.search(text)
    return match.start() if match else None


def _document(text: str) -> int | None:
    """Where a long message begins to look like a document."""
    if "\n" not in text or not _is_long(text, BLOCK_TOKENS):
        return None
    match = _DOCUMENT_LOOK.search(text)
    return match.start() if match else None


def _is_long(text: str, tokens: int) -> bool:
    return estimate_tokens(text[: tokens * 20]) >= tokens


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
