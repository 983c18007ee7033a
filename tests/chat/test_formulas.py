"""Formulas, lists of tasks, footnotes and diagrams in answers."""

import pytest

from apps.chat.conversations.markdown import LiveRenderer, render


@pytest.mark.parametrize(
    "text",
    [
        "So $e^{i\\pi}+1=0$ holds.",
        "So \\(e^{i\\pi}+1=0\\) holds.",
        "$$\ne^{i\\pi}+1=0\n$$",
        "As said:\n\\[ e^{i\\pi}+1=0 \\]\nand on.",
        "```math\ne^{i\\pi}+1=0\n```",
        "1. item\n\n   $$\n   e^{i\\pi}+1=0\n   $$",
    ],
)
def test_a_formula_is_mathml_with_its_source_as_words(text: str) -> None:
    html = render(text)
    assert 'alttext="e^{i\\pi}+1=0"' in html
    assert "<mi>π</mi>" in html
    assert "$" not in html


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 and $10.",
        "Between $5-$10, or US$3.",
        "\\$5 is five dollars, and 6\\$ six",
        "The price of $HOME is not the price of $PATH",
        "A lone $ sign and another $ sign",
        "`$x$`",
    ],
)
def test_prices_and_code_are_no_formulas(text: str) -> None:
    html = render(text)
    assert "<math" not in html
    assert "$" in html


@pytest.mark.parametrize(
    "tex",
    [
        "\\frac{",
        "\\ce{H2O}",
        "\\text{<script>alert(1)</script>}",
        "\\text{<img src=x onerror=alert(1)>}",
        "{" * 1_500,
    ],
)
def test_what_is_no_formula_stays_its_source_and_harmless(tex: str) -> None:
    for html in (render(f"a ${tex}$ b"), render(f"$$\n{tex}\n$$")):
        assert "<math" not in html
        assert "<script" not in html
        assert "<img" not in html
        assert "<code>" in html


def test_a_formula_leads_nowhere() -> None:
    html = render("$\\href{javascript:alert(1)}{x}$")
    assert "href=" not in html
    assert "<mi>x</mi>" in html


def test_tasks_have_a_box_and_words_for_it() -> None:
    html = render("- [ ] bread\n- [x] milk\n- plain")
    assert html.count('class="task-item"') == 2
    assert '<span class="visually-hidden">Done: </span>milk' in html
    assert "[ ]" not in html


def test_a_footnote_has_its_number_while_the_text_still_comes() -> None:
    text = "Tea[^1] and milk[^m].\n\nAnd tea[^1] again, in `[^x]` and [^a-z].\n\n[^1]: Green.\n[^m]: Warm.\n\nThe end.\n"
    live, shown = LiveRenderer(), dict[int, str]()
    for start in range(0, len(text), 7):
        live.feed(text[start : start + 7])
        shown |= dict(live.render())
        assert not any("[^1]:" in html or "Green" in html for html in shown.values())
    assert '<sup class="footnote-ref">2</sup>' in shown[0]
    assert '<sup class="footnote-ref">1</sup> again' in shown[1]
    assert "<code>[^x]</code> and [^a-z]" in shown[1]
    shown |= dict(live.finish())
    whole = [html for _, html in sorted(shown.items()) if html]
    assert "\n".join(whole) == render(text)
    assert '<section class="footnotes"><ol><li><p>Green.' in whole[-1]


def test_footnotes_stand_at_the_end_and_have_no_addresses() -> None:
    html = render("One[^a] and two[^b].\n\n[^a]: First *note*.\n[^b]: <script>alert(1)</script>")
    assert '<sup class="footnote-ref">1</sup>' in html
    assert '<section class="footnotes">' in html
    assert "First <em>note</em>." in html
    assert "<script" not in html
    assert "id=" not in html


def test_a_diagram_is_shown_as_its_source_with_a_note() -> None:
    html = render("```mermaid\ngraph TD; A-->B\n```")
    assert "A--&gt;B" in html
    assert "shown as its source" in html


def test_an_answer_that_streamed_ends_as_it_is_rendered_at_once() -> None:
    text = "So $x^2$[^1]:\n\n$$\n\\frac{a}{b}\n$$\n\n- [x] done\n\nOn.[^1]\n\n[^1]: A note.\n"
    shown: dict[int, str] = {}
    live = LiveRenderer()
    for place in range(0, len(text), 7):
        live.feed(text[place : place + 7])
        shown.update(live.render())
    shown.update(live.finish())
    assert "\n".join(html for _, html in sorted(shown.items()) if html) == render(text)
