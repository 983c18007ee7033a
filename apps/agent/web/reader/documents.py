"""Web pages, PDFs and texts as text.

The readable part of a web page becomes Markdown: headings, lists, tables and links kept, menus and scripts left out. Finding
that part takes as long as a page is tangled, in libraries that cannot be interrupted. So it is looked for in a process that the
kernel ends when its time is over; then, and for pages too large to look at all, the whole page is given as it is, which takes a
time in proportion to its length.
"""

import codecs
import io
import logging
import os
import re
import resource
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from html import unescape
from typing import Any
from urllib.parse import urljoin

import trafilatura
from charset_normalizer import from_bytes
from lxml.etree import ParserError, iterwalk  # type: ignore[import-untyped]
from lxml.html import HTMLParser, document_fromstring  # type: ignore[import-untyped]
from pypdf import PdfReader

GUESSABLE_BYTES = 256
"""From fewer, a guess is worse than the most common set."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_META = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{2,40})""", re.IGNORECASE)

_AS_BROWSERS_DO = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "iso8859-9": "cp1254",
    "tis-620": "cp874",
}
"""Names that pages use for a larger set than they stand for (WHATWG Encoding, 4.2)."""

_NEVER = {
    "utf_7",
    "unicode_escape",
    "raw_unicode_escape",
    "idna",
    "punycode",
    "mbcs",
    "oem",
    "undefined",
}


def read_text(body: bytes, *, charset: str, url: str) -> Iterator[dict[str, Any]]:
    """The text as it is, line ends aside."""
    yield {"text": decoded(body, charset).replace("\r\n", "\n")}


def decoded(body: bytes, charset: str, *, meta: bool = False) -> str:
    """Byte order mark, then `charset` (of the HTTP header), then with `meta` what the document says of itself, then UTF-8,
    then a guess. What does not fit is replaced, never an error."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body.decode(name, "replace")
    declared = _META.search(body[:4096]) if meta else None
    for name in (charset, declared.group(1).decode("ascii") if declared else ""):
        if known := _codec(name):
            return body.decode(known, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":  # a longer document was cut within a character
            return body.decode("utf-8", "replace")
    guess = from_bytes(body[:100_000]).best() if len(body) >= GUESSABLE_BYTES else None
    return body.decode(guess.encoding if guess else "cp1252", "replace")


def _codec(name: str) -> str:
    try:
        found = codecs.lookup(name) if name else None
    except (LookupError, ValueError):
        return ""
    # `bytes.decode` takes character sets alone; Python's other codecs (zip, base64, …) have the same registry.
    if (
        found is None
        or found.name.replace("-", "_") in _NEVER
        or not getattr(found, "_is_text_encoding", True)
    ):
        return ""
    return _AS_BROWSERS_DO.get(found.name, found.name)


MAX_PAGES = 500

logging.getLogger("pypdf").setLevel(logging.CRITICAL)


def read_pdf(body: bytes, *, charset: str, url: str) -> Iterator[dict[str, Any]]:
    """`{"title"}`, then `{"text", "page", "of"}` for each of the first 500 pages, as they are done; a page whose
    text cannot be got at has an empty one. `{"locked": true}` alone for a document with a password."""
    document = PdfReader(io.BytesIO(body))
    if document.is_encrypted and not document.decrypt(""):
        yield {"locked": True}
        return
    title: object = ""
    with suppress(Exception):  # a title is not worth the document
        title = document.metadata.title if document.metadata else ""
    yield {"title": " ".join(str(title or "").split())[:300]}
    of = len(document.pages)
    for number in range(min(of, MAX_PAGES)):
        yield {"text": _page(document, number), "page": number + 1, "of": of}


def _page(document: PdfReader, number: int) -> str:
    try:
        text = document.pages[number].extract_text()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  pypdf raises whatever a broken page leads to; the others can be read
        return ""
    return "\n".join(line.rstrip() for line in text.splitlines())


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


def read_html(body: bytes, *, charset: str, url: str) -> Iterator[dict[str, Any]]:
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
    found = re.search(
        r"<title[^>]{0,200}>(.{0,2000}?)</title", source[:200_000], re.IGNORECASE | re.DOTALL
    )
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


_BLOCKS = {
    *("h1", "h2", "h3", "h4", "h5", "h6"),
    *("address", "article", "aside", "blockquote", "body", "br", "dd", "div", "dl", "dt"),
    *("figcaption", "figure", "footer", "form", "header", "hr", "li", "main", "nav", "ol"),
    *("option", "p", "pre", "section", "table", "td", "th", "tr", "ul"),
}
_OPENINGS = {f"h{level}": f"\n{'#' * level} " for level in range(1, 7)} | {
    "li": "\n- ",
    "td": " | ",
    "th": " | ",
}
_SKIPPED = {
    *("script", "style", "noscript", "template", "svg", "iframe", "object", "head", "title"),
    *("select", "textarea"),
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
        href = node.get("href") if node.tag == "a" else None
        if event == "start" and node.tag in _SKIPPED:
            walk.skip_subtree()
        elif event == "start":
            mark = "\n" if node.tag in _BLOCKS else "[" if href else ""
            yield _OPENINGS.get(node.tag, mark) + (node.text or "").replace("\n", " ")
        else:
            mark = "\n" if node.tag in _BLOCKS and node.tag not in {"td", "th"} else ""
            yield (_link_end(url, href) if href else mark) + (node.tail or "").replace("\n", " ")


def _link_end(url: str, href: str) -> str:
    try:
        return f"]({urljoin(url, href.strip())[:2_000]})"
    except ValueError:
        return f"]({href[:2_000]})"
