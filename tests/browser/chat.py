"""The chat page in the words of someone who uses it."""

import re
from dataclasses import dataclass

from playwright.sync_api import Locator, Page, expect


@dataclass
class Chat:
    page: Page

    @property
    def turns(self) -> Locator:
        return self.page.locator(".turn")

    @property
    def last(self) -> Locator:
        return self.turns.last

    @property
    def field(self) -> Locator:
        return self.page.get_by_role("textbox", name="Message", exact=True)

    def say(self, text: str) -> Locator:
        """Sends a message and waits until it has been answered."""
        turn = self.send(text)
        self.wait_for(turn, "done")
        return turn

    def send(self, text: str) -> Locator:
        """Sends a message; its turn."""
        self.page.wait_for_selector("#composer[data-ready]")
        count = self.turns.count()
        self.field.fill(text)
        self.field.press("Enter")
        expect(self.turns).to_have_count(count + 1)
        return self.turns.nth(count)

    def wait_for(self, turn: Locator, *states: str) -> None:
        pattern = "|".join(states)
        expect(turn).to_have_attribute("data-state", re.compile(f"^({pattern})$"))

    def answer(self, turn: Locator | None = None) -> str:
        return "\n".join((turn or self.last).locator(".prose").all_inner_texts())

    def tools(self, turn: Locator | None = None) -> list[str]:
        return (turn or self.last).locator(".tool-title").all_inner_texts()

    def tool(self, title: str, turn: Locator | None = None) -> Locator:
        """A tool card, opened."""
        card = (turn or self.last).locator(".tool", has_text=title).first
        if card.get_attribute("open") is None:
            card.locator("summary").click()
        return card
