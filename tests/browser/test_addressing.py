"""Cards of the chat word notes as the pages do: one table holds both to it."""

import json
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

from tests.browser.server import Server

CASES = json.loads((Path(__file__).parents[1] / "memory" / "addressing.json").read_text())
SCRIPT = """async (texts) => {
  const { addressed } = await import("/static/js/core/addressing.js");
  return texts.map(addressed);
}"""


def test_notes_on_cards_speak_to_their_owner(server: Server, open_page: Callable[..., Page]) -> None:
    page = open_page(f"{server.url}/sign-in/")
    assert page.evaluate(SCRIPT, [stored for stored, _ in CASES]) == [shown for _, shown in CASES]
