"""Figures of the decision log for people."""

import re

from django import template

register = template.Library()


@register.filter
def grouped(number: int) -> str:
    """`27,051`."""
    return f"{number:,}"


@register.filter
def duration(milliseconds: int | None) -> str:
    """`340 ms`, `4.2 s`, `3 min 05 s`; "" for None."""
    if milliseconds is None:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60):,} min {int(seconds % 60):02d} s"


@register.filter
def unmarked(text: str) -> str:
    """Markdown as it is read: without the signs for bold, italics, code, headings and tables."""
    text = re.sub(r"^[ :|-]*-{3,}[ :|-]*\n?|^ *```.*\n?", "", text, flags=re.MULTILINE)
    text = re.sub(
        r"^ *\|(.*)\| *$",
        lambda row: ", ".join(cell.strip() for cell in row[1].split("|") if cell.strip()),
        text,
        flags=re.MULTILINE,
    )
    plain = re.sub(
        r"\*\*(.+?)\*\*|(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])|`([^`\n]+)`",
        lambda mark: mark[mark.lastindex or 0],
        text,
    )
    return re.sub(r"^#{1,6} +", "", plain, flags=re.MULTILINE)
