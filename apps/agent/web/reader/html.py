"""The readable part of a web page as Markdown: headings, lists, tables and links kept, menus and scripts left out."""

import re
import signal
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import urljoin

import trafilatura
from lxml.etree import ParserError, iterwalk  # type: ignore[import-untyped]
from lxml.html import HTMLParser, document_fromstring  # type: ignore[import-untyped]

from apps.agent.web.reader.text import decoded

FEW_CHARS = 200
"""Less than this is no article; the page may be a list of links, which is then shown as a whole."""
ARTICLE_SECONDS = 10.0
"""Of processor time; then the whole page is taken as it is, which is quick."""
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_BLOCKS = _HEADINGS | {
    *("address", "article", "aside", "blockquote", "body", "br", "dd", "div", "dl", "dt"),
    *("figcaption", "figure", "footer", "form", "header", "hr", "li", "main", "nav", "ol"),
    *("option", "p", "pre", "section", "table", "td", "th", "tr", "ul"),
}
_SKIPPED = {
    "script",
    "style",
    "noscript",
    "template",
    "svg",
    "iframe",
    "object",
    "head",
    "select",
    "textarea",
}


def warm_up() -> None:
    """Loads the parsers and their tables, once for all copies of the process."""
    document = (
        "<html><body><article><p>" + "Words that make up a page. " * 20 + "</p></article></body></html>"
    )
    list(read(document.encode(), charset="utf-8", url="https://example.org/"))


def read(body: bytes, *, charset: str, url: str) -> Iterator[dict[str, Any]]:
    """`{"title"}`, then `{"text"}`: Markdown."""
    source = decoded(body, charset, meta=True)
    yield {"title": _title(source)}
    text = _article(source, url)
    if len(text) < FEW_CHARS:
        whole = _whole(source, url)
        text = whole if len(whole) > len(text) else text
    yield {"text": text}


def _title(source: str) -> str:
    found = re.search(r"<title[^>]{0,200}>(.{0,2000}?)</title", source[:200_000], re.IGNORECASE | re.DOTALL)
    if not found:
        return ""
    return " ".join(unescape(found.group(1)).split())[:300]


class _TooSlowError(BaseException):
    """No `Exception`: trafilatura catches those and goes on."""


def _article(source: str, url: str) -> str:
    """What is the page's own text; "" where there is none, or it is not found within `ARTICLE_SECONDS`."""
    signal.signal(signal.SIGVTALRM, _give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, ARTICLE_SECONDS)
    try:
        return _extracted(source, url)
    except _TooSlowError:
        return ""
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _give_up(*_: Any) -> None:
    raise _TooSlowError


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


def _whole(source: str, url: str) -> str:
    """Everything on the page in its order, a line for each block, links as Markdown."""
    parser = HTMLParser(encoding="utf-8", no_network=True)
    try:
        tree = document_fromstring(source.encode("utf-8", "replace"), parser=parser)
    except (ParserError, ValueError):
        return ""
    lines = ("".join(_pieces(tree, url))).split("\n")
    whole = (" ".join(line.split()) for line in lines)
    return "\n".join(line for line in whole if line.strip("#-* "))


def _pieces(tree: Any, url: str) -> Iterator[str]:
    walk = iterwalk(tree, events=("start", "end", "comment", "pi"))
    for event, node in walk:
        if event in {"comment", "pi"}:
            yield node.tail or ""
        elif event == "start" and node.tag in _SKIPPED:
            walk.skip_subtree()
        elif event == "start":
            yield _opening(node) + (node.text or "").replace("\n", " ")
        else:
            yield _closing(node, url) + (node.tail or "").replace("\n", " ")


def _opening(node: Any) -> str:
    if node.tag in _HEADINGS:
        return f"\n{'#' * int(node.tag[1])} "
    if node.tag == "a" and node.get("href"):
        return "["
    return {"li": "\n- ", "td": " | ", "th": " | "}.get(node.tag, "\n" if node.tag in _BLOCKS else "")


def _closing(node: Any, url: str) -> str:
    if node.tag == "a" and node.get("href"):
        return f"]({_joined(url, node.get('href'))})"
    return "\n" if node.tag in _BLOCKS and node.tag not in {"td", "th"} else ""


def _joined(url: str, href: str) -> str:
    try:
        return urljoin(url, href.strip())[:2_000]
    except ValueError:
        return href[:2_000]
