"""Markdown beyond the standard that answers have: lists of tasks, and footnotes without addresses of their own."""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore

_NOTE = re.compile(r"\[\^([\w-]{1,30})\](?!:)")
_CLASS = re.compile(r"\w-\w\Z")  # [^a-z], not a footnote
_BOXES = {
    "[ ] ": ("task", "To do: "),
    "[x] ": ("task task-done", "Done: "),
    "[X] ": ("task task-done", "Done: "),
}


def tasks_enable(parser: "MarkdownIt") -> None:
    """Items that begin with `[ ]` or `[x]` get a box, which words say too."""
    parser.core.ruler.after("inline", "tasks", _tasks)


def _tasks(state: "StateCore") -> None:
    from markdown_it.token import Token

    tokens = state.tokens
    for place in range(2, len(tokens)):
        inline, item = tokens[place], tokens[place - 2]
        if inline.type != "inline" or item.type != "list_item_open" or not inline.children:
            continue
        first = inline.children[0]
        box = _BOXES.get(first.content[:4]) if first.type == "text" else None
        if box is None:
            continue
        kind, words = box
        first.content = first.content[4:]
        item.attrSet("class", "task-item")
        html = f'<span class="{kind}"></span><span class="visually-hidden">{words}</span>'
        inline.children.insert(0, Token("html_inline", "", 0, content=html))


def footnotes_enable(parser: "MarkdownIt", *, live: bool = False) -> None:
    """Footnotes at the end of the text; of a `live` one, which goes on, the numbers alone. The page leads from a number to its note:
    several messages stand on it, so that none has an address."""
    from mdit_py_plugins.footnote import footnote_plugin

    footnote_plugin(parser, inline=False, move_to_end=not live)
    if live:
        parser.core.ruler.after("block", "notes_known", _notes_known)
        parser.core.ruler.after("inline", "notes_left_out", _notes_left_out)

    def number(renderer: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
        return f'<sup class="footnote-ref">{int(tokens[index].meta["id"]) + 1}</sup>'

    parser.add_render_rule("footnote_ref", number)
    fixed = {
        "footnote_block_open": '<section class="footnotes"><ol>',
        "footnote_block_close": "</ol></section>",
        "footnote_open": "<li>",
        "footnote_close": "</li>",
        "footnote_anchor": "",
    }
    for name, html in fixed.items():
        parser.add_render_rule(name, lambda *given, html=html: html)


def notes_expected(before: str, text: str) -> dict[str, Any]:
    """Footnotes of a live text whose notes have not come yet, for its parser: those in front of it have their
    numbers, those in it get the next ones."""
    known = list(dict.fromkeys(_labels(before)))
    refs = dict.fromkeys((f":{label}" for label in _labels(text)), -1)
    refs |= {f":{label}": number for number, label in enumerate(known)}
    return {"refs": refs, "list": {n: {"label": label, "count": 1} for n, label in enumerate(known)}}


def _labels(text: str) -> list[str]:
    return [label for label in _NOTE.findall(text) if not _CLASS.match(label)]


def _notes_known(state: "StateCore") -> None:
    """A note's own text would take the number from it that stands further up."""
    found = state.env["footnotes"]
    found["refs"] |= {f":{each['label']}": number for number, each in found["list"].items()}


def _notes_left_out(state: "StateCore") -> None:
    kept, within = [], False
    for token in state.tokens:
        if token.type == "footnote_reference_open":
            within = True
        elif token.type == "footnote_reference_close":
            within = False
        elif not within:
            kept.append(token)
    state.tokens = kept
