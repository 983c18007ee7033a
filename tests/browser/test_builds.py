"""Tools that Izzy builds itself, on the page and without a key: watched, used, and still there after a restart."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, StorageState, expect

from tests.browser.audit import audit
from tests.browser.chat import Chat
from tests.browser.conftest import PHONE, Watch
from tests.browser.server import Server
from tests.browser.test_conversation import RECONNECTING, rest
from tests.builder.scripts import DICE, SCHEMA, Cast, last_result, register, write
from tests.peers.anthropic_server import AnthropicServer, reply, tool

LONG = 120_000
"""Milliseconds for a whole build, or a run in a sandbox, on a busy machine."""
SHOTS = os.environ.get("SCREENSHOTS", "")


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server that a test may kill."""
    server = Server.prepared(tmp_path / "data")
    server.start()
    yield server
    server.stop()


def shot(page: Page, name: str) -> None:
    """A picture for people to look at, where SCREENSHOTS names a folder."""
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}.png", full_page=True)


def test_a_dice_roller_is_built_while_one_watches_and_rolls_after_a_restart(
    own_server: Server, open_page: Callable[..., Page], watch: Watch
) -> None:
    watch.allowed += RECONNECTING
    page = open_page(own_server.url, state=own_server.owner)
    chat = Chat(page)

    chat.say("build me a dice roller")
    card = page.locator(".build").first
    expect(card).to_be_visible()
    shot(page, "build-running")
    expect(card.locator(".build-title")).to_have_text("dice_roller is ready", timeout=LONG)
    for step in (
        "Planning",
        "Writing the dice roller",
        "Trying the code",
        "Checking it in a fresh sandbox",
    ):
        expect(card.locator(".build-steps li", has_text=step)).to_have_count(1)
    expect(page.get_by_text("dice_roller is ready.", exact=False).last).to_be_visible()
    use = card.get_by_role("button", name="Use it for what I asked")
    expect(use).to_be_visible()
    shot(page, "build-done")

    chat.say("roll 3d6")
    expect(page.locator(".answer").last).to_contain_text(
        re.compile(r"3d6: \d \+ \d \+ \d = \d+"), timeout=LONG
    )
    expect(page.locator(".tool").last).to_contain_text(re.compile("dice.roller", re.IGNORECASE))
    expect(use).to_have_count(0)
    shot(page, "rolled")

    own_server.kill()
    own_server.start()
    page.reload()
    card = page.locator(".build").first
    expect(card.locator(".build-title")).to_have_text("dice_roller is ready")
    expect(card.locator(".build-steps li").first).to_have_text("Asked for", use_inner_text=False)
    expect(page.locator(".build")).to_have_count(1)
    chat.say("roll 2d20+1")
    expect(page.locator(".answer").last).to_contain_text(re.compile(r"2d20\+1: "), timeout=LONG)

    page.goto(f"{own_server.url}/capabilities/dice_roller/")
    expect(page.get_by_role("heading", name="dice_roller")).to_be_visible()
    page.goto(f"{own_server.url}/builds/")
    shot(page, "builds")
    page.get_by_role("link", name="dice_roller").click()
    expect(page.get_by_text("Round 1")).to_be_visible()
    expect(page.locator(".build-call").first).to_contain_text("Told you how far it is")
    shot(page, "build-page")
    phone = open_page(own_server.url, state=page.context.storage_state(), **PHONE, color_scheme="dark")
    phone.goto(page.url)
    expect(phone.get_by_text("Round 1")).to_be_visible()
    shot(phone, "build-page-phone-dark")
    assert rest(page, "GET", "/capabilities/dice_roller/")["success_rate"] == 1.0


def test_the_page_of_a_build_goes_on_after_a_proxy_that_had_no_server(
    server: Server, someone: StorageState, open_page: Callable[..., Page], watch: Watch
) -> None:
    watch.allowed.append("status of 502")
    page = open_page(server.url, state=someone)
    Chat(page).say("build me a dice roller")
    asked: list[str] = []

    def events(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) == 1:
            route.fulfill(status=502)
        else:
            route.continue_()

    page.route("**/builds/*/events/", events)
    page.locator(".build").get_by_role("link", name="Details").click()
    expect(page.locator(".build-title")).to_have_text("dice_roller is ready", timeout=LONG)
    expect(page.get_by_text("Round 1")).to_be_visible()
    assert len(asked) != 1  # none where the build was quicker than the page


