"""The pages beside the chat while something is under way on them: dialogs, menus, what is edited in place, forms that say what is wrong,
what is ticked, what nothing was found for, toasts. axe and `audit.py` look at each, in the light, and at its contrast in the dark
too."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, StorageState, expect

from tests.browser.audit import settle, unfold
from tests.browser.conftest import PHONE, Watch
from tests.browser.server import Server
from tests.browser.test_every_page import Visitor, rich  # noqa: F401  a fixture
from tests.browser.test_states import Looker, looker  # noqa: F401  a fixture
from tests.site.belongings import TOOL
from tests.waiting import eventually


@pytest.fixture
def wanderer(
    server: Server,
    rich: Visitor,  # noqa: F811
    open_page: Callable[..., Page],
    looker: Callable[[Page], Looker],  # noqa: F811
    watch: Watch,
) -> "Wanderer":
    watch.allowed.append("status of 4")  # what a form refuses
    page = open_page(f"{server.url}/usage/", state=rich.state)
    return Wanderer(server.url, page, looker(page))


class Wanderer:
    """Goes to pages, does something there and looks."""

    def __init__(self, url: str, page: Page, eyes: Looker) -> None:
        self.url, self.page, self.eyes = url, page, eyes
        self.main = page.get_by_role("main")
        self.dialog = page.locator("dialog[open]")

    def go(self, path: str) -> None:
        self.page.goto(self.url + path)
        self.page.wait_for_load_state()

    def press(self, name: str, within: Locator | None = None, role: Any = "button") -> None:
        (within or self.main).get_by_role(role, name=name).first.click()

    def look(self, state: str, shown: Locator | str) -> None:
        """Once what is to be looked at is shown."""
        wanted = self.page.locator(shown) if isinstance(shown, str) else shown
        expect(wanted.first).to_be_visible()
        settle(self.page)
        self.eyes.look(f"{self.page.url.removeprefix(self.url)}, {state}")

    def refused(self, path: str, button: str, /, **given: str) -> None:
        """Sends a form of the page, and looks at what it says is wrong."""
        self.go(path)
        unfold(self.page)
        for name, value in given.items():
            field = self.main.locator(f"[name={name}]").first
            field.evaluate(
                "(field, value) => { field.value = value; }", value
            )  # longer than it can be typed
        self.press(button)
        self.look("refused", "main :is([aria-invalid=true], .notice-danger)")

    def asked(self, state: str) -> None:
        """Looks at the dialog that is open, and leaves it."""
        self.look(state, self.dialog)
        self.page.keyboard.press("Escape")
        expect(self.dialog).to_have_count(0)


def test_states_of_the_list_of_memories(wanderer: Wanderer) -> None:
    page, main = wanderer.page, wanderer.main
    wanderer.go("/memory/browse/")
    main.locator(".note-new > summary").click()
    wanderer.press("Remember this")
    wanderer.look("nothing to remember", "#note-new [aria-invalid=true]")
    note = main.locator(".note[data-note]").first
    wanderer.press("Edit this memory", note)
    field = note.locator("textarea").first
    field.fill("")
    wanderer.press("Save", note)
    wanderer.look("an edit is refused", note.locator("[aria-invalid=true]"))
    field.press("Escape")
    wanderer.press("More for this memory", note)
    wanderer.look("menu", ".menu:popover-open")
    wanderer.press("History", page.locator(".menu:popover-open"))
    wanderer.look("history", note.get_by_role("button", name="Close"))
    for each in main.locator(".note-select input").all()[:2]:
        each.check()
    wanderer.look("ticked", ".note-bulk")
    wanderer.go("/memory/browse/")
    wanderer.press("More for this memory", note)
    wanderer.press("Delete", page.locator(".menu:popover-open"))
    wanderer.look("deleted", main.get_by_role("button", name="Undo"))
    wanderer.press("Undo")
    for asked in ("q=xyzzyplugh", "learned_from=2031-01-02&learned_to=2031-01-01", "kind=nonsense"):
        wanderer.go(f"/memory/browse/?{asked}")
        wanderer.look("filters", "main")


def test_states_of_other_pages_of_the_memory(wanderer: Wanderer, rich: Visitor) -> None:  # noqa: F811
    page, main = wanderer.page, wanderer.main
    wanderer.go(f"/memory/{rich.ids['note']}/")
    main.locator(".one-valid > summary").click()
    for day, field in enumerate(main.locator(".one-valid input:not([type=hidden])").all()):
        field.fill(f"2031-01-0{2 - day}T00:00")
    wanderer.press("Save", main.locator(".one-valid"))
    wanderer.look("wrong days", ".one-valid[open] .error")
    wanderer.go(f"/memory/{rich.ids['note']}/?edit")
    main.locator("textarea").first.fill("")
    wanderer.press("Save")
    wanderer.look("an edit is refused", "main [aria-invalid=true]")
    wanderer.go(f"/memory/{rich.ids['note']}/")
    wanderer.press("Archive")
    wanderer.look("archived", main.get_by_role("button", name="Undo"))
    wanderer.press("Undo")

    wanderer.go("/memory/review/")
    wanderer.press("Edit first", role="link")
    wanderer.look("edited first", "main .note-form")
    page.keyboard.press("Escape")
    expect(main.locator(".note-form")).to_have_count(0)
    main.locator("[name=notes]").first.check()
    wanderer.look("ticked", "main [name=notes]:checked")
    wanderer.press("Reject", main.locator(".review-actions").first)
    wanderer.look("rejected", main.get_by_role("button", name="Undo"))
    wanderer.press("Undo")

    wanderer.go("/memory/graph/")
    main.locator(".graph-dot").first.focus()
    wanderer.look("a memory has the focus", ".graph-now:not(:empty)")
    for nothing in ("graph/?q=xyzzyplugh", "tags/?q=xyzzyplugh", "timeline/?year=1831", "purges/"):
        wanderer.go(f"/memory/{nothing}")
        wanderer.look("nothing", "main")


def test_states_of_the_files(wanderer: Wanderer) -> None:
    main = wanderer.main
    wanderer.refused("/memory/files/", "Save the file", **{"new-path": "/elsewhere"})
    wanderer.go("/memory/files/")
    wanderer.press("Edit")
    wanderer.look("edited", "main li .file-editor")
    wanderer.press("History")
    wanderer.look("history", "main li .note-history-title")
    wanderer.go("/memory/files/")
    wanderer.press("Delete")
    wanderer.look("deleted", main.get_by_role("button", name="Undo"))
    wanderer.press("Undo")


def test_states_of_the_page_of_conversations(wanderer: Wanderer, rich: Visitor) -> None:  # noqa: F811
    page, main, dialog = wanderer.page, wanderer.main, wanderer.dialog
    wanderer.go("/conversations/")
    row = page.locator("#conversation-page .conversation").first
    menu = page.locator(".menu:popover-open")

    def open_menu() -> None:
        wanderer.press("Options for", row)
        expect(menu).to_be_visible()

    open_menu()
    wanderer.look("menu", menu)
    wanderer.press("Rename", menu)
    wanderer.look("renamed", row.get_by_role("textbox"))
    page.keyboard.press("Escape")
    for name in ("Move to folder", "Delete"):
        open_menu()
        wanderer.press(name, menu, role="link")
        wanderer.asked(name)
    wanderer.press("New folder", role="link")
    dialog.get_by_label("Name").fill(" ")
    dialog.get_by_role("button", name="Make the folder").click()
    wanderer.look("a folder without a name", dialog.locator("#ask-problem:not(:empty)"))
    page.keyboard.press("Escape")
    row.get_by_role("checkbox").check()
    wanderer.look("ticked", ".conversation-bulk")
    wanderer.press("Delete…")
    wanderer.asked("many deleted")
    row.get_by_role("checkbox").uncheck()
    open_menu()
    wanderer.press("Archive", menu)
    wanderer.look("toast", ".toast")
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator(".toast")).to_have_count(0)
    wanderer.go(f"/conversations/?folder={rich.ids['folder']}")
    for name in ("Rename", "Delete"):
        wanderer.press(name, role="link")
        wanderer.asked(f"{name} the folder")
    wanderer.go("/conversations/?q=xyzzyplugh")
    wanderer.look("nothing found", "#conversation-page .empty")
    page.keyboard.press("Control+k")
    page.keyboard.type("xyzzyplugh")
    wanderer.look("nothing in the palette", "#palette-none:not([hidden])")
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)

    def keys_open() -> bool:  # once in some hundred times a key right after a dialog has closed is lost
        page.keyboard.press("?")
        return dialog.count() > 0

    eventually(keys_open, lambda: "no list of keys")
    wanderer.asked("keys")
    page.locator("#conversations .conversation").first.hover()
    page.locator("#conversation-search").fill("xyzzyplugh")
    wanderer.look("nothing found beside", "#conversations .sidebar-empty")
    expect(main).to_be_visible()


def test_states_of_the_settings_and_capabilities(wanderer: Wanderer) -> None:
    page, main = wanderer.page, wanderer.main
    wanderer.refused("/settings/", "Save", instructions="x" * 20_000)
    wanderer.refused("/settings/tokens/", "Make the token")
    wanderer.refused("/settings/password/", "Change the password", current="wrong")
    wanderer.refused("/settings/secrets/", "Save", name="not a name")
    wanderer.refused("/builds/new/", "Build", description="")
    wanderer.refused("/capabilities/install/", "Install")
    wanderer.refused("/capabilities/new/", "Make it", name="Not a name")
    for path, button in (
        ("/settings/tokens/", "Revoke"),
        ("/settings/secrets/", "Delete"),
        ("/settings/delete/", "Delete"),
    ):
        wanderer.go(path)
        if "delete" in path:
            main.locator("[type=password]").fill("wrong")
        wanderer.press(button)
        wanderer.asked("asked")
    wanderer.go("/settings/tokens/")
    main.get_by_label("Name").first.fill("laptop")
    wanderer.press("Make the token")
    wanderer.look("made", "#secret")
    wanderer.go("/settings/data/")
    main.get_by_label("Or paste it").fill('{"wrong": ')
    wanderer.press("Bring it in")
    wanderer.look("brought in", ".transfer .badge, main .error")

    wanderer.go(f"/capabilities/{TOOL}/")
    page.locator("[popovertarget=cap-menu]").click()
    wanderer.look("menu", ".menu:popover-open")
    page.keyboard.press("Escape")
    wanderer.go("/capabilities/wind_chill/")
    wanderer.press("Run")
    wanderer.look("run", "#run-result > *, main [aria-invalid=true]")


def test_states_of_the_owner_and_of_strangers(
    server: Server,
    owner: StorageState,
    open_page: Callable[..., Page],
    looker: Callable[[Page], Looker],  # noqa: F811
    watch: Watch,
) -> None:
    watch.allowed.append("status of 4")
    page = open_page(f"{server.url}/settings/users/", state=owner)
    wanderer = Wanderer(server.url, page, looker(page))
    wanderer.refused("/settings/users/", "Add", username="alice")
    wanderer.refused("/settings/instance/", "Save", anthropic_base_url="not an address")
    page.context.clear_cookies()
    wanderer.go("/sign-in/")
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").first.fill("wrong")
    wanderer.press("Sign in")
    wanderer.look("refused", "main :is(.error, .notice-danger)")


def test_the_drawer_and_dialogs_on_a_phone(
    server: Server,
    rich: Visitor,  # noqa: F811
    open_page: Callable[..., Page],
    looker: Callable[[Page], Looker],  # noqa: F811
) -> None:
    page = open_page(f"{server.url}/conversations/", state=rich.state, **PHONE)
    wanderer = Wanderer(server.url, page, looker(page))
    page.get_by_role("button", name="Open menu").tap()
    wanderer.look("drawer", page.get_by_role("button", name="Close menu").first)
    page.keyboard.press("Escape")
    page.locator("#conversation-page .conversation-tick").first.tap()
    wanderer.look("ticked", ".conversation-bulk")
    wanderer.press("Delete…")
    wanderer.asked("many deleted")
    page.locator(".topbar [data-palette]").tap()
    wanderer.look("palette", "#palette [role=option]")
    page.keyboard.press("Escape")
    wanderer.go("/memory/browse/")
    page.locator(".note-select input").first.check()
    wanderer.look("ticked", ".note-bulk")
