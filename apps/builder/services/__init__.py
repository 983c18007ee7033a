"""Writes of the builder: each keyword-only, in one transaction."""

from .ending import build_end, build_succeed
from .following import Origin
from .requesting import Requested, build_change, build_request, build_retry
from .talking import build_answer, build_cancel

__all__ = [
    "Origin",
    "Requested",
    "build_answer",
    "build_cancel",
    "build_change",
    "build_end",
    "build_request",
    "build_retry",
    "build_succeed",
]