def test_a_secret_is_asked_for_on_the_card_and_entered_where_secrets_are(
    tmp_path: Path, open_page: Callable[..., Page], watch: Watch
) -> None:
    watch.allowed += RECONNECTING
    watch.allowed.append("409")
    request = {"name": "dice_roller", "description": "Rolls dice.", "input_schema": SCHEMA}
    handed_in = register(permissions={"secrets": ["DICE_KEY"]})
    keyed = write(DICE.replace("    rolls =", "    import os\n    os.environ['DICE_KEY']\n    rolls ="))
    cast = Cast(
        chat=[reply(tool("request_capability", request)), reply("On it.")], builder=[keyed, handed_in]
    )
    with AnthropicServer.in_thread(fallback=cast) as model:
        environment = {
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "key-for-tests",
            "IZZY_BUILD_ANSWER_SECONDS": "900",  # a browser on a busy machine answers late
        }
        server = Server.prepared(tmp_path / "data", environment)
        server.start()
        try:
            page = open_page(server.url, state=server.owner)
            Chat(page).say("I need to roll dice with my key")
            card = page.locator(".build").first
            missing = card.get_by_role("link", name="not stored yet: add it")
            expect(missing).to_be_visible()
            card.get_by_role("button", name="Allow").click()
            expect(page.get_by_text("DICE_KEY is not stored yet")).to_be_visible()
            with page.context.expect_page() as opened:
                missing.click()
            settings = opened.value
            expect(settings.get_by_label("Name")).to_have_value("DICE_KEY")
            settings.get_by_label("Value").fill("a-key-of-my-own")
            settings.get_by_role("button", name="Save").click()
            expect(settings.get_by_text("DICE_KEY is kept.")).to_be_visible()
            settings.close()
            expect(missing).to_have_count(0)
            card.get_by_role("button", name="Allow").click()
            expect(card.locator(".build-title")).to_have_text("dice_roller is ready", timeout=LONG)
            page.goto(f"{server.url}/capabilities/dice_roller/")
            expect(page.get_by_text("Approved")).to_be_visible()
            expect(page.locator(".cap-glance").get_by_text("pass")).to_be_visible()
        finally:
            server.stop()
    assert "a-key-of-my-own" not in str([call.json for call in model.requests])


