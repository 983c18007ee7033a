"""Bytes to text: which character set, and text as it is."""

import codecs
import re
from collections.abc import Iterator
from typing import Any

from charset_normalizer import from_bytes

GUESSABLE_BYTES = 256
"""From fewer, a guess is worse than the most common set."""
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_META = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{2,40})""", re.IGNORECASE)

_AS_BROWSERS_DO = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "iso8859-9": "cp1254",
    "tis-620": "cp874",
}
"""Names that pages use for a larger set than they stand for (WHATWG Encoding, 4.2)."""

_NEVER = {"utf_7", "unicode_escape", "raw_unicode_escape", "idna", "punycode", "mbcs", "oem", "undefined"}


def read(body: bytes, *, charset: str, url: str) -> Iterator[dict[str, Any]]:
    """The text as it is, line ends aside."""
    yield {"text": decoded(body, charset).replace("\r\n", "\n")}


def decoded(body: bytes, charset: str, *, meta: bool = False) -> str:
    """Byte order mark, then `charset` (of the HTTP header), then with `meta` what the document says of itself, then UTF-8,
    then a guess. What does not fit is replaced, never an error."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body.decode(name, "replace")
    said = _META.search(body[:4096]) if meta else None
    for name in (charset, said.group(1).decode("ascii") if said else ""):
        if known := _codec(name):
            return body.decode(known, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":  # a longer document was cut within a character
            return body.decode("utf-8", "replace")
    guess = from_bytes(body[:100_000]).best() if len(body) >= GUESSABLE_BYTES else None
    return body.decode(guess.encoding if guess else "cp1252", "replace")


def _codec(name: str) -> str:
    try:
        found = codecs.lookup(name) if name else None
    except (LookupError, ValueError):
        return ""
    # `bytes.decode` takes character sets alone; Python's other codecs (zip, base64, …) have the same registry.
    if (
        found is None
        or found.name.replace("-", "_") in _NEVER
        or not getattr(found, "_is_text_encoding", True)
    ):
        return ""
    return _AS_BROWSERS_DO.get(found.name, found.name)
