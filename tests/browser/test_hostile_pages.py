"""Every page of somebody whose every word is made to break it, on a phone and on a desk, and the admin's pages about them: nothing
runs, nothing is asked of another host, nothing is wider than the window, right-to-left words stand in their own direction and turn
none of ours around."""

import json
import re
from collections.abc import Callable
from urllib.parse import quote

from playwright.sync_api import Page, StorageState, ViewportSize

from tests.browser.audit import audit, widths
from tests.browser.conftest import PHONE
from tests.browser.server import Server
from tests.site.hostile import LINE, MARKUP, TOOL, WORDS

NARROW = PHONE | {"viewport": {"width": 390, "height": 780}, "device_scale_factor": 1}
FILL = """
import json
from importlib import import_module
from django.conf import settings
from apps.accounts.models import User
from tests.site.hostile import make_hostile
session = import_module(settings.SESSION_ENGINE).SessionStore({session!r})
print("IDS", json.dumps(make_hostile(User.objects.get(pk=session["_auth_user_id"]))))
"""
DESK: ViewportSize = {"width": 1440, "height": 900}
UNDIRECTED = """() => {
  const found = new Set();
  const isOwn = (element) => element.matches("[dir=auto], bdi, option, title, script, style, noscript, svg") || getComputedStyle(element).unicodeBidi === "plaintext";
  const isDirected = (element) => element !== null && (isOwn(element) || isDirected(element.parentElement));
  const look = (element, text) => {
    if (!/[\\u0590-\\u05ff]/.test(text)) return;
    if (!isDirected(element)) found.add(`in no direction of its own: ${element.cloneNode(false).outerHTML.slice(0, 90)}`);
    const before = /^(.*?)\\u202e/s.exec(text)?.[1].trim() ?? "";
    if (before && !element.matches("pre, textarea, noscript") && !/^('"|It waits:|#$)/.test(before)) found.add(`turns “${before.slice(0, 20)}” around: ${element.cloneNode(false).outerHTML.slice(0, 90)}`);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) look(walker.currentNode.parentElement, walker.currentNode.data);
  for (const field of document.querySelectorAll("input:not([type=hidden]), textarea")) look(field, field.value);
  return [...found];
}"""
"""Problems with right-to-left words: where nothing looks for their direction, and where they begin within words of ours, which
then turn around as well."""
LISTS = [
    "/",
    "/conversations/",
    "/calls/",
    "/memory/",
    "/memory/browse/",
    f"/memory/browse/?q={quote(MARKUP)}",
]
LISTS += [
    f"/memory/browse/?tag={quote(MARKUP[:40])}",
    "/memory/timeline/",
    "/memory/timeline/?by=learned",
]
LISTS += ["/memory/graph/", "/memory/quality/?show=contradictions", "/memory/review/", "/memory/tags/"]
LISTS += [
    "/memory/files/",
    "/capabilities/",
    "/builds/",
    "/settings/",
    "/settings/tokens/",
    "/settings/data/",
]
LISTS += [f"/capabilities/{TOOL}/{more}" for more in ("", "files/", "versions/", "runs/", "edit/")]
LISTS += [f"/builds/new/?capability={TOOL}", "/builds/{build}/"]
EACH = ["/memory/{memory}/", "/c/{conversation}/", "/c/{conversation}/about/"]
LONGEST = ["/memory/{memory}/?history=all", "/memory/{memory}/purge/", "/memory/graph/?note={memory}"]
LONGEST += ["/memory/files/{file}/purge/", "/c/{conversation}/log/"]
ADMIN = ["memory/memory", "memory/memoryfile", "chat/conversation", "chat/message", "chat/attachment"]
ADMIN += ["capabilities/capability", "capabilities/execution", "builder/build", "memory/import"]
FORMS = {"memory/memory": "memory", "memory/memoryfile": "file", "chat/conversation": "conversation"}


def addresses(ids: dict[str, str]) -> list[str]:
    rows = [{kind: ids[f"{kind}{place}"] for kind in FORMS.values()} for place in range(len(WORDS))]
    urls = [url.format(**ids) for url in LISTS] + [url.format(**row) for url in EACH for row in rows]
    return urls + [url.format(**rows[WORDS.index(LINE)]) for url in LONGEST]


def admin_addresses(ids: dict[str, str]) -> list[str]:
    lists = [f"/admin/{model}/" for model in ADMIN]
    places = (WORDS.index(MARKUP), WORDS.index(LINE))
    return lists + [
        f"/admin/{model}/{ids[f'{kind}{place}']}/change/"
        for model, kind in FORMS.items()
        for place in places
    ]


def problems(page: Page, server: Server, urls: list[str], *, ours: bool) -> list[str]:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    found = []
    for url in urls:
        answer = page.goto(server.url + url)
        if answer is None or answer.status != 200:
            found.append(f"{url}: {answer and answer.status}")
        found += [f"{url}: {wrong}" for wrong in (audit if ours else widths)(page)]
        if ours:
            found += [f"{url}: {wrong}" for wrong in page.evaluate(UNDIRECTED)]
            page.set_viewport_size(DESK)
            found += [f"{url} on a desk: {wrong}" for wrong in widths(page)]
            page.set_viewport_size(NARROW["viewport"])
        if page.evaluate("'hacked' in window"):
            found.append(f"{url}: a script ran")
    elsewhere = {url for url in asked if not re.match(rf"{re.escape(server.url)}/|data:|blob:", url)}
    return found + [f"asked of another host: {url}" for url in sorted(elsewhere)]


def test_hostile_words_are_harmless_on_every_page_and_in_the_admin(
    server: Server, someone: StorageState, owner: StorageState, open_page: Callable[..., Page]
) -> None:
    said = server.manage("shell", "-v", "0", "-c", FILL.format(session=someone["cookies"][0]["value"]))
    found = re.search(r"^IDS (.*)$", said, flags=re.MULTILINE)
    assert found, said
    ids: dict[str, str] = json.loads(found[1])
    page = open_page(server.url, state=someone, **NARROW)
    assert problems(page, server, addresses(ids), ours=True) == []
    page = open_page(server.url, state=owner, **NARROW)
    assert problems(page, server, admin_addresses(ids), ours=False) == []
