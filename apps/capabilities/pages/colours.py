"""The code of capabilities in colours, made on the server: classes, no styles."""

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

MAX_COLOURED_CHARS = 100_000
"""A longer file is shown plain: colours would take too long."""


def coloured(name: str, text: str) -> SafeString:
    """The text of a file as HTML; Python has Pygments' short class names, everything else is escaped and no more."""
    if not name.endswith(".py") or len(text) > MAX_COLOURED_CHARS:
        return escape(text)
    from pygments import highlight  # takes a while to import
    from pygments.formatters import HtmlFormatter
    from pygments.lexers.python import PythonLexer

    lexer = PythonLexer(stripnl=False, ensurenl=False)
    return mark_safe(highlight(text, lexer, HtmlFormatter(nowrap=True)))  # noqa: S308  it escapes
