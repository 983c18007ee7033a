"""Every page that the site has, filled with a row of everything and the demo, and empty, 320 px wide (as at 400 % of 1280, WCAG
1.4.10) in the dark without motion, and on a wide screen in the light, there at 200 % too; then with all unfolded that a page keeps
folded. The addresses come from the URL resolver, so that a new page is looked at as well. axe looks at each page filled in the
dark and empty in the light, unfolded. The keys that every page has are tried on each that is filled."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, StorageState, ViewportSize, expect

from tests.browser.audit import audit, unfold, widths
from tests.browser.axe import violations, with_axe
from tests.browser.conftest import PHONE
from tests.browser.server import Server
from tests.site.belongings import SECRET, TOOL
from tests.site.routes import all_routes

NARROW: dict[str, Any] = PHONE | {
    "viewport": {"width": 320, "height": 640},
    "color_scheme": "dark",
    "reduced_motion": "reduce",
}
FULL: ViewportSize = {"width": 1280, "height": 800}
WIDE: dict[str, Any] = {"viewport": FULL, "color_scheme": "light"}
TWICE_AS_LARGE: ViewportSize = {"width": 640, "height": 400}
FILL = """
import json
from importlib import import_module
from django.conf import settings
from django.core.management import call_command
from apps.accounts.models import User
from tests.site.belongings import make_belongings
session = import_module(settings.SESSION_ENGINE).SessionStore({session!r})
user = User.objects.get(pk=session["_auth_user_id"])
hers = make_belongings(user)
call_command("demo", user.username)
print("IDS", json.dumps({{name: str(getattr(hers, name)) for name in hers.__dataclass_fields__ if name != "owner"}}))
"""
LOOKS: dict[str, list[str]] = {
    "memory/browse/": ["?q=shellfish", "?status=deleted", "?as_of=2031-05-01"],
    "memory/<str:memory_id>/": ["?edit", "?history=all"],
    "conversations/": ["?folder={folder}", "?folder=none", "?show=archived"],
    "memory/timeline/": ["?what=changed", "?day=2020-01-01"],
    "memory/graph/": ["?note={note}", "?q=shellfish"],
    "memory/quality/": ["?show=duplicates", "?show=contradictions", "?show=unused"],
    "memory/merge/": ["?notes={note}&notes={waiting_note}"],
    "usage/": ["?days=7"],
    "builds/": ["?state=failed", "?state=queued"],
    "builds/new/": [f"?capability={TOOL}", f"?capability={TOOL}&execution={{execution}}"],
    "capabilities/<str:capability>/versions/": ["?compare=2"],
    "settings/secrets/": [f"?name={SECRET}"],
}
"""Further states of a page, by its query."""
NOT_OURS = ("api/", "admin/")


@dataclass(frozen=True)
class Visitor:
    """Somebody's cookies, and the ids of what they own, none for somebody who has nothing."""

    server: Server
    state: StorageState
    ids: dict[str, str] = field(default_factory=dict)

    @cached_property
    def urls(self) -> list[str]:
        """The addresses of all pages that there are for them."""
        return pages(self.server, self.state, self.ids)


def parameters(ids: dict[str, str]) -> dict[str, str]:
    own = {"memory_id": ids["note"], "edge_id": ids["edge"], "conversation_id": ids["conversation"]}
    more = {"file_id": ids["file"], "receipt_id": ids["receipt"], "execution_id": ids["execution"]}
    rest = {
        "build_id": ids["build"],
        "capability": TOOL,
        "secret": SECRET,
        "signed": ids["signed_link"],
        "pk": ids["token"],
        "grant_id": ids["grant"],
        "call_id": ids["waiting_call"],
        "import_id": ids["imported"],
        "attachment_id": ids["attachment"],
        "folder_id": ids["folder"],
        "name": "model",
    }
    return own | more | rest


