"""Text at the edges and in budgets: cleaning and reading what comes in, estimating tokens, cutting into chunks."""

import json
import math
import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from apps.core.errors import InvalidInput, TooLarge

_SURROGATE = re.compile("[\ud800-\udfff]")
_PIECE = re.compile(r"[^\W\d_]+|\d+|\s+|_+|[^\w\s]", re.UNICODE)
_ASCII_TOKEN = re.compile(
    r"[A-Za-z]{1,6}|\d{1,3}|\s\s+|[^\S ]|_+|[^\w\s]"
)  # `_piece_tokens`, five times as fast
_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])[\"'”’)\]]*\s+|\n+|(?<=[。！？])")

NOT_BLANK = r"[^\s\x1c-\x1f\x85]"
"""JSON Schema's pattern for text that `clean_text` does not find empty: its own `\\s` lacks controls that Python strips."""

LETTERS_PER_TOKEN = 6
DIGITS_PER_TOKEN = 3


def clean_text(value: object, *, field: str, max_chars: int, allow_empty: bool = False) -> str:
    """`value` stripped of surrounding white space, fit to be stored.

    Refuses what is no string, NUL and lone surrogates (they cannot be stored) and, unless `allow_empty`,
    the empty string, with InvalidInput (codes `wrong_type`, `invalid_text`, `empty_text`); more than
    `max_chars` characters with TooLarge. `extra` names the field.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{field} must be text.", code="wrong_type", field=field)
    if len(value) > max_chars:
        message = f"{field} has {len(value):,} characters; at most {max_chars:,} are accepted."
        raise TooLarge(message, field=field, limit=max_chars, length=len(value))
    if "\x00" in value or _SURROGATE.search(value):
        message = f"{field} contains characters that cannot be stored (NUL or lone surrogates)."
        raise InvalidInput(message, code="invalid_text", field=field)
    text = value.strip()
    if not text and not allow_empty:
        raise InvalidInput(f"{field} must not be empty.", code="empty_text", field=field)
    return text


def plain_breaks(text: str) -> str:
    """The text with every line break as LF, whatever a browser or another system made of it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def truncated(text: str, limit: int) -> str:
    """The text, or as much of its beginning as has room in so many characters with an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


_DOTS = str.maketrans({"\u0131": "i", "\u0307": None})
"""The Turkish letters i: with and without a dot they count as one."""


def fold(text: str) -> str:
    """The text as it is compared: compatibility forms unified (NFKC), case folded, accents kept.

    So "STRASSE" is in "Hauptstraße" and "istanbul" in "İSTANBUL", but "cafe" is not in "café".
    """
    if text.isascii():
        return text.lower()
    folded = _composed(_composed(text).casefold())
    if "\u0131" in folded or "\u0307" in folded:
        return _composed(folded.translate(_DOTS))
    return folded


def _composed(text: str) -> str:
    return text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)


# What Unicode has software pass over: nobody sees it, and a text can be spelled in it.
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_JOINS = re.compile("(?<=[^\x00-\x7f]|[0-9#*])(?:[\ufe0e\ufe0f]?\u200d?|\u200c)")
"""Those that belong to an emoji, or into a word of Persian."""


def revealed(text: str) -> str:
    """The text for somebody who has to say yes to it: where it has characters that do not show, a note says how many.
    `static/js/chat/format.js` does the same."""

    def noted(found: re.Match[str]) -> str:
        if _JOINS.fullmatch(text, found.start(), found.end()):
            return found[0]
        count = len(found[0])
        return f"⟨{count:,} hidden character{'s' if count > 1 else ''}⟩"

    return text if text.isascii() else _HIDDEN.sub(noted, text)


def estimate_tokens(text: str) -> int:
    """About how many tokens a model counts in `text`; meant not to be under by more than a few per cent.

    An estimate of our own, needing no vocabulary: a word of Latin letters counts one token per six letters
    begun, digits one per three, each sign one, a run of line breaks one; other scripts one per character for
    ideographs and one per two letters otherwise. A single space belongs to the word after it.
    """
    if text.isascii():
        return len(_ASCII_TOKEN.findall(text))
    return sum(map(_piece_tokens, _PIECE.findall(text)))


def _piece_tokens(piece: str) -> int:
    first = piece[0]
    if first.isspace():
        return 0 if piece == " " else 1
    if first.isdigit():
        return -(-len(piece) // DIGITS_PER_TOKEN)
    if not first.isalpha():
        return len(piece.encode()) if ord(first) > 0x2FFF else 1
    if piece.isascii():
        return -(-len(piece) // LETTERS_PER_TOKEN)
    name = unicodedata.name(piece[-1], "")
    if name.startswith(("CJK", "HIRAGANA", "KATAKANA", "HANGUL")):
        return len(piece)
    return -(-len(piece) // (3 if name.startswith("LATIN") else 2))


def split_sentences(text: str) -> list[str]:
    """`text` cut after sentence ends and line breaks; joined together the pieces give `text` again."""
    starts = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(starts) if end > start]


def chunk_text(text: str, size: int = 500, overlap: int = 100) -> list[str]:
    """`text` as chunks of at most `size` estimated tokens, each repeating up to `overlap` tokens of the last.

    Breaks at sentences; a sentence longer than `size` is cut between words, a word longer than `size`
    between characters. Every character of `text` but surrounding white space is in some chunk. Empty text gives [].
    """
    if not 0 <= overlap < size:
        raise ValueError("overlap must be at least 0 and below size")
    if estimate_tokens(text) <= size:
        return [text.strip()] if text.strip() else []
    chunks: list[str] = []
    window: list[tuple[str, int]] = []
    total, last = 0, ""
    limit = max(1, size - overlap)
    pieces = (
        piece
        for sentence in split_sentences(text)
        for piece in (
            [sentence] if estimate_tokens(sentence) <= limit else _cut_sentence(sentence, limit)
        )
    )
    for piece in pieces:
        tokens, run = _added(last, piece)
        if window and total + tokens > size:
            chunks.append("".join(part for part, _ in window).strip())
            window = _tail(window, min(overlap, size - tokens))
            total = sum(count for _, count in window)
            tokens, run = _added(
                _PIECE.findall("".join(part for part, _ in window))[-1] if window else "", piece
            )
        window.append((piece, tokens))
        total, last = total + tokens, run
    chunks.append("".join(part for part, _ in window).strip())
    return [chunk for chunk in chunks if chunk]


def _added(last: str, piece: str) -> tuple[int, str]:
    """The tokens that a piece adds behind a text whose last run (of letters, space, …) is given, and the last run then.

    Parts of one word may be more together than each for itself. Looking at the whole text again would take time by its square.
    """
    if piece[-1].isspace() and (not last or last[-1].isspace()) and not piece[0].isspace():
        return estimate_tokens(piece), piece[len(piece.rstrip()) :]
    runs = _PIECE.findall(last + piece)
    together = sum(map(_piece_tokens, runs)) - (_piece_tokens(last) if last else 0)
    return max(together, estimate_tokens(piece)), runs[-1]


def _tail(window: list[tuple[str, int]], limit: int) -> list[tuple[str, int]]:
    """The last pieces of `window` that together have at most `limit` tokens."""
    kept = 0
    for position in range(len(window) - 1, -1, -1):
        kept += window[position][1]
        if kept > limit:
            return window[position + 1 :]
    return window


def _cut_sentence(sentence: str, limit: int) -> list[str]:
    pieces: list[str] = []
    window: list[str] = []
    total, last = 0, ""
    for word in re.findall(r"\S+\s*|\s+", sentence):
        for part in _cut_word(word, limit):
            tokens, run = _added(last, part)
            if window and total + tokens > limit:
                pieces.append("".join(window))
                window, total = [], 0
                tokens, run = _added("", part)
            window.append(part)
            total, last = total + tokens, run
    return [*pieces, "".join(window)]


def _cut_word(word: str, limit: int) -> list[str]:
    if len(word.encode()) <= limit or estimate_tokens(word) <= limit:  # none has more tokens than bytes
        return [word]
    step = max(1, len(word) * limit // (2 * estimate_tokens(word)))
    return [word[start : start + step] for start in range(0, len(word), step)]


def canonical_json(value: Any) -> str:
    """`value` as JSON text with sorted keys and no spaces; what chat stores of the blocks it sends."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def depth_of(value: Any) -> int:
    """How deep lists and objects are nested; without recursion, since the nesting may be as deep as a parser allows."""
    deepest, pending = 0, [(value, 1)]
    while pending:
        item, depth = pending.pop()
        if isinstance(item, dict | list):
            deepest = max(deepest, depth)
            inner = item.values() if isinstance(item, dict) else item
            pending.extend((each, depth + 1) for each in inner)
    return deepest


