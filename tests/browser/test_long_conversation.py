"""A conversation of 2,000 messages beside one of 20: as much on the page, and earlier messages as one scrolls up to them."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, StorageState, expect

from tests.browser.chat import Chat
from tests.browser.server import Server

FILL = """
import json
from apps.core.text import canonical_json
from apps.chat.models import Conversation, Message, Role, Turn, TurnStatus

def talk(count):
    place = Conversation.objects.create(user=user, title=f"{count} messages", channel="chat", last_position=count)
    turns = [Turn(user=user, conversation=place, position=at, state=TurnStatus.DONE) for at in range(1, count, 2)]
    Turn.objects.bulk_create(turns)
    rows = []
    for turn in turns:
        for offset, role in enumerate((Role.USER, Role.ASSISTANT)):
            text = f"Question {turn.position // 2 + 1}" if offset == 0 else "An answer of **some** words.\\\\n\\\\n" * 3
            blocks = canonical_json([{"type": "text", "text": text}])
            rows.append(Message(user=user, conversation=place, turn=turn, position=turn.position + offset, role=role, blocks=blocks, text=text, speaker=role, round=offset))
    Message.objects.bulk_create(rows)
    return str(place.pk)

print("MADE", json.dumps({"few": talk(20), "many": talk(2_000)}))
"""
MORE = """(known) => document.querySelectorAll(".turn").length > known"""
IN_ORDER = """() => {
  const turns = document.querySelectorAll(".turn");
  return turns[0].querySelector(".bubble").textContent.trim() === `Question ${1000 - turns.length + 1}`;
}"""
COUNTED = ("Nodes", "JSEventListeners")


@pytest.fixture(scope="module")
def talker(server: Server) -> tuple[StorageState, dict[str, str]]:
    """Somebody with a conversation of 20 messages and one of 2,000."""
    state = server.someone()
    return state, server.shell(state, FILL)


def counts_of(page: Page) -> dict[str, float]:
    """Nodes and listeners that the page holds, once what nothing holds is gone."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")
    for _ in range(2):
        devtools.send("HeapProfiler.collectGarbage")
    metrics = {
        each["name"]: each["value"] for each in devtools.send("Performance.getMetrics")["metrics"]
    }
    devtools.detach()
    return {name: metrics[name] for name in COUNTED}


def test_one_of_2000_messages_holds_no_more_than_its_end_until_one_scrolls_up(
    server: Server, talker: tuple[StorageState, dict[str, str]], open_page: Callable[..., Page]
) -> None:
    state, ids = talker
    counted: dict[str, Any] = {}
    for name, key in ids.items():
        page = open_page(f"{server.url}/c/{key}/", state=state)
        expect(page.locator("#composer[data-ready]")).to_be_visible()
        expect(page.locator(".turn .prose").last).to_contain_text("An answer of some words.")
        counted[name] = counts_of(page)
    chat = Chat(page)
    expect(chat.turns).to_have_count(15)
    turns = 10 / 15  # those of the page of the short one, which has no more
    for each in COUNTED:
        assert counted["many"][each] * turns <= 1.5 * counted["few"][each], counted

    # The wheel alone brings what is before, and the reader stays at the same words.
    expect(chat.turns.first.locator(".bubble")).to_have_text("Question 986")
    page.locator("#chat-scroll").hover()
    known = 15
    while known < 100:
        page.mouse.wheel(0, -20_000)
        page.wait_for_function(MORE, arg=known)
        seen = page.locator(".turn:has(.bubble:text-is('Question 986'))")
        expect(seen).to_have_count(1)
        known = chat.turns.count()
    page.wait_for_function(IN_ORDER)  # more may come meanwhile
    numbers = [int(text.split()[1]) for text in page.locator(".bubble").all_inner_texts()]
    assert numbers == sorted(set(numbers))

    # At the end again, what is far above leaves the page with the next turn.
    page.get_by_role("button", name="Jump to latest").click()
    expect(page.get_by_role("button", name="Jump to latest")).to_be_hidden()
    chat.field.fill("what can you do?")
    chat.field.press("Enter")
    expect(chat.turns).to_have_count(50)
    expect(page.locator(".bubble").last).to_have_text(re.compile("what can you do"))
