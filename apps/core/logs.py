"""What becomes of log records before they are written."""

import logging


class MalformedRequests(logging.Filter):
    """Requests that Django refuses as suspicious (a foreign Host, too many fields) are one line each: where in Django
    they were refused helps nobody, and everybody can send them."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith("django.security"):
            record.exc_info = record.exc_text = None
        return True
