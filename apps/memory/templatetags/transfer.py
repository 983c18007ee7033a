"""Words for imports on pages."""

from collections.abc import Mapping

from django import template

register = template.Library()


@register.filter
def title_of(titles: Mapping[str, str], name: str) -> str:
    """A format's name for people; the name itself where there is no such format any more."""
    return titles.get(name, name)
