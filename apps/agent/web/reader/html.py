"""The readable part of a web page as Markdown: headings, lists, tables and links kept, menus and scripts left out.

Finding that part takes as long as a page is tangled, in libraries that cannot be interrupted. So it is looked for in a
process that the kernel ends when its time is over; then, and for pages too large to look at all, the whole page is
given as it is, which takes a time in proportion to its length.
"""

import os
import re
import resource
import signal
from collections.abc import Iterator
from html import unescape
from typing import Any

import trafilatura

from apps.agent.web.reader.text import decoded
from apps.agent.web.reader.whole import whole_text

FEW_CHARS = 200
"""Less than this is no article; the page may be a list of links, which is then shown as a whole."""
SHORT_CHARS = 2_000
"""An article of less is looked at again: parsers leave a page where it is nested too deeply."""
ARTICLE_SECONDS = 8
"""Of processor time."""
ARTICLE_TAGS = 100_000
"""A page with more is no article, and would take longer than that."""


def warm_up() -> None:
    """Loads the parsers and their tables, once for all copies of the process."""
    document = (
        "<html><body><article><p>" + "Words that make up a page. " * 20 + "</p></article></body></html>"
    )
    _extracted(document, "https://example.org/")
    whole_text(document, "https://example.org/")


def read(body: bytes, *, charset: str, url: str) -> Iterator[dict[str, Any]]:
    """`{"title"}`, then `{"text"}`: Markdown."""
    source = decoded(body, charset, meta=True)
    yield {"title": _title(source)}
    text = _article(source, url) if source.count("<") <= ARTICLE_TAGS else ""
    if len(text) < SHORT_CHARS:
        whole, cut_short = whole_text(source, url)
        if (cut_short or len(text) < FEW_CHARS) and len(whole) > len(text):
            text = whole
    yield {"text": text}


def _title(source: str) -> str:
    found = re.search(r"<title[^>]{0,200}>(.{0,2000}?)</title", source[:200_000], re.IGNORECASE | re.DOTALL)
    if not found:
        return ""
    return " ".join(unescape(found.group(1)).split())[:300]


def _article(source: str, url: str) -> str:
    """The page's own text; "" where there is none, or it is not found within `ARTICLE_SECONDS`."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _write_article(source, url, writing)
    os.close(writing)
    with open(reading, "rb") as file:
        text = file.read()
    done = os.waitpid(pid, 0)[1] == 0
    return text.decode("utf-8", "replace") if done else ""


def _write_article(source: str, url: str, writing: int) -> None:
    """Never returns. The kernel keeps the time, also in the middle of a parser written in C."""
    resource.setrlimit(resource.RLIMIT_CPU, (ARTICLE_SECONDS, ARTICLE_SECONDS))
    signal.alarm(2 * ARTICLE_SECONDS)
    status = 1
    try:
        with open(writing, "wb") as file:
            file.write(_extracted(source, url).encode("utf-8", "replace"))
        status = 0
    finally:
        os._exit(status)


def _extracted(source: str, url: str) -> str:
    text = trafilatura.extract(
        source,
        url=url,
        output_format="markdown",
        include_links=True,
        include_formatting=True,
        include_tables=True,
        include_comments=True,
        favor_recall=True,
    )
    return text or ""