def pages(server: Server, state: StorageState, ids: dict[str, str]) -> list[str]:
    """The addresses that answer a signed-in user with a whole page; without `ids` those that need none."""
    cookies = {cookie["name"]: cookie["value"] for cookie in state["cookies"]}
    found = []
    with httpx.Client(base_url=server.url, cookies=cookies, timeout=30) as client:
        for route in all_routes():
            if route.path.startswith(NOT_OURS) or (route.parameters and not ids):
                continue
            base = route.url(parameters(ids) if ids else {})
            for look in ["", *LOOKS.get(route.path, [])]:
                url = base + look.format(**ids)
                answer = client.get(url)
                kind = answer.headers.get("content-type", "")
                if answer.status_code == 200 and kind.startswith("text/html") and "<html" in answer.text:
                    found.append(url)
                if not ids:
                    break
    return found


@pytest.fixture(scope="module")
def rich(server: Server) -> Visitor:
    """A user who owns a row of everything."""
    state = server.someone()
    said = server.manage("shell", "-v", "0", "-c", FILL.format(session=state["cookies"][0]["value"]))
    found = re.search(r"^IDS (.*)$", said, flags=re.MULTILINE)
    assert found, said
    return Visitor(server, state, json.loads(found[1]))


@pytest.fixture(scope="module")
def poor(server: Server) -> Visitor:
    """A user who has nothing yet."""
    return Visitor(server, server.someone())


WRITTEN_IN = (
    "main :is(input:is(:not([type]), [type=text], [type=search]), textarea):not([readonly], [disabled])"
)


WITHOUT_KEYS = ("/offline/",)
"""It stands in while nothing else can be reached."""


def keys_problems(page: Page) -> list[str]:
    """Returns what is wrong with `?` and Ctrl+K on the page: each opens its dialog, and a field takes the ? that is typed."""
    found = []
    page.evaluate("document.activeElement?.blur()")
    for key, name in (("?", "#shortcuts-dialog[open]"), ("Control+k", "#palette[open]")):
        page.keyboard.press(key)
        if page.locator(name).count() != 1:
            found.append(f"{key} opens no {name}")
            continue
        if key == "Control+k":
            expect(page.locator("#palette [role=option]").first).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator(name)).to_have_count(0)
        # Where nothing had the focus before, it leaves the box in the closed dialog when the page is next painted.
        page.wait_for_function("() => !document.activeElement?.closest('dialog')")
    field = page.locator(WRITTEN_IN).locator("visible=true").first
    if field.count():
        field.focus()
        field.press("End")
        page.keyboard.press("?")
        if "?" not in field.input_value() or page.locator("dialog[open]").count():
            found.append("a ? that is typed is taken for the key")
        page.keyboard.press("Backspace")
    return found


def problems(
    page: Page, server: Server, urls: list[str], *, axe: bool = True, keys: bool = False
) -> list[str]:
    if axe:
        with_axe(page.context)
    found = []
    for url in urls:
        page.goto(server.url + url)
        found += [f"{url}: {wrong}" for wrong in audit(page)]
        if unfold(page):
            found += [f"{url} unfolded: {wrong}" for wrong in audit(page)]
        found += [f"{url}: {wrong}" for wrong in violations(page, contrast=True)] if axe else []
        if page.viewport_size == FULL:
            page.set_viewport_size(TWICE_AS_LARGE)
            found += [f"{url} at 200 %: {wrong}" for wrong in widths(page)]
            page.set_viewport_size(FULL)
        if keys and url not in WITHOUT_KEYS:
            found += [f"{url}: {wrong}" for wrong in keys_problems(page)]
    return found


@pytest.mark.parametrize("look", [NARROW, WIDE], ids=["narrow-dark", "wide-light"])
def test_every_page_with_something_on_it(
    look: dict[str, Any],
    server: Server,
    rich: Visitor,
    open_page: Callable[..., Page],
) -> None:
    for wanted in (
        "/purge/",
        "/log/",
        "/versions/",
        "/runs/",
        "/memory/purges/0",
        "/builds/0",
        "/c/0",
        "/usage/",
    ):
        assert any(wanted in url for url in rich.urls), f"{wanted} is not among {rich.urls}"
    page = open_page(server.url, state=rich.state, **look)
    assert problems(page, server, rich.urls, axe=look is NARROW, keys=look is WIDE) == []


