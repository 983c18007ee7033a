"""Limits that the tools' descriptions name."""

MAX_URL_CHARS = 4_000
PART_CHARS = 16_000
"""Of one answer; a longer page is read in parts."""
MAX_SEARCHES = 5
"""In one answer, where the endpoint searches itself."""
