"""The log's format: which records are written, and how: a line of text, or a JSON object a line."""

import json
import logging
import os
import time
from typing import Any

from apps.core.log_ids import log_ids_now

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


class TextLine(logging.Formatter):
    """`2026-05-01 12:00:00,000 INFO apps.chat.turns: Message [turn=… user=…]`; a traceback follows on lines of its own."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        shown = " ".join(f"{name}={value}" for name, value in log_ids_now().items())
        return super().formatMessage(record) + (f" [{shown}]" if shown else "")


class JSONLine(logging.Formatter):
    """One JSON object a line: `time` (UTC), `level`, `logger`, `message`, `process`, the ids, the figures of an activity, and
    `exception` with the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": os.getpid(),
            **log_ids_now(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        return json.dumps(line, default=str)


FORMATTERS = {
    "text": {
        "()": TextLine,
        "format": "{asctime} {levelname} {name}: {message}",
        "style": "{",
    },
    "json": {"()": JSONLine},
}


def level_number(level: str) -> int:
    return logging.getLevelNamesMapping()[level]


def logging_settings(level: str, libraries: str, form: str = "text") -> dict[str, Any]:
    """Django's LOGGING: our own loggers at one level, all others at another, written as `text` or `json`.

    A line for every request, turn, build and job that ended is written as JSON only: programs count them, people who
    watch a terminal do not.
    """
    activity = level if form == "json" else max(level, "WARNING", key=level_number)
    quiet = "DEBUG" if libraries == "DEBUG" else "WARNING"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": FORMATTERS[form]},
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
            "apps.activity": {"level": activity},
            "django": {"handlers": [], "level": libraries, "propagate": True},
            "django.request": {"level": "DEBUG" if libraries == "DEBUG" else "ERROR"},
            "uvicorn": {"level": "WARNING"},  # below that stand addresses and what websockets carry
            **{name: {"level": quiet} for name in ("django.channels.server", "httpx", "httpx2", "mcp")},
        },
    }
