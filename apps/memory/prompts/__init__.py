"""Memory's prompts for models: a Markdown file for each purpose."""

from functools import cache
from pathlib import Path


@cache
def prompt(name: str) -> str:
    """The text of `apps/memory/prompts/<name>.md`."""
    return (Path(__file__).parent / f"{name}.md").read_text(encoding="utf-8").strip()