def test_questions_hosts_and_cancelling_on_the_card(
    tmp_path: Path, open_page: Callable[..., Page], watch: Watch
) -> None:
    watch.allowed += RECONNECTING
    request = {"name": "dice_roller", "description": "Rolls dice.", "input_schema": SCHEMA}
    again = {"name": "coin_flipper", "description": "Flips a coin.", "input_schema": SCHEMA}
    held = write()
    held.hold_after = 0
    cast = Cast(
        chat=[reply(tool("request_capability", request)), reply("On it."), reply(tool("request_capability", again)), reply("Sure.")],
        builder=[
            reply(tool("ask_user", {"question": "How many sides at most?"})),
            reply(tool("request_network", {"hosts": ["dice.example.org"], "why": "Truly random numbers come from there."})),
            write(),
            register(),
            held,
            held,
        ],
    )  # fmt: skip
    with AnthropicServer.in_thread(fallback=cast) as model:
        environment = {
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "key-for-tests",
            "IZZY_BUILD_ANSWER_SECONDS": "900",  # a browser on a busy machine answers late
        }
        server = Server.prepared(tmp_path / "data", environment)
        server.start()
        try:
            page = open_page(server.url, state=server.owner)
            chat = Chat(page)
            chat.say("I need to roll dice")
            card = page.locator(".build").first
            field = card.get_by_label("How many sides at most?")
            expect(field).to_be_visible()
            shot(page, "question")
            elsewhere = open_page(f"{server.url}/memory/", state=page.context.storage_state())
            asked = elsewhere.locator("#asks")
            expect(asked).to_contain_text("dice_roller asks: How many sides at most?")
            expect(asked.locator(".ask-left")).to_have_text(re.compile(r"\d+ (s|min) left"))
            expect(elsewhere).to_have_title(re.compile("^dice_roller asks · "))
            expect(page).to_have_title(re.compile("^dice_roller asks · "))
            expect(elsewhere.locator("#asks-count")).to_have_text("1")
            expect(page.locator("#asks")).to_be_empty()
            expect(card.locator(".ask-left")).to_have_text(re.compile(r"\d+ (s|min) left"))
            assert audit(elsewhere) == []
            shot(elsewhere, "question-elsewhere")
            small = open_page(
                f"{server.url}/settings/",
                state=page.context.storage_state(),
                **PHONE,
                color_scheme="dark",
            )
            expect(small.locator("#asks")).to_contain_text("How many sides at most?")
            assert audit(small) == []
            shot(small, "question-elsewhere-phone-dark")
            beside = open_page(f"{server.url}/builds/", state=page.context.storage_state())
            beside.get_by_role("link", name="dice_roller").click()
            typed = beside.get_by_label("How many sides at most?")
            typed.fill("twenty, since my dice have no more")
            field.fill("a hundred")
            card.get_by_role("button", name="Answer").click()
            expect(card.get_by_text("dice.example.org", exact=True)).to_be_visible()
            expect(asked).to_contain_text("dice_roller asks: May it reach dice.example.org?")
            assert not page.evaluate("document.activeElement === document.body")
            kept = beside.locator(".ask", has=typed)
            expect(kept).to_contain_text(
                "Answered elsewhere meanwhile: “a hundred”. What you had typed was not sent."
            )
            expect(typed).to_have_value("twenty, since my dice have no more")
            assert audit(beside) == []
            shot(beside, "question-answered-elsewhere")
            kept.get_by_role("button", name="Put away").click()
            expect(kept).to_have_count(0)
            expect(beside.get_by_role("button", name="Allow")).to_be_focused()
            expect(card.get_by_text("Truly random numbers come from there.")).to_be_visible()
            shot(page, "network")
            late = open_page(page.url, state=page.context.storage_state(), **PHONE, color_scheme="dark")
            expect(late.locator(".build").get_by_role("button", name="Allow")).to_be_visible()
            expect(late.locator(".build-steps li", has_text="You: a hundred")).to_have_count(1)
            shot(late, "network-phone-dark")
            card.get_by_role("button", name="Allow").click()
            expect(asked).to_be_empty()
            expect(elsewhere).to_have_title(re.compile("^Memories"))
            expect(beside.get_by_text("Round 4")).to_be_visible(timeout=LONG)
            for each in (page, late, beside):
                expect(each.locator(".build .build-title").first).to_have_text(
                    "dice_roller is ready", timeout=LONG
                )
                expect(each.locator(".build-steps li", has_text="You allowed it.")).to_have_count(1)
                expect(each.locator(".build-steps li", has_text="Writing main.py")).to_have_count(1)
            chat.wait_for(page.locator(".turn").last, "done")

            chat.say("And to flip a coin")
            second = page.locator(".build").nth(1)
            expect(second.locator(".build-title")).to_have_text("Building coin_flipper")
            expect(second.locator(".build-now")).to_contain_text("Planning")
            second.get_by_role("button", name="Cancel").click()
            expect(second.locator(".build-title")).to_have_text("Building coin_flipper was cancelled")
            shot(page, "cancelled")
            second.get_by_role("button", name="Try again").click()
            expect(second.locator(".build-title")).to_have_text(re.compile("coin_flipper$"))
            expect(second.get_by_role("button", name="Cancel")).to_be_visible()
            expect(page.locator(".build")).to_have_count(2)
            expect(second.locator(".build-title")).to_be_focused()
            page.reload()
            expect(second.get_by_role("button", name="Cancel")).to_be_visible()
            expect(page.locator(".build")).to_have_count(2)
            second.get_by_role("button", name="Cancel").click()
            expect(second.locator(".build-title")).to_have_text("Building coin_flipper was cancelled")
            held.release.set()
        finally:
            held.release.set()
            server.stop()
    assert last_result(cast.builder_requests[1])["content"] == "The user answers: a hundred"
    assert "Allowed by the user" in last_result(cast.builder_requests[2])["content"]
