"""Markdown beyond the standard that answers have: lists of tasks, and footnotes without addresses of their own."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore

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


def footnotes_enable(parser: "MarkdownIt") -> None:
    """Footnotes at the end of the text. The page leads from a number to its note: several messages stand on it, so that none has
    an address."""
    from mdit_py_plugins.footnote import footnote_plugin

    footnote_plugin(parser, inline=False)

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
