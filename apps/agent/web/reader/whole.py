"""All text of a web page, in a time in proportion to its length whatever it is made of."""

import re
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Any
from urllib.parse import urljoin

from lxml.etree import ParserError, iterwalk  # type: ignore[import-untyped]
from lxml.html import HTMLParser, document_fromstring  # type: ignore[import-untyped]

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
    "title",
    "select",
    "textarea",
}
_TAG = re.compile(r"<!--|<(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9]*+)[^<>]*+>")
"""Up to the next `<` at most, so that what is never closed is not looked for again and again."""


def whole_text(source: str, url: str) -> tuple[str, bool]:
    """Everything on the page in its order, a line for each block, links as Markdown; and whether a parser leaves the page
    before its end: then without links, and cut at tags wherever they stand."""
    parser = HTMLParser(
        encoding="utf-8", no_network=True, huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        tree = document_fromstring(source.encode("utf-8", "replace"), parser=parser)
    except (ParserError, ValueError):
        return "", False
    if any("depth" in entry.message for entry in parser.error_log):
        return _lines(_between_tags(source)), True
    return _lines(_pieces(tree, url)), False


def _lines(pieces: Iterable[str]) -> str:
    lines = (" ".join(line.split()) for line in "".join(pieces).split("\n"))
    return "\n".join(line for line in lines if line.strip("#-* "))


def _between_tags(source: str) -> Iterator[str]:
    """The text between the tags, found by looking at each sign once."""
    place, skipped = 0, ""
    while place < len(source):
        found = _TAG.search(source, place)
        end = found.start() if found else len(source)
        if not skipped:
            yield unescape(source[place:end]).replace("\n", " ")
        if found is None:
            return
        place, name = found.end(), (found["name"] or "").lower()
        if not name:
            ends = source.find("-->", place)
            place = len(source) if ends < 0 else ends + 3
        elif skipped:
            skipped = "" if found["end"] and name == skipped else skipped
        elif name in _SKIPPED and not found["end"]:
            skipped = name
        elif name in _BLOCKS:
            yield "\n"


def _pieces(tree: Any, url: str) -> Iterator[str]:
    walk = iterwalk(tree, events=("start", "end"))
    for event, node in walk:
        if event == "start" and node.tag in _SKIPPED:
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
