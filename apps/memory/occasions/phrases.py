"""Limits of a phrase that says when a note matters: one set of checks for tools, API, pages and models."""

import re
from typing import Any

from apps.core.errors import InvalidInput, IzzyError
from apps.core.text import clean_text

MAX_OCCASIONS = 8
MAX_OCCASION_CHARS = 60

_UNSEEN = re.compile("[\x00-\x09\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
"""Control characters, and signs that hide or turn round what is read; the joiners that some scripts need are none."""
_BREAK = re.compile("[\n\r\v\f\x85\u2028\u2029]")
_NOTE_ID = re.compile(r"note-[0-9a-f]{8}", re.IGNORECASE)


def clean_occasions(value: object, *, field: str = "occasions") -> list[str] | None:
    """The phrases in the order given, each once whatever its case; None (Izzy is to make them) stays None.

    Raises InvalidInput (`wrong_type`, `invalid_text`, `empty_text` …) or TooLarge for more than MAX_OCCASIONS, or a phrase
    of more than MAX_OCCASION_CHARS characters.
    """
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        raise InvalidInput(f"{field} must be a list of phrases.", code="wrong_type", field=field)
    if len(value) > MAX_OCCASIONS:
        message = f"A note has at most {MAX_OCCASIONS} occasions."
        raise InvalidInput(message, field=field, limit=MAX_OCCASIONS)
    unique: dict[str, str] = {}
    for given in value:
        phrase = clean_text(given, field=field, max_chars=MAX_OCCASION_CHARS)
        wrong = (
            "must be one line each"
            if _BREAK.search(phrase)
            else "must hold no control characters"
            if _UNSEEN.search(phrase)
            else "must name no note"
            if _NOTE_ID.search(phrase)
            else ""
        )
        if wrong:
            raise InvalidInput(f"{field} {wrong}.", code="invalid_text", field=field)
        phrase = " ".join(phrase.split())
        unique.setdefault(phrase.casefold(), phrase)
    return list(unique.values())


def usable_occasions(value: Any) -> list[str]:
    """Of what a model gave as phrases those that may be kept, as many as a note may have."""
    usable: dict[str, str] = {}
    for given in value if isinstance(value, list) else []:
        try:
            for phrase in (
                clean_occasions([given.rstrip(" .") if isinstance(given, str) else given]) or ()
            ):
                usable.setdefault(phrase.casefold(), phrase)
        except IzzyError:
            continue
    return list(usable.values())[:MAX_OCCASIONS]
