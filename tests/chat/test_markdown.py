"""Texts of models and users become HTML that can do no harm."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.chat.conversations import markdown
from apps.chat.conversations.markdown import LiveRenderer, blocks, render

SAMPLE = """# Title

A paragraph with *emphasis*, `code`, ~~strike~~ and https://example.org/path.

1. one

2. two
   ```python
   def f(): return "x"
   ```

| a | b |
|:--|--:|
| 1 | 2 |

> quoted [link]

```html
<b onclick="x">
```

- a
  - b

[link]: https://example.org "title"
Last words
"""


@pytest.mark.parametrize(
    "attack",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](vbscript:x)",
        "![x](javascript:alert(1))",
        "<a href='javascript:alert(1)'>x</a>",
        '[x](https://a.b "\\" onmouseover=alert(1)")',
        "`<script>`",
        '```"><script>alert(1)</script>\nx\n```',
        "<svg onload=alert(1)>",
        "<iframe src=//evil>",
        "<style>*{display:none}</style>",
        "[x]: javascript:alert(1)\n\n[x]",
        '<https://a.b/"onclick=alert(1)>',
        "| a |\n|---|\n| <script>x</script> |",
    ],
)
def test_nothing_in_it_runs(attack: str) -> None:
    html = render(attack)
    tags = re.findall(r"<[^>]*>", html)
    assert not any(re.search(r"(?i)<\s*(script|iframe|svg|style|img|object|form)", tag) for tag in tags)
    assert not any(re.search(r"(?i)\son\w+\s*=", re.sub(r'"[^"]*"', '""', tag)) for tag in tags)
    assert not any(re.search(r'(?i)href="\s*(javascript|data|vbscript):', tag) for tag in tags)
    assert "style=" not in "".join(tags)


def test_nothing_loads_from_another_host() -> None:
    html = render("![a *picture*](https://evil.example/p.png?x=1&y=2)")
    assert "<img" not in html
    assert 'href="https://evil.example/p.png?x=1&amp;y=2"' in html


def test_links_do_not_hand_over_the_page() -> None:
    assert 'rel="noopener noreferrer nofollow"' in render("[x](https://example.org)")


def test_code_is_coloured_with_classes_and_names_its_language() -> None:
    html = render("```python\ndef f(): pass\n```")
    assert html.startswith('<pre class="code language-python"><code><span class="k">def</span>')
    assert 'class="code language-nonsense"' in render("```nonsense\n<b>\n```")
    assert "&lt;b&gt;" in render("```nonsense\n<b>\n```")


def test_very_long_code_is_shown_without_colours() -> None:
    assert "<span" not in render("```python\n" + "x = 1\n" * 20_000 + "```")


def test_tables_keep_their_alignment_without_styles() -> None:
    assert '<th class="align-right">b</th>' in render("| a | b |\n|---|--:|\n| 1 | 2 |")


def live(text: str, sizes: random.Random) -> list[str]:
    """The blocks a page holds in the end when the text comes in pieces."""
    renderer, at = LiveRenderer(), 0
    shown: dict[int, str] = {}
    while at < len(text):
        size = sizes.randint(1, 7)
        renderer.feed(text[at : at + size])
        shown.update(renderer.render())
        at += size
    shown.update(renderer.finish())
    return [html for _, html in sorted(shown.items()) if html]


@pytest.mark.parametrize("seed", range(10))
def test_text_in_pieces_ends_as_the_text_at_once(seed: int) -> None:
    assert live(SAMPLE, random.Random(seed)) == [block.html for block in blocks(SAMPLE)]


@settings(deadline=None, max_examples=80)
@given(
    st.text(st.sampled_from("ab \n#*-`>|1.[]():<&\r\u2028~_"), max_size=120),
    st.randoms(use_true_random=False),
)
def test_any_text_in_pieces_ends_as_the_text_at_once(text: str, sizes: random.Random) -> None:
    assert live(text, sizes) == [block.html for block in blocks(text.replace("\r", ""))]


def test_a_block_that_is_over_is_not_rendered_again() -> None:
    renderer = LiveRenderer()
    renderer.feed("First paragraph.\n\nSecond ")
    assert [index for index, _ in renderer.render()] == [0, 1]
    renderer.feed("paragraph.")
    assert [index for index, _ in renderer.render()] == [1]
    assert renderer.render() == []


@pytest.mark.parametrize("bomb", ["http://a.", "http://( ", "<http://", "a.com/(", "a.com/(\n"])
def test_addresses_that_would_take_minutes_to_find_stay_text(bomb: str) -> None:
    text = bomb * 10_000

    assert "<a " not in render(text)
    assert "http" in render(text) or "a.com" in render(text)


@pytest.mark.parametrize("quote", ["", "> ", "- "])
def test_a_table_that_would_become_a_million_cells_stays_text(quote: str) -> None:
    rows = [*["a|" * 100, "-|" * 100], *["|"] * 10_000]

    assert len(render("\n".join(f"{quote}{row}" for row in rows))) < 500_000


@pytest.mark.parametrize(
    "bomb", ["![", "a\n\n", "- - - - a\n", "a*", "~~~\n```\n~~~\n![", "    ```\n*a"]
)
def test_markup_that_would_take_seconds_stays_text(bomb: str) -> None:
    [block] = blocks(bomb * (100_000 // len(bomb)))
    assert re.sub(r"</?p>|<br>|\s", "", block.html).startswith(re.sub(r"\s", "", bomb))


def test_a_long_text_that_only_looks_like_much_markup_is_rendered() -> None:
    paragraph = (
        "A paragraph with *emphasis*, `code`, [a link](https://example.org) and an_identifier.\n\n"
    )
    code = "```python\n" + "x[1] = a * b - c_d\n" * 4_000 + "```\n\n"
    assert "<em>emphasis</em>" in render(code + paragraph * 300)


def test_what_is_shown_as_text_keeps_its_lines_and_runs_nothing() -> None:
    html = render("<b>\none\n\n \ntwo" + "\n*" * 30_000)
    assert html.startswith("<p>&lt;b&gt;<br>\none</p>\n<p>two<br>\n*<br>\n*")


def test_a_long_answer_keeps_its_links_and_tables() -> None:
    paragraph = (
        "See https://example.org/page and www.example.org for what e.g. version 1.2 changed. " * 12
    )
    table = "\n".join(["| a | b | c |", "|---|---|---|", *["| 1 | 2 | https://example.org |"] * 300])

    html = render("\n\n".join([paragraph] * 20 + [table]))

    assert html.count("<a ") == 12 * 2 * 20 + 300
    assert html.count("<tr>") == 301


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("javascript", "a."),
        ("java", "a "),
        ("c", '" '),
        ("css", "'\\"),
        ("amdgpu", "a"),
        ("shell-session", "a"),
    ],
)
def test_code_that_would_take_minutes_to_colour_stays_without_colours(
    monkeypatch: pytest.MonkeyPatch, language: str, code: str
) -> None:
    # The lexers of C and CSS take about a tenth of a second, on fast machines less than the limit.
    monkeypatch.setattr(markdown, "HIGHLIGHT_SECONDS", 0.01)
    html = render(f"```{language}\n{code * (45_000 // len(code))}\n```\n\n```python\nx = 1\n```")
    assert html.startswith(f'<pre class="code language-{language}"><code>{code[0]}')
    assert "<span" not in html.split("</pre>")[0]


def test_headings_stand_below_those_of_the_page() -> None:
    html = render("# One\n\nTwo\n---\n\n##### Five")
    assert re.findall(r"<(h\d)>(\w+)</(h\d)>", html) == [
        ("h4", "One", "h4"),
        ("h5", "Two", "h5"),
        ("h6", "Five", "h6"),
    ]
