"""Pictures of every page, to look at: `python -m tests.browser.walk FOLDER`.

Three people own nothing, the demo and 10,000 notes; each page is taken as tall as it is, 1440 and 390 px wide, light and dark. What
`audit.py` finds is printed. The server's data stays in FOLDER/.data, so that a second walk begins at once.
"""

import argparse
import json
import re
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, StorageState, sync_playwright

from tests.browser.audit import audit
from tests.browser.conftest import CHROMIUM, PHONE, Watch
from tests.browser.server import Server
from tests.peers.prepared import LET_IN

LOOKS: dict[str, dict[str, Any]] = {
    "wide": {"viewport": {"width": 1440, "height": 900}},
    "phone": PHONE | {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 1},
}
TALLEST = 4_000
"""Pixels: of a longer page the beginning is enough to look at."""
DEMO = f"""{LET_IN}
from django.core.management import call_command
from apps.accounts.models import Preferences, User
from apps.memory.summary.keeping import summary_keep
call_command("migrate", verbosity=0)
user = User.objects.create_user("robin")
Preferences.objects.create(user=user)
call_command("demo", "robin")
made = {{"demo": let_in(user)}}
"""
"""For `manage.py shell -c`: `robin` has the demo, and `made["demo"]` is the key of a session of theirs."""
MAKE = f"""{DEMO}
import json
from benchmarks.pages import fill
User.objects.filter(pk=user.pk).update(is_staff=True, is_superuser=True)
for name in ("empty", "many"):
    user = User.objects.create_user(name)
    Preferences.objects.create(user=user)
    made[name] = let_in(user)
fill(user, 10_000)
summary_keep(user.pk)
print("MADE", json.dumps(made))
"""
EVERYBODY = """/ /?new /conversations/ /conversations/?q=garden /conversations/?show=archived /calls/ /usage/
/memory/ /memory/browse/ /memory/browse/?q=garden /memory/browse/?status=deleted /memory/tags/ /memory/timeline/
/memory/timeline/?by=learned /memory/graph/ /memory/quality/ /memory/review/ /memory/files/ /memory/purges/
/capabilities/ /capabilities/new/ /capabilities/install/ /builds/ /builds/new/ /settings/ /settings/tokens/ /settings/secrets/
/settings/data/ /settings/password/ /settings/delete/ /no-such-page/"""
OWNER = ("/settings/users/", "/settings/instance/", "/api/docs/", "/admin/")
NOBODY = ["/sign-in/", "/offline/", "/setup/"]
LEADS = {
    "/conversations/": ("a[href^='/c/']:not([href*='#'])", ["", "about/", "log/"]),
    "/memory/browse/": ("main a[href^='/memory/0']", ["", "?edit", "?history=all", "purge/"]),
    "/memory/files/": ("main a[href*='/memory/files/0']", [""]),
    "/capabilities/": (
        "main a[href^='/capabilities/']:not([href='/capabilities/'], [href*='/new/'], [href*='/install/'], [href*='?'])",
        ["", "files/", "versions/", "runs/", "edit/"],
    ),
    "/builds/": ("main a[href^='/builds/0']", ["", "transcript/"]),
}
"""Where a list stands, which of its links leads to one row, and what there is below that row's address."""


def people_of(server: Server, data: Path) -> dict[str, StorageState]:
    kept = data / "people.json"
    if not kept.exists():
        said = server.manage("shell", "-v", "0", "-c", MAKE)
        found = re.search(r"^MADE (.*)$", said, flags=re.MULTILINE)
        assert found, said
        kept.write_text(found[1])
    return {name: server._signed_in(key) for name, key in json.loads(kept.read_text()).items()}


def addresses(page: Page, server: Server, person: str) -> list[str]:
    """Addresses that this person can look at, one of each kind of row included."""
    if person == "nobody":
        return NOBODY
    found = EVERYBODY.split()
    for listed, (link, below) in LEADS.items():
        page.goto(server.url + listed)
        rows = page.locator(link)
        if rows.count():
            base = str(rows.first.get_attribute("href")).partition("?")[0]
            found += [base + more for more in below]
    if person == "demo":
        found += OWNER
        page.goto(server.url + "/admin/")
        models = {str(each.get_attribute("href")) for each in page.locator("a[href^='/admin/']").all()}
        for address in sorted(model for model in models if model.count("/") == 4):
            found.append(address)
            page.goto(server.url + address)
            rows = page.locator("#result_list tbody th a, #result_list tbody td a[href^='/admin/']")
            if rows.count():
                found.append(str(rows.first.get_attribute("href")))
    return list(dict.fromkeys(found))


def picture(page: Page, name: Path, width: int, height: int) -> None:
    """The whole page: the window is made as tall as what scrolls in it."""
    tall = page.evaluate("""() => Math.max(document.documentElement.scrollHeight, ...[...document.querySelectorAll(
      ".main-scroll, .chat-scroll, #page, #main")].map((box) => innerHeight + box.scrollHeight - box.clientHeight))""")
    if tall > height:
        page.set_viewport_size({"width": width, "height": min(tall, TALLEST)})
    page.wait_for_timeout(150)
    page.screenshot(path=name, animations="disabled")
    page.set_viewport_size({"width": width, "height": height})


def walk(
    browser: Browser, server: Server, state: StorageState | None, asked: argparse.Namespace, person: str
) -> None:
    known: list[str] = []
    for look in asked.looks:
        shape, _, theme = look.partition("-")
        options = LOOKS[shape] | {"color_scheme": theme, "service_workers": "block"}
        page = browser.new_context(storage_state=state, **options).new_page()
        watch = Watch()
        watch.allowed.append("/no-such-page/")
        watch.follow(page)
        known = known or addresses(page, server, person)
        for address in known:
            if asked.only and not re.search(asked.only, address):
                continue
            watch.problems.clear()
            page.goto(server.url + address)
            name = re.sub(r"[0-9a-f-]{36}", "ID", address).strip("/").replace("/", "_") or "home"
            picture(page, asked.folder / f"{name}.{person}.{look}.png", **options["viewport"])
            seen = audit(page)
            if address.startswith(("/admin/", "/api/")):
                seen = [wrong for wrong in seen if "px wider" in wrong]
            for wrong in [*seen, *watch.left()]:
                print(f"{person} {look} {address}: {wrong}", flush=True)
        page.context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--people", nargs="+", default=["nobody", "empty", "demo", "many"])
    parser.add_argument(
        "--looks", nargs="+", default=["wide-light", "wide-dark", "phone-light", "phone-dark"]
    )
    parser.add_argument("--only", metavar="PATTERN", help="of the addresses")
    asked = parser.parse_args()
    data = asked.folder / ".data"
    data.mkdir(parents=True, exist_ok=True)
    server = Server(data)
    states = people_of(server, data)
    server.start()
    began = time.monotonic()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            for person in asked.people:
                walk(browser, server, states.get(person), asked, person)
            browser.close()
    finally:
        server.stop()
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
