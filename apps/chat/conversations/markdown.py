"""Markdown of users and models as HTML that is safe to put into a page.

Three layers: markdown-it-py without raw HTML, code coloured by Pygments with classes (no inline styles), and nh3
with an allow-list over the whole. Nothing loads from another host: images become links. The libraries take a
third of a second to import, so they come with the first rendering (or with `warm_up`).
"""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

from apps.chat.conversations import formulas, markings
from apps.chat.conversations.links import Leads, directly, place_links

MAX_LINK_WORK = 2_000_000
MAX_LINKS = 3_000
"""Places where a link may begin, times the length of their line, and in all; a third of a second."""
MAX_CELLS = 4_000
"""Of all tables of a text; a tenth of a second."""
MAX_SIGNS = 5_000
"""Lines, and signs that markup may begin with; a tenth of a second, or two where each opens a bracket. An answer of ten
thousand words has half of them."""
_LINK = re.compile(r"//|:(?<=mailto:)|@|\.(?<=\w\.)(?=\w)", re.IGNORECASE)
"""Each place by a sign that words have not: so most of a text is passed over at once."""
_DELIMITERS = re.compile(r"[\s>*+\-|:\d.)]*\Z")
_SIGN = re.compile(r"[*_~`\[\]<>&\\#+-]|\d[.)]")
_FENCE = re.compile(r" {0,3}(?:(`{3,})[^`]*|(~{3,}).*)")
MAX_HIGHLIGHT_CHARS = 50_000  # of the code of one text
HIGHLIGHT_SECONDS = 0.1
"""Of processor time for one text: what takes Pygments longer stays without colours. Its lexers take time by the square of code
made for it (`'a.' * 25_000` in JavaScript: 20 seconds), but little for each token."""
_LANGUAGES = """bash c cpp csharp css diff docker go html ini java javascript json jsx kotlin lua make nginx perl powershell
    py python r ruby rust scss sh sql swift toml ts tsx typescript xml yaml yml zsh js c++ cs rb rs"""
COLOURED = frozenset(_LANGUAGES.split())
"""The languages that get colours. Of five hundred some take minutes for one token, or read languages within (PHP, Markdown)."""
KEPT_TEXTS = 2000
KEPT_CHARS = 10_000
TAGS = {
    "a", "blockquote", "br", "code", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre",
    "s", "section", "span", "strong", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
} | formulas.TAGS  # fmt: skip
ATTRIBUTES = {
    "a": {"href"},
    **formulas.ATTRIBUTES,
    "code": {"class"},
    "div": {"class"},
    "li": {"class"},
    "ol": {"start"},
    "pre": {"class"},
    "section": {"class"},
    "span": {"class"},
    "sup": {"class"},
    "td": {"class"},
    "th": {"class"},
}
_BETWEEN = re.compile(r"\n[ \t]*\n\s*")
DIAGRAM = '<div class="code-note">A diagram in Mermaid, shown as its source.</div>'
HEADINGS_BELOW = 3
"""The page's own heading, that of the conversation, and who speaks stand above those of a message."""
LINK_REL = "noopener noreferrer nofollow"


def markup_found(text: str) -> bool:
    """Whether the markup of the text can be looked for at all: its signs are at most as many as are counted here, since of code
    only what is fenced at the beginning of its lines is passed over."""
    if len(text) <= MAX_SIGNS:
        return True
    found, fence = 0.0, ""
    for line in text.split("\n"):
        found += 0.1 if fence else 1
        mark = _FENCE.fullmatch(line)
        if fence:
            if mark and line.strip().strip(fence[0]) == "" and line.strip().startswith(fence):
                fence = ""
        elif mark:
            fence = mark[1] or mark[2]
        else:
            found += len(_SIGN.findall(line))
    return found <= MAX_SIGNS


def links_found(text: str) -> bool:
    """Whether links without marks can be looked for."""
    places = [(len(_LINK.findall(line)), len(line)) for line in text.split("\n")]
    few = sum(count for count, _ in places) <= MAX_LINKS
    return few and sum(count * length for count, length in places) <= MAX_LINK_WORK


