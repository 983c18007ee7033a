"""Markdown where it is read as plain text."""

from pathlib import Path

import pytest

from apps.core.unmarked import unmarked

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("## Plan\n**dice_roller** is ready: say *roll 3d6* or `x`.", "Plan\ndice_roller is ready: say roll 3d6 or x."),
        ("See [the manual](https://example.org/m) and [this]", "See the manual and [this]"),
        ("![A barn](https://example.org/b.png) by ***me***", "A barn by me"),
        ("- oats\n  * _rolled_\n- [ ] milk\n- [x] honey\n1. boil", "• oats\n  • rolled\n☐ milk\n☑ honey\n1. boil"),
        ("Oats\n====\n---\nA bowl", "Oats\nA bowl"),
        ("2 * 3 * 4 and a*b*c, snake_case_name, __init__", "2 * 3 * 4 and a*b*c, snake_case_name, __init__"),
        ("-5 degrees, #5 of C#, *one star", "-5 degrees, #5 of C#, *one star"),
        (
            "| Day | Morning |\n|---|:-:|\n| Friday | **Alfama** |\n\n```python\nx = a | b\n```",
            "Day, Morning\nFriday, Alfama\n\nx = a | b\n",
        ),
    ],
)  # fmt: skip
def test_markdown_is_read_without_its_signs(text: str, read: str) -> None:
    assert unmarked(text) == read


def test_the_command_line_reads_it_by_the_same_rules() -> None:
    paths = (ROOT / "apps/core/unmarked.py", ROOT / "cli/izzy_cli/unmarked.py")
    server, command_line = (path.read_text() for path in paths)
    assert server == command_line
