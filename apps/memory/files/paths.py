"""Paths under /memories: one spelling for each place, and a clear error for everything that is none."""

import re
import unicodedata
from urllib.parse import unquote

from apps.core.errors import InvalidInput, TooLarge
from apps.memory.models import MAX_PATH_CHARS

ROOT = "/memories"
MAX_NAME_BYTES = 255
MAX_DEPTH = 20
SHOWN_CHARS = 200
_DECODINGS = 5


def clean_path(value: object, *, field: str = "path") -> str:
    """The path in its one spelling: NFC, no doubled or trailing slashes, `/memories` or below it.

    Raises InvalidInput (code `invalid_path`; `wrong_type` for what is no text) or TooLarge; `extra` names the field.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{field} must be text.", code="wrong_type", field=field)
    if len(value) > MAX_PATH_CHARS:
        message = f"{field} has {len(value):,} characters; at most {MAX_PATH_CHARS} are accepted."
        raise TooLarge(message, field=field, limit=MAX_PATH_CHARS, length=len(value))
    if wrong := _wrong(value):
        raise InvalidInput(wrong, code="invalid_path", field=field)
    path = "/" + "/".join(_names(unicodedata.normalize("NFC", value)))
    if len(path) > MAX_PATH_CHARS:
        raise TooLarge(f"{field} is too long.", field=field, limit=MAX_PATH_CHARS, length=len(path))
    return path


def parents(path: str) -> list[str]:
    """The directories that a path lies in, without the root."""
    names = _names(path)
    return ["/" + "/".join(names[:count]) for count in range(2, len(names))]


def inside(directory: str) -> str:
    """Prefix of all paths in a directory."""
    return f"{directory}/"


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _wrong(path: str) -> str:
    """The error in a path, or ""."""
    shown = _shown(path)
    if any(unicodedata.category(sign) in {"Cc", "Cs", "Zl", "Zp"} for sign in path):
        return f"The path {shown} contains control characters or characters that cannot be stored."
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        return f"Path must start with {ROOT}, got: {shown}"
    if _escapes(path):
        return f"Path {shown} would escape {ROOT} directory"
    names = _names(path)
    if len(names) > MAX_DEPTH:
        return f"The path {shown} has too many levels; at most {MAX_DEPTH} are accepted."
    return next((wrong for name in names if (wrong := _wrong_name(name))), "")


def _wrong_name(name: str) -> str:
    shown = _shown(name)
    if len(unicodedata.normalize("NFC", name).encode()) > MAX_NAME_BYTES:
        return f"The name {shown} is too long; at most {MAX_NAME_BYTES} bytes are accepted."
    if name.startswith("."):
        return f"The name {shown} is hidden: names in {ROOT} must not begin with a dot."
    if name != name.strip():
        return f"The name {shown} begins or ends with a space."
    return ""


def _escapes(path: str) -> bool:
    """Whether a path, also one written with URL escapes (however often escaped), leads up or hides a separator."""
    decoded = path
    for _ in range(_DECODINGS):
        if "\\" in decoded or re.search(r"(?:^|/)\s*\.\.\s*(?:/|$)", decoded):
            return True
        further = unquote(decoded)
        if further == decoded:
            return False
        if further.count("/") != decoded.count("/") or not further.isprintable():
            return True
        decoded = further
    return True


def _shown(text: str) -> str:
    """A part of the input as it may stand in a message: printable and short."""
    printable = "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )
    return printable if len(printable) <= SHOWN_CHARS else printable[: SHOWN_CHARS - 1] + "…"
