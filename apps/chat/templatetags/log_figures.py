"""Figures of the decision log for people."""

from django import template

from apps.core.unmarked import unmarked

register = template.Library()
register.filter(unmarked)


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