@pytest.mark.parametrize("look", [NARROW, WIDE], ids=["narrow-dark", "wide-light"])
def test_every_page_of_somebody_who_has_nothing_yet(
    look: dict[str, Any], server: Server, poor: Visitor, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=poor.state, **look)
    assert problems(page, server, poor.urls, axe=look is WIDE) == []


def test_the_pages_of_the_superuser(
    server: Server, owner: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(server.url, state=owner, **NARROW)
    own = ["/settings/", "/settings/users/", "/settings/instance/"]
    assert problems(page, server, own, keys=True) == []


def test_keys_are_on_pages_without_the_sidebar_too(
    server: Server, rich: Visitor, open_page: Callable[..., Page], watch: Any
) -> None:
    """The question before a link is among the pages above; this page lists the keys that it has, and nothing else."""
    watch.allowed.append("404")
    page = open_page(f"{server.url}/no-such-page/", state=rich.state, **WIDE)
    assert keys_problems(page) == []
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keys.locator("dt").locator("visible=true")).to_have_text(
        ["Find or do something", "Show these shortcuts"]
    )
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    page.keyboard.press("Control+k")
    page.get_by_role("option", name="Switch theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")

    page.goto(f"{server.url}/api/docs/")
    expect(page.locator(".opblock").first).to_be_visible()
    assert keys_problems(page) == []
    page.get_by_role("button", name="Authorize").click()
    token = page.get_by_role("textbox").first
    token.press("?")
    expect(token).to_have_value("?")
    expect(page.locator("dialog[open]")).to_have_count(0)


def test_strangers_get_no_palette(server: Server, open_page: Callable[..., Page]) -> None:
    page = open_page(f"{server.url}/sign-in/", **WIDE)
    page.keyboard.press("Control+k")
    expect(page.locator("dialog")).to_have_count(0)


ADMIN = ("", "memory/memory/", "capabilities/capability/", "agent/toolcall/")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_admin(
    theme: str, server: Server, rich: Visitor, owner: StorageState, open_page: Callable[..., Page]
) -> None:
    """Its first page, some lists and a form; the frame around them is unfold's, whose best practices are not ours."""
    page = open_page(
        server.url + "/admin/memory/memory/", state=owner, **NARROW | {"color_scheme": theme}
    )
    with_axe(page.context)
    first = page.locator("#result_list tbody a[href*='/change/']").first.get_attribute("href")
    found = []
    for url in [*(f"/admin/{model}" for model in ADMIN), str(first)]:
        page.goto(server.url + url)
        found += [f"{url}: {wrong}" for wrong in widths(page)]
        found += [f"{url}: {wrong}" for wrong in violations(page, contrast=True, best_practices=False)]
    assert found == []


BAD = """<!doctype html><title> </title><main class="main-scroll" style="overflow: auto"><h2>No first</h2>
<p style="color: #999; background: #fff">Hard to read</p><button></button><input name="q"><div id="a"></div><div id="a"></div>
<details><summary>More</summary><p style="color: #aaa; background: #fff">Folded</p></details><label for="gone">x</label><a href="#" aria-label="Other">Words</a><div style="width: 3000px">wide</div></main>"""


def test_the_look_sees_what_is_wrong(browser: Browser) -> None:
    """Without this, a page could pass because nothing is looked at."""
    page = browser.new_page()
    page.set_content(BAD)
    folded = "\n".join(audit(page))
    assert "Folded" not in folded
    assert unfold(page)
    found = "\n".join(audit(page))
    page.evaluate(Axe().axe_script)
    found += "\n".join(violations(page))
    page.close()
    for wrong in (
        "no title", "no language", "0 first headings", "no name: <button>", "no label: <input>  q", "2 times #a",
        "for leads nowhere: #gone", "contrast 2.85: <p> Hard to read", "<p> Folded", "px too wide",
        "label-content-name-mismatch (serious): <a", "html-has-lang",
    ):  # fmt: skip
        assert wrong in found, f"{wrong} is not in\n{found}"


@pytest.mark.parametrize("path", ["/sign-in/", "/no-such-page/"])
def test_the_pages_for_everybody(
    path: str, server: Server, open_page: Callable[..., Page], watch: Any
) -> None:
    watch.allowed.append("404")
    page = open_page(server.url, **NARROW)
    assert problems(page, server, [path]) == []
