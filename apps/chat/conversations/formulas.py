"""Formulas in Markdown as MathML: `\\(…\\)`, `\\[…\\]`, `$…$` and `$$…$$`, which models write, and blocks of them. What is no formula that
the library knows stays as its source."""

import re
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

MAX_TEX = 2_000
"""Characters of one formula, and how far its end is looked for."""
MAX_LOOKS = 500
"""Places of a text where a formula may begin that are looked at."""
MAX_LINES = 60
KEPT = 2_000
TAGS = {
    *("math", "menclose", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded", "mphantom"),
    *("mprescripts", "mroot", "mrow", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable"),
    *("mtd", "mtext", "mtr", "munder", "munderover"),
}
ATTRIBUTES = {
    "math": {"display", "alttext"},
    "mi": {"mathvariant"},
    "mo": {"stretchy", "fence", "form", "lspace", "rspace", "minsize", "maxsize"},
    "mfrac": {"linethickness"},
    "mspace": {"width"},
    "mstyle": {"displaystyle", "scriptlevel"},
    "mtd": {"columnalign"},
    "mover": {"accent"},
    "menclose": {"notation"},
}
_MARKS = (("\\(", "\\)", False), ("\\[", "\\]", True), ("$$", "$$", True), ("$", "$", False))
_BLOCKS = {"$$": "$$", "\\[": "\\]"}
_TAG = re.compile(rf"</?(?:{'|'.join(sorted(TAGS))})(?: [a-z]+=\"[^\"<>]*\")* ?/?>")
_UNKNOWN = re.compile(r"<m[io][^<>]*>\\[A-Za-z]")
_PROSE = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}\s+(?:[A-Za-z]+\s+)?[A-Za-z]{3,}")


def formulas_enable(parser: "MarkdownIt") -> None:
    """Has the parser find formulas."""
    parser.inline.ruler.before("escape", "formula", _inline)
    parser.block.ruler.after(
        "fence", "formula_block", _block, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    parser.add_render_rule("formula", _rendered)
    parser.add_render_rule("formula_block", _rendered)


@lru_cache(KEPT)
def mathml(tex: str, display: bool) -> str:
    """The formula, "" where the library does not know it. To be sanitised like everything else."""
    from latex2mathml.converter import convert

    try:
        found = convert(tex, display="block" if display else "inline")
    except Exception:  # noqa: BLE001  whatever the library makes of what is no formula, recursion included
        return ""
    if _UNKNOWN.search(found):  # a command's name as a sign, and its braces lost
        return ""
    # It escapes no words of \text: where there are tags that are not its own the source is shown.
    if "<" in _TAG.sub("", re.sub(r' xmlns="[^"]*"', "", found)):
        return ""
    return found.replace("<math ", f'<math alttext="{escape(tex)}" ', 1)


def _inline(state: "StateInline", silent: bool) -> bool:
    src, pos = state.src, state.pos
    if src[pos] not in "$\\":
        return False
    opening = next((mark for mark in _MARKS if src.startswith(mark[0], pos)), None)
    looks = state.env.setdefault("formulas", 0)
    if opening is None or looks >= MAX_LOOKS:
        return False
    state.env["formulas"] += 1
    mark, close, display = opening
    start = pos + len(mark)
    end = src.find(close, start, start + MAX_TEX)
    tex = src[start:end] if end > start else ""
    if not tex.strip() or (mark == "$" and not _is_formula(src, pos, end, tex)):
        return False
    if not silent:
        token = state.push("formula", "", 0)
        token.content, token.meta = tex.strip(), {"display": display, "block": False}
    state.pos = end + len(close)
    return True


def _is_formula(src: str, pos: int, end: int, tex: str) -> bool:
    """Whether a text between two dollar signs is one, and not what lies between two prices."""
    if tex[0].isspace() or tex[-1].isspace() or "\n\n" in tex:
        return False
    before, after = src[pos - 1 : pos], src[end + 1 : end + 2]
    if before.isalnum() or before == "\\" or after.isalnum():
        return False
    return "\\" in tex or not _PROSE.search(tex)


def _block(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    first = _line(state, start)
    close = _BLOCKS.get(first[:2])
    if close is None or state.is_code_block(start):
        return False
    lines, number = [first[2:]], start
    while not lines[-1].rstrip().endswith(close):
        number += 1
        if number >= end or number - start > MAX_LINES or state.sCount[number] < state.blkIndent:
            return False
        lines.append(_line(state, number))
    tex = "\n".join(lines).rstrip()[: -len(close)].strip()
    if not tex or len(tex) > MAX_TEX or close in tex:
        return False
    if not silent:
        token = state.push("formula_block", "", 0)
        token.content, token.meta = tex, {"display": True, "block": True}
        token.map = [start, number + 1]
        state.line = number + 1
    return True


def _line(state: "StateBlock", number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]


def _rendered(
    renderer: "RendererHTML",
    tokens: "Sequence[Token]",
    index: int,
    options: "OptionsDict",
    env: "EnvType",
) -> str:
    token = tokens[index]
    found = mathml(token.content, token.meta["display"])
    if not token.meta["block"]:
        return found or f"<code>{escape(token.content)}</code>"
    if not found:
        return f'<pre class="code language-latex"><code>{escape(token.content)}\n</code></pre>'
    return f'<div class="math-block">{found}</div>'
