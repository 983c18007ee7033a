"""axe-core: what a page does to those who cannot see, hear or point, by the rules of WCAG 2.2 AA and its best practices."""

from functools import cache
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page

LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
MORE = ("target-size", "label-content-name-mismatch")
"""Rules that axe leaves out unless they are named."""


@cache
def options(*, contrast: bool, best_practices: bool) -> dict[str, Any]:
    """`contrast` takes half of axe's time; `audit.py` measures it too."""
    return {
        "runOnly": {"type": "tag", "values": LEVELS + ["best-practice"] * best_practices},
        "reporter": "no-passes",
        "rules": {name: {"enabled": True} for name in MORE} | {"color-contrast": {"enabled": contrast}},
    }


def with_axe(context: BrowserContext) -> None:
    """Every page that is opened from here on has axe."""
    context.add_init_script(Axe().axe_script)


_FOUND = """options => axe.run(document, options).then(({ violations }) => violations.flatMap(({ id, impact, nodes }) =>
  nodes.map(({ html }) => `${id} (${impact}): ${html.slice(0, 160)}`)))"""
"""Lines made in the page: all that axe says about a page is as long as the page."""


def violations(page: Page, *, contrast: bool = False, best_practices: bool = True) -> list[str]:
    """Returns what axe finds wrong with the page as it is, a line for each element. The page has been opened `with_axe`."""
    found: list[str] = page.evaluate(_FOUND, options(contrast=contrast, best_practices=best_practices))
    return found
