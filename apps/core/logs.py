"""Filters log records before they are written."""

import logging
from typing import Any

OWN = {"apps", "izzysite", "benchmarks"}
REFUSED = "A request was refused (%s)"
HINTS = {"DisallowedHost": ": its Host header names no host of IZZY_PUBLIC_URL or IZZY_ALLOWED_HOSTS"}


class MalformedRequests(logging.Filter):
    """Makes one short warning of a request that Django refuses as suspicious (a foreign Host, too many fields): everybody can
    send them, so neither their text nor the place in Django that refused them is written."""

    def filter(self, record: logging.LogRecord) -> bool:
        area, _, kind = record.name.rpartition(".")
        if area == "django.security":
            record.exc_info = record.exc_text = None
            record.levelno, record.levelname = logging.WARNING, "WARNING"
            record.msg, record.args = REFUSED + HINTS.get(kind, ""), (kind,)
        return True


class Libraries(logging.Filter):
    """Drops what libraries log below `level`, also where one set the level of its loggers itself: at DEBUG they write whole
    requests and queries, and in these what users said."""

    def __init__(self, level: str) -> None:
        super().__init__()
        self._least = level_number(level)

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= self._least or record.name.partition(".")[0] in OWN


def level_number(level: str) -> int:
    return logging.getLevelNamesMapping()[level]


def logging_settings(level: str, libraries: str) -> dict[str, Any]:
    """Django's LOGGING: our own loggers at one level, all others at another."""
    quiet = "DEBUG" if libraries == "DEBUG" else "WARNING"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
        "filters": {
            "malformed": {"()": MalformedRequests},
            "libraries": {"()": Libraries, "level": libraries},
        },
        "handlers": {
            "console": {
                "class": "logging.StreamHandler",
                "formatter": "line",
                "filters": ["malformed", "libraries"],
            },
        },
        "root": {"handlers": ["console"], "level": libraries},
        "loggers": {
            **{name: {"level": level} for name in sorted(OWN)},
            "django": {"handlers": [], "level": libraries, "propagate": True},
            "django.request": {"level": "DEBUG" if libraries == "DEBUG" else "ERROR"},
            **{
                name: {"level": quiet}
                for name in ("daphne", "django.channels.server", "httpx", "httpx2", "mcp")
            },
        },
    }