def may_link(text: str) -> bool:
    """Whether a link may begin in this piece of text; one that two pieces share may be overlooked."""
    return "](" in text or _LINK.search(text) is not None


def tables_found(text: str) -> bool:
    """Whether the tables of the text can be made: they have at most as many cells as are counted here."""
    found = columns = 0
    for line in text.split("\n"):
        if not line.strip():
            columns = 0
        elif "-" in line and "|" in line and _DELIMITERS.match(line):
            columns += line.count("|") + 1
        else:
            found += columns
    return found <= MAX_CELLS


if TYPE_CHECKING:
    import nh3
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict
    from pygments.formatters import HtmlFormatter


@dataclass(frozen=True, slots=True)
class Block:
    """One top-level block: the line it starts at (from 0) and its HTML."""

    line: int
    html: str


def render(text: str, leads: Leads = directly) -> str:
    """The whole text as HTML, its links leading where `leads` says. Short texts without links are kept, so that a conversation
    opened again costs no rendering."""
    if len(text) > KEPT_CHARS:
        return _rendered(text, leads)
    plain = _kept(text)
    return plain if leads is directly or "<a " not in plain else _rendered(text, leads)


def _rendered(text: str, leads: Leads = directly) -> str:
    return "\n".join(block.html for block in blocks(text, leads))


_kept = lru_cache(KEPT_TEXTS)(_rendered)


def forget() -> None:
    """Keeps no text and no formula any more."""
    _kept.cache_clear()
    formulas.mathml.cache_clear()


def warm_up() -> None:
    """Imports what rendering needs, so that the first page need not wait for it."""
    render("```python\n1\n```\n\n$x$")


def blocks(text: str, leads: Leads = directly, *, live: bool = False, before: str = "") -> list[Block]:
    """The text's top-level blocks (paragraph, list, code, table, …), each rendered and sanitised by itself; of a `live` text, which
    goes on behind `before`, with the numbers of footnotes but not yet the notes.

    Where tables, or addresses that are not marked as links, would cost too much they stay text; so does all markup.
    """
    if not markup_found(text):
        parts = (escape(part, quote=False) for part in _BETWEEN.split(text.strip("\n")))
        whole = "\n".join(f"<p>{part}</p>" for part in parts).replace("\n", "<br>\n")
        return [Block(0, whole.replace("</p><br>", "</p>"))]
    notes = "[^" in text
    parser = _parser(
        tables=tables_found(text),
        links=_LINK.search(text) is not None and links_found(text),
        notes=notes,
        live=notes and live,
    )
    clean = _cleaner().clean
    env: dict[str, Any] = {}
    if notes and live:
        env["footnotes"] = markings.notes_expected(before, text)
    parsed = parser.parse(text, env)
    for token in parsed:
        if token.type == "inline":
            place_links(token, leads)
        elif token.type in {
            "th_open",
            "td_open",
        }:  # its alignment as a class: inline styles are not allowed
            side = str(token.attrs.pop("style", "")).removeprefix("text-align:")
            if side in {"left", "center", "right"}:
                token.attrSet("class", f"align-{side}")
        elif token.type.startswith("heading_"):
            token.tag = f"h{min(6, int(token.tag[1]) + HEADINGS_BELOW)}"
    return [
        Block(
            (tokens[0].map or [0])[0], clean(parser.renderer.render(tokens, parser.options, env)).strip()
        )
        for tokens in _top_level(parsed)
    ]


def _top_level(tokens: "Sequence[Token]") -> "Iterator[list[Token]]":
    group: list[Token] = []
    depth = 0
    for token in tokens:
        group.append(token)
        depth += token.nesting
        if depth == 0:
            yield group
            group = []


@cache
def _parser(*, tables: bool, links: bool, notes: bool, live: bool) -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "linkify": links, "breaks": True})
    parser.enable(["strikethrough", *(["table"] if tables else []), *(["linkify"] if links else [])])
    parser.add_render_rule("fence", _fence)
    formulas.formulas_enable(parser)
    markings.tasks_enable(parser)
    if notes:
        markings.footnotes_enable(parser, live=live)
    return parser


