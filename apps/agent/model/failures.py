"""Errors of a model call, as a code and a sentence for the user."""

import time
from collections.abc import Mapping
from email.utils import mktime_tz, parsedate_tz

from apps.agent.model.client import ModelError

STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "exceed_context_size_error": 413,  # llama.cpp's
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The error type in a body beats the status: an error inside a stream comes with status 200."""
# Said with whatever status: llama.cpp also says it with 500, or within a stream.
TOO_LONG = (
    "prompt is too long",
    "context length",
    "context window",
    "context size",
    "context limit",
    "maximum context",
    "too many tokens",
)
DETAIL_CHARS = 300
LONGEST_WAIT = 86_400.0
"""Seconds; who asks for more, or for infinitely many, is not repeated to the minute."""

OVERLOADED = ("overloaded", "The model service is overloaded right now. Try again in a minute.")
TIMED_OUT = ("model_timeout", "The model server took too long to answer. Try again.")
BAD_KEY = (
    "model_auth",
    "The API key has characters that no key has. Check ANTHROPIC_API_KEY or the key on the instance page.",
)
SERVER_ERROR = ("model_unavailable", "The model server at {server} failed (status {status}). Try again.")
REFUSED_REQUEST = ("model_request", "The model server refused the request (status {status}): {detail}")
KNOWN = {
    401: (
        "model_auth",
        "{server} does not accept the API key. Check ANTHROPIC_API_KEY or the key on the instance page.",
    ),
    402: ("model_billing", "The account of the API key has no credit left. Add some, then try again."),
    403: ("model_forbidden", "The API key may not use the model {model}: {detail}"),
    404: (
        "model_not_found",
        "{server} has no model called {model}. Choose another in the preferences or set IZZY_CHAT_MODEL.",
    ),
    408: TIMED_OUT,
    413: ("context_too_long", "The conversation is too long for the model. Start a new one to go on."),
    429: ("rate_limited", "The model service asks to slow down. Try again {when}."),
    503: OVERLOADED,
    504: TIMED_OUT,
    529: OVERLOADED,
}
"""Code and message by status; the message may name `server`, `model`, `status`, the server's `detail`, and `when` it may be
asked again."""

PASSING = {
    "rate_limited": "The model service asks to slow down.",
    "overloaded": "The model service is overloaded right now.",
    "model_timeout": "The model server takes long to answer.",
    "model_unavailable": "The model server does not answer.",
}
"""Why a call is made again, by the code of its failure; no other is."""


def status_error(
    status: int, detail: str, *, model: str, server: str, retry_after: float | None = None
) -> ModelError:
    """The error for an HTTP status; `detail` is the endpoint's own message, without keys, `retry_after` in seconds."""
    detail = detail[:DETAIL_CHARS] or "no reason given."
    if status not in KNOWN and any(words in detail.lower() for words in TOO_LONG):
        status = 413
    code, message = KNOWN.get(status) or (SERVER_ERROR if status >= 500 else REFUSED_REQUEST)
    when = _duration(retry_after) if retry_after and retry_after > 0 else "in a minute"
    text = message.format(server=server, model=model, status=status, detail=detail, when=when)
    return ModelError(code, text, retry_after=retry_after)


def _duration(seconds: float) -> str:
    if seconds > LONGEST_WAIT:
        return "tomorrow or later"
    whole = max(1, round(seconds))
    if whole < 120:
        return "in 1 second" if whole == 1 else f"in {whole} seconds"
    return f"in {round(whole / 60)} minutes"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from whichever of the three forms the endpoint uses: milliseconds, seconds or a date."""
    given = headers.get("retry-after", "")
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return float(milliseconds) / 1000
        return float(given)
    except ValueError:
        moment = parsedate_tz(given)
        return mktime_tz(moment) - time.time() if moment else None


def unreachable(server: str) -> ModelError:
    """No connection at all."""
    return ModelError(
        "model_unavailable",
        f"The model server at {server} cannot be reached. Check that it runs and that the address is right, then try again.",
    )


def stream_cut() -> ModelError:
    """The answer ended without its end."""
    return ModelError(
        "stream_cut", "The connection to the model broke before the answer was complete. Try again."
    )


def bad_response(server: str) -> ModelError:
    """Something answered that does not speak the Messages API."""
    return ModelError(
        "bad_response",
        f"What answered at {server} does not speak the Messages API. Check ANTHROPIC_BASE_URL.",
    )
