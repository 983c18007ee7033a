"""Words of a sentence that may run the other way than the page."""

import re

from django import template
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString

register = template.Library()

QUOTED = re.compile(r"(?<=“)[^”]+(?=”)")


@register.filter
def isolated(sentence: object) -> SafeString:
    """A sentence whose quoted words stand in a direction of their own (`<bdi>`), as `isolated` of `static/js/core/dom.js` does with
    strings: a title from right to left turns nothing around it."""
    text, end, pieces = str(sentence), 0, []
    for match in QUOTED.finditer(text):
        pieces.append((text[end : match.start()], match[0]))
        end = match.end()
    return format_html(
        "{}{}", format_html_join("", "{}<bdi>{}</bdi>", pieces), conditional_escape(text[end:])
    )