def _fence(
    renderer: "RendererHTML",
    tokens: "Sequence[Token]",
    index: int,
    options: "OptionsDict",
    env: "EnvType",
) -> str:
    """A code block with Pygments' classes, as long as the text has room for them; the language as a class on `pre` for the
    page's label."""
    code = tokens[index].content
    language = tokens[index].info.split(maxsplit=1)[:1]
    name = "".join(char for char in "".join(language).lower() if char.isalnum() or char in "+#-")[:20]
    body, room = escape(code), env.get("room", MAX_HIGHLIGHT_CHARS) - len(code)
    if name in COLOURED and room >= 0:
        with suppress(_TakesLongError):
            env["room"] = room
            body = _coloured(code, name, env)
    label = f" language-{name}" if name else ""
    if name == "math" and (found := formulas.mathml(code.strip(), True)):
        return f'<div class="math-block">{found}</div>'
    note = DIAGRAM if name == "mermaid" else ""
    return f'<pre class="code{label}"><code>{body}</code></pre>{note}'


def _coloured(code: str, language: str, env: "EnvType") -> str:
    from pygments import format as formatted
    from pygments.lexers import get_lexer_by_name

    tokens = get_lexer_by_name(language, stripnl=False).get_tokens(code)

    def within_limits() -> Iterator[Any]:
        began = time.thread_time() - env.get("spent", 0.0)
        for token in tokens:
            env["spent"] = time.thread_time() - began
            if env["spent"] > HIGHLIGHT_SECONDS:
                raise _TakesLongError
            yield token

    return formatted(within_limits(), _formatter())


class _TakesLongError(Exception):
    pass


@cache
def _formatter() -> "HtmlFormatter[str]":
    from pygments.formatters import HtmlFormatter

    return HtmlFormatter(nowrap=True)


@cache
def _cleaner() -> "nh3.Cleaner":
    """Made once: that takes ten times as long as cleaning a paragraph."""
    import nh3

    return nh3.Cleaner(
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel=LINK_REL,
        strip_comments=True,
    )


@dataclass(slots=True)
class LiveRenderer:
    """Renders a text that is still coming, only from the last block on.

    `feed` takes the next piece; `render` gives `(index, html)` of the blocks that changed since the last call, with
    "" for one that vanished. A block is taken as final once another one has begun after it; what later lines
    change in it all the same (a link's definition at the end) is found by `finish`.
    """

    text: str = ""  # all of it so far
    _tail_start: int = 0
    _index: int = 0
    _shown: dict[int, str] = field(default_factory=dict)

    def feed(self, text: str) -> None:
        self.text += text.replace("\r", "")

    def render(self, leads: Leads = directly) -> list[tuple[int, str]]:
        tail = self.text[self._tail_start :]
        found = blocks(tail, leads, live=True, before=self.text[: self._tail_start])
        changed = self._changes(self._index, found)
        if len(found) > 1:
            self._tail_start += sum(len(line) + 1 for line in tail.split("\n")[: found[-1].line])
            self._index += len(found) - 1
        return changed

    def finish(self, leads: Leads = directly) -> list[tuple[int, str]]:
        """The blocks in which the whole text, rendered at once, differs from what was given so far."""
        text = self.text
        limited = len(text) > MAX_HIGHLIGHT_CHARS or not (links_found(text) and tables_found(text))
        may_differ = (
            any(sign in text for sign in ("]:", "[^")) or limited or not markup_found(text)
        )  # definitions of links and footnotes, and what is limited
        return self._changes(0, blocks(text, leads)) if may_differ else []

    def relinked(self, leads: Leads) -> list[tuple[int, str]]:
        """The blocks whose links lead elsewhere now than when they were given."""
        linked = any("<a " in html for html in self._shown.values())
        return self._changes(0, blocks(self.text, leads)) if linked else []

    def _changes(self, first: int, found: Sequence[Block]) -> list[tuple[int, str]]:
        now = {first + offset: block.html for offset, block in enumerate(found)}
        gone = {
            index: ""
            for index, html in self._shown.items()
            if index >= first and index not in now and html
        }
        changed = [
            (index, html) for index, html in (now | gone).items() if self._shown.get(index, "") != html
        ]
        self._shown.update(changed)
        return changed
