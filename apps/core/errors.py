"""One family of errors, carried unchanged to REST, websocket and tool results as `{code, message, extra}`."""

import zipfile
import zlib
from typing import ClassVar

DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
"""The errors of reading a zip, a gzip or an array whose bytes are not what they were."""


class IzzyError(Exception):
    """An error whose message may be shown to the user.

    `code` is stable and meant for programs, `message` for people, `extra` holds JSON-ready details
    (for example `field` and `limit`), `status` is the HTTP status it is answered with; `untrusted` says that the message
    may repeat words that neither the user nor Izzy wrote.
    """

    default_code: ClassVar[str] = "error"
    default_message: ClassVar[str] = "Something went wrong."
    status: int = 500
    untrusted = False

    def __init__(self, message: str = "", *, code: str = "", **extra: object) -> None:
        self.message = message or self.default_message
        self.code = code or self.default_code
        self.extra: dict[str, object] = extra
        super().__init__(self.message)

    def to_json(self) -> dict[str, object]:
        return {"code": self.code, "message": self.message, "extra": self.extra}


class InvalidInput(IzzyError):
    default_code = "invalid_input"
    default_message = "That input is not valid."
    status = 400


class NotAuthenticated(IzzyError):
    default_code = "not_authenticated"
    default_message = "Sign in or send a valid API token."
    status = 401


class Forbidden(IzzyError):
    default_code = "missing_scope"
    default_message = "You may not do this."
    status = 403


class NotFound(IzzyError):
    default_code = "not_found"
    default_message = "There is nothing with this id."
    status = 404


class Conflict(IzzyError):
    default_code = "conflict"
    default_message = "This does not fit the present state."
    status = 409


class TooLarge(IzzyError):
    default_code = "too_large"
    default_message = "That is too large."
    status = 413


REFUSALS = (InvalidInput, Conflict, TooLarge)  # pages show these beside the form or row concerned


class Throttled(IzzyError):
    default_code = "throttled"
    default_message = "Too many requests. Try again in a moment."
    status = 429


class Unavailable(IzzyError):
    default_code = "unavailable"
    default_message = "This part is not available right now."
    status = 503
