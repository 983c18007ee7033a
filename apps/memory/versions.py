"""Moved to `history.versions`."""

from .history.versions import steps_of as steps_of
