"""Texts as they are compared, whatever their case, in any language: kept beside what they are made of."""

import unicodedata
from collections.abc import Mapping
from typing import Any

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


def folded(values: Mapping[str, Any]) -> dict[str, str]:
    """The folded columns of those of a note's values that have one; tags stand between line breaks."""
    texts = {
        "folded_content": values.get("content"),
        "folded_tags": "\n".join(["", *values["tags"], ""]) if "tags" in values else None,
    }
    return {column: fold(text) for column, text in texts.items() if text is not None}
