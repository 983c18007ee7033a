"""Moved to `trust`."""

from .trust.reading import Reading as Reading
