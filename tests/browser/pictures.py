"""The pictures of the README, from the demo: `python -m tests.browser.pictures` writes docs/images."""

import re
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import CHROMIUM
from tests.browser.server import ROOT, Server
from tests.browser.walk import DEMO

OUT = ROOT / "docs" / "images"
MOST_BYTES = 250_000
MAKE = f"""{DEMO}
summary_keep(user.pk)
print("LET IN", made["demo"])
"""
NO_MODEL = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
"""Nothing is asked of it; with an address the pages do not speak of offline mode."""


def chat(page: Page) -> None:
    page.get_by_role("link", name="A dinner for six").first.click()
    page.get_by_text("memories used").first.click()
    page.set_viewport_size({"width": 1280, "height": 980})  # the whole of it
    latest = page.get_by_role("button", name="Jump to latest")
    if latest.is_visible():
        latest.click()
    latest.wait_for(state="hidden")
    page.mouse.move(0, 0)


def memories(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(page.url.split("/c/")[0].rstrip("/") + "/memory/")
    page.get_by_role("heading", name="Growth").wait_for()


def graph(page: Page) -> None:
    page.get_by_role("navigation", name="Memory").get_by_role("link", name="Graph").click()
    page.locator(".graph-dot").first.wait_for()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="izzy-pictures-") as folder, sync_playwright() as playwright:
        server = Server(Path(folder), NO_MODEL)
        made = re.search(r"^LET IN (\S+)$", server.manage("shell", "-v", "0", "-c", MAKE), re.MULTILINE)
        assert made is not None
        server.start()
        try:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page(
                viewport={"width": 1280, "height": 800},
                device_scale_factor=1.25,
                color_scheme="light",
                storage_state=server._signed_in(made[1]),
            )
            page.goto(server.url)
            for view in (chat, memories, graph):
                view(page)
                path = OUT / f"{view.__name__}.png"
                page.screenshot(path=path, animations="disabled")
                assert path.stat().st_size <= MOST_BYTES, f"{path.name} has {path.stat().st_size} bytes"
            browser.close()
        finally:
            server.stop()


if __name__ == "__main__":
    main()
