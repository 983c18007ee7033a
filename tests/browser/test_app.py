"""Izzy as an app of the browser: the page for when the server cannot be reached, and notifications of what is done."""

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.server import Server
from tests.waiting import eventually

DONE = """
from datetime import timedelta
from django.utils import timezone
from apps.chat.models import Conversation, Turn
from apps.builder.models import Build
from apps.capabilities.catalog.versions import capability_begin
now = timezone.now()
talk = Conversation.objects.create(user=user, title="The long way to Porto", channel="chat")
Turn.objects.create(user=user, conversation=talk, state="done", started_at=now - timedelta(seconds=60), ended_at=now)
begun = capability_begin(user_id=user.pk, name="tide_table", description="Tides", input_schema={"type": "object"})
Build.objects.create(user=user, capability=begun, name="tide_table", description="Tides", input_schema={}, state="failed", ended_at=now)
"""
UNSEEN = """
Object.defineProperty(document, "hidden", { get: () => window.unseen === true });
Object.defineProperty(document, "visibilityState", { get: () => (window.unseen ? "hidden" : "visible") });
"""
"""A headless browser shows every tab; `window.unseen` says that nobody looks at this one."""
AS_ON_A_PHONE = """
window.Notification = new Proxy(window.Notification, { construct() { throw new TypeError("Illegal constructor"); } });
"""
"""Where the service worker alone shows notifications."""
FAILS_ONCE = """() => {
  const show = ServiceWorkerRegistration.prototype.showNotification;
  let failed = false;
  ServiceWorkerRegistration.prototype.showNotification = function (...all) {
    if (failed) return show.apply(this, all);
    failed = true;
    return Promise.reject(new TypeError("no active registration"));
  };
}"""
SHOWN = """async () => {
  const worker = await navigator.serviceWorker.ready;
  return (await worker.getNotifications()).map(({ title, body, data }) => [title, body, data.url]).sort();
}"""


def test_what_is_done_while_nobody_looks_is_told_by_a_notification(
    server: Server, someone: StorageState, open_page: Callable[..., Page], whole_browser: Browser
) -> None:
    options = {"permissions": ["notifications"], "service_workers": "allow"}
    page = open_page("about:blank", state=someone, within=whole_browser, **options)
    page.add_init_script(UNSEEN + AS_ON_A_PHONE)
    page.goto(f"{server.url}/settings/")
    wanted = page.get_by_label("Tell me when a build or a long answer is done")
    expect(wanted).not_to_be_checked()
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.evaluate("window.unseen = true")
    server.shell(someone, DONE)
    with page.expect_response(re.compile(r"/news/$")):
        page.evaluate("document.dispatchEvent(new Event('izzy:answered'))")
    assert page.evaluate(SHOWN) == []  # nobody has asked for them

    wanted.check()
    expect(page.locator("#notify-refused")).to_be_hidden()
    page.evaluate(FAILS_ONCE)

    def looks_until_shown(number: int) -> None:
        with page.expect_response("**/news/?done"):
            page.evaluate("document.dispatchEvent(new Event('izzy:answered'))")
        eventually(lambda: len(page.evaluate(SHOWN)) >= number)

    looks_until_shown(1)
    looks_until_shown(2)  # the one that could not be shown at first
    answer, build = sorted(page.evaluate(SHOWN), key=lambda each: each[0], reverse=True)
    assert answer[:2] == ["Izzy has answered", "The long way to Porto"]
    assert build[:2] == ["A build is done", "tide table: failed"]
    page.goto(server.url + answer[2])
    expect(page.locator("#chat-title")).to_have_text("The long way to Porto")
    page.goto(server.url + build[2])
    expect(page.get_by_role("heading", name="tide_table", exact=True)).to_be_visible()


def test_the_offline_page_stands_in_until_the_server_is_back(
    server: Server, someone: StorageState, open_page: Callable[..., Page], watch: Any
) -> None:
    watch.allowed += ["ERR_INTERNET_DISCONNECTED", "ERR_FAILED"]
    page = open_page(f"{server.url}/settings/", state=someone, service_workers="allow")
    notices = page.get_by_label("Tell me when a build or a long answer is done")
    expect(notices).not_to_be_checked()
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.context.set_offline(True)
    page.goto(f"{server.url}/memory/files/")
    expect(page.get_by_role("heading", name="You are offline")).to_be_visible()
    page.context.set_offline(False)
    expect(page.get_by_role("heading", name="Memories", level=1)).to_be_visible()


def test_without_these_parts_of_the_browser_nothing_breaks(
    server: Server, someone: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{server.url}/offline/", state=someone)
    page.context.add_init_script(
        "delete Navigator.prototype.serviceWorker; delete window.Notification; delete window.speechSynthesis;"
        "delete window.SpeechRecognition; delete window.webkitSpeechRecognition;"
    )
    page.goto(f"{server.url}/settings/")
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    expect(page.locator("[data-notify]")).to_be_hidden()
    page.wait_for_load_state()
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-list [aria-selected=true]")).to_be_visible()


def test_a_form_that_could_not_be_sent_is_sent_again_by_its_writer_alone(
    server: Server, someone: StorageState, open_page: Callable[..., Page], watch: Any
) -> None:
    watch.allowed += ["ERR_INTERNET_DISCONNECTED", "ERR_FAILED"]
    page = open_page(f"{server.url}/settings/", state=someone, service_workers="allow")
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.reload()  # from now on the worker answers
    page.get_by_label("What should Izzy call you?").fill("Al")
    page.context.set_offline(True)
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("chrome-error://**")  # the browser's own page, which asks before it does
    page.context.set_offline(False)
    page.reload()
    expect(page.get_by_text("Your preferences are saved.")).to_be_visible()
