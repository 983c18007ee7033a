"""Moved to `trust`."""

from .trust.quotes import own_words as own_words
from .trust.words import FRAMING as FRAMING