def objects_in(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a JSON value, itself included; without recursion."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            yield item
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def strict_loads(text: str) -> Any:
    """The value of a JSON text. Raises ValueError for anything else, NaN, the infinities and numbers beyond a float's
    range included (no database and no other parser takes them back), and RecursionError for about 1,000 levels."""
    return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole)


_SUSPICIOUS = re.compile(rb"\\u(?:d[89a-f]|0000)", re.IGNORECASE)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def unstorable(data: Any, source: bytes) -> str:
    """The characters that no database can hold in a value that was read from this JSON: "NUL characters", "lone surrogates", or "" for none."""
    # Every text, keys too; not recursively, since the nesting may be as deep as the parser allows.
    pending = [data] if _SUSPICIOUS.search(source) else []
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += [*value, *value.values()]
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, str) and (found := _UNSTORABLE.search(value)):
            return "NUL characters" if found[0] == "\x00" else "lone surrogates"
    return ""


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits[:20]} is out of range")
    return value


def _whole(digits: str) -> int:
    _finite(digits)
    return int(digits)


_YES = ("allow", "approve", "approved", "accept", "yes", "true")
_NO = ("decline", "declined", "deny", "denied", "reject", "no", "false")


def is_yes(value: object) -> bool:
    """Whether a `decision` is a yes: true or false, or one of the usual words. InvalidInput for anything else."""
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in _YES and word not in _NO:
        raise InvalidInput("decision must be “allow” or “decline”.", field="decision")
    return word in _YES


def storable(value: Any) -> Any:
    """A JSON value with the characters replaced that databases refuse: lone surrogates and NUL."""
    if isinstance(value, str):
        if value.isascii() and "\x00" not in value:
            return value
        joined = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return joined.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [storable(item) for item in value]
    return value
