"""What becomes of log records before they are written."""

import logging

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
        self._least = logging.getLevelNamesMapping()[level]

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= self._least or record.name.partition(".")[0] in OWN
