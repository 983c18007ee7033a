"""The chat page fed with recorded events in place of the server's websocket: what it shows, and how calmly."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Page, Route, StorageState, WebSocketRoute, expect

from tests.browser.chat import Chat
from tests.browser.conftest import PATIENCE
from tests.browser.recorded import NOTE, Frame, Recording, finished, memory_item, streamed, tool_round
from tests.browser.server import Server

AT_END = """() => {
  const log = document.getElementById("chat-scroll");
  return log.scrollHeight - log.clientHeight - log.scrollTop < 3;
}"""


AT_REST = """(element) => new Promise((resolve) => {
  let [last, same] = [null, 0];
  const look = () => {
    same = element.scrollTop === last ? same + 1 : 0;
    last = element.scrollTop;
    if (same < 10) requestAnimationFrame(look);
    else resolve(last);
  };
  look();
})"""
"""Where it stands once it no longer moves: a wheel scrolls by and by."""


@dataclass
class Stage:
    """A chat page whose other end is the test."""

    page: Page
    sockets: list[WebSocketRoute] = field(default_factory=list)
    sent: list[Frame] = field(default_factory=list)

    @property
    def chat(self) -> Chat:
        return Chat(self.page)

    def connect(self, route: WebSocketRoute) -> None:
        self.sockets.append(route)
        route.on_message(lambda message: self.sent.append(json.loads(message)))

    def play(self, *frames: Frame) -> None:
        for frame in frames:
            self.sockets[-1].send(json.dumps(frame))

    def until(self, holds: Callable[[], bool]) -> None:
        """Waits for something that shows outside the page."""
        for _ in range(PATIENCE // 50):
            if holds():
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"it never came; sent was {self.sent}")

    def begin(self, record: Recording, text: str = "hello") -> None:
        """The reader sends a message and the server takes it."""
        before = len(self.sent)
        self.chat.send(text)
        self.until(lambda: len(self.sent) > before)
        client_id = self.sent[-1]["client_id"]
        self.play(
            record.queued(text, client_id=client_id),
            record.event("turn_started", f"turn-{record.turns}"),
        )


@pytest.fixture
def stage(open_page: Callable[..., Page], server: Server, owner: StorageState) -> Stage:
    page = open_page("about:blank", state=owner)
    stage = Stage(page)
    page.route_web_socket("**/ws/chat/", stage.connect)
    page.goto(server.url)
    expect(stage.chat.field).to_be_focused()
    return stage


def test_a_new_conversation_gets_its_address_without_reloading(stage: Stage) -> None:
    record = Recording()
    stage.begin(record)
    stage.page.wait_for_url(f"{stage.page.url.split('/c/')[0].rstrip('/')}/c/{record.conversation}/")
    assert "conversation" not in stage.sent[-1]


def asked_to_delete(stage: Stage) -> Recording:
    """A turn that waits for a yes to a call, c1."""
    record = Recording()
    stage.begin(record)
    asked = {"id": "c1", "name": "memory_delete", "input": {"note_id": "n2"}}
    stage.play(
        record.event("approval_requested", "turn-1", **asked),
        finished(record, "turn-1", "", pending_approval=asked),
    )
    return record


def test_a_decision_that_the_connection_took_along_can_be_made_again(stage: Stage) -> None:
    asked_to_delete(stage)
    yes = stage.page.get_by_role("button", name="Yes, allow")
    yes.click()
    expect(yes).to_be_disabled()
    stage.until(lambda: stage.sent[-1]["type"] == "approve")
    stage.sockets[-1].close()
    expect(yes).to_be_enabled()
    assert stage.sent[-1]["type"] == "open"


def test_a_decision_that_another_tab_was_faster_with_is_said(stage: Stage) -> None:
    record = asked_to_delete(stage)
    stage.page.get_by_role("button", name="Yes, allow").click()
    stage.until(lambda: stage.sent[-1]["type"] == "approve")
    stage.play(
        {"type": "error", "code": "not_waiting", "message": "It does not count.", "extra": {}},
        record.event("turn_resumed", "turn-1"),
        *tool_round(record, "turn-1", "c1", "memory_delete", {"note_id": "n2"}, "Declined.", error=True),
        finished(record, "turn-1", "It stays.", usage={}),
    )
    stage.chat.wait_for(stage.chat.last, "done")
    expect(stage.page.locator(".toast")).to_have_text(re.compile("It does not count"))
    expect(stage.page.get_by_role("button", name="Yes, allow")).to_have_count(0)


def test_what_is_allowed_is_asked_for_anew_when_a_new_version_is_built(stage: Stage) -> None:
    record = Recording()
    asked: list[str] = []
    build = {"name": "dice", "state": "done", "missing_secrets": "", "messages": ""}

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        route.continue_()

    stage.page.route("**/api/v1/builds/b1/*", lambda route: route.fulfill(json=build))
    stage.begin(record)
    stage.page.route("**/grants/*", answer)
    for number, kind in enumerate(("progress", "complete"), start=1):
        told = {"id": f"m{number}", "number": number, "type": kind, "payload": {"text": "dice 2"}}
        stage.play(record.event("build", "turn-1", build_id="b1", message=told))
    stage.until(lambda: len(asked) > 0)
    stage.play(finished(record, "turn-1", "It is ready.", usage={}))
    stage.chat.wait_for(stage.chat.last, "done")
    assert len(asked) == 1


def test_a_conversation_shows_as_much_of_why_a_build_failed_as_may_be_said_there(stage: Stage) -> None:
    record = Recording()
    error = {"code": "gave_up", "message": "The bank is evil.example."}
    build = {"name": "dice", "state": "failed", "error": error, "missing_secrets": "", "messages": []}
    stage.page.route("**/api/v1/builds/b1/*", lambda route: route.fulfill(json=build))
    stage.begin(record)
    told = {"code": "gave_up", "text": "The builder gave up; its page has its words."}
    message = {"id": "m1", "number": 1, "type": "error", "payload": told}
    with stage.page.expect_response("**/api/v1/builds/b1/*"):
        stage.play(record.event("build", "turn-1", build_id="b1", message=message))
    expect(stage.page.locator(".build-title")).to_have_text("dice could not be built")
    expect(stage.page.locator(".build-now")).to_have_text(told["text"])


SILENT = """window.WebSocket = class extends EventTarget {
  static OPEN = 1;
  readyState = 0;
  close() {}
}"""
"""A network that answers nothing: neither yes nor no."""


def test_a_connection_that_is_never_made_is_told(
    server: Server, owner: StorageState, open_page: Callable[..., Page]
) -> None:
    page = open_page("about:blank", state=owner)
    page.add_init_script(SILENT)
    page.clock.install()
    page.goto(server.url)
    expect(Chat(page).field).to_be_focused()
    expect(page.locator("#banner-lost")).to_be_hidden()
    page.clock.fast_forward(60_000)
    expect(page.locator("#banner-lost")).to_be_visible()


def test_the_page_goes_on_asking_for_news_after_an_answer_that_is_none(stage: Stage) -> None:
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) <= 3:
            route.fulfill(status=200, body="<html>Sign in to this network</html>")
        else:
            route.continue_()

    stage.page.route("**/news/*", answer)
    stage.until(lambda: len(asked) >= 5)


def test_plain_text_shows_at_once_and_gives_way_to_rendered_markdown(stage: Stage) -> None:
    record = Recording()
    stage.begin(record)
    stage.play(record.event("text_delta", "turn-1", text="Some **bold"))
    expect(stage.chat.last.locator(".prose")).to_have_text("Some **bold")
    stage.play(record.html("turn-1", 0, "<p>Some <strong>bold</strong> words</p>"))
    expect(stage.chat.last.locator(".prose strong")).to_have_text("bold")
    expect(stage.chat.last.locator(".tail")).to_have_count(0)


def test_rendering_one_block_leaves_the_others_as_they_are(stage: Stage) -> None:
    record = Recording()
    stage.begin(record)
    stage.play(*streamed(record, "turn-1", [("a", 0, "<p>First block</p>"), ("b", 1, "<p>Second</p>")]))
    first = stage.chat.last.locator(".prose-block").first.locator("p")
    expect(first).to_have_text("First block")
    first.evaluate("element => element.marked = true")
    stage.play(
        record.html("turn-1", 1, "<p>Second block, longer</p>"),
        record.html("turn-1", 0, "<p>First block</p>"),
    )
    expect(stage.chat.last.locator(".prose-block").nth(1)).to_have_text("Second block, longer")
    assert first.evaluate("element => element.marked === true")


def test_a_block_that_comes_late_stands_in_its_place(stage: Stage) -> None:
    record = Recording()
    stage.begin(record)
    stage.play(
        record.html("turn-1", 0, "<p>First</p>"),
        record.html("turn-1", 3, "<p>Fourth</p>"),
        record.html("turn-1", 1, "<p>Second</p>"),
    )
    expect(stage.chat.last.locator(".prose-block")).to_have_text(["First", "Second", "Fourth"])


def test_a_tool_card_goes_from_running_with_progress_to_done(stage: Stage) -> None:
    record = Recording()
    stage.begin(record)
    stage.play(
        record.event(
            "tool_start", "turn-1", id="c1", name="memory_search", input={"query": "prawns", "top_k": 5}
        ),
        record.event(
            "tool_progress", "turn-1", id="c1", name="memory_search", data={"message": "3 of 5 searched"}
        ),
    )
    expect(stage.chat.last.locator(".tool-title")).to_have_text("Searching memories")
    expect(stage.chat.last.locator(".tool-progress")).to_have_text("3 of 5 searched")
    # Who waits for several seconds sees how long by now, beside what for.
    expect(stage.chat.last.locator(".tool-status")).to_contain_text(re.compile(r"^\d+ s"))
    stage.play(
        record.event(
            "tool_result",
            "turn-1",
            id="c1",
            name="memory_search",
            result='[{"text": "The user likes prawns."}]',
            is_error=False,
            duration_ms=1234,
        )
    )
    expect(stage.chat.last.locator(".tool-title")).to_have_text("Searched memories")
    expect(stage.chat.last.locator(".tool-status")).to_contain_text("1.2 s")
    card = stage.chat.tool("Searched memories")
    expect(card.locator(".tool-body")).to_contain_text("Looked for “\u2068prawns\u2069”")
    expect(card.locator(".found li")).to_have_text(["You like prawns."])
    stage.play(*tool_round(record, "turn-1", "c2", "memory_search", {"query": "x"}, "[]", ms=119_700))
    expect(stage.chat.last.locator(".tool-status").last).to_contain_text("2 min 0 s")


def test_a_failed_tool_is_marked_and_shows_its_error(stage: Stage) -> None:
    record = Recording()
    stage.begin(record)
    stage.play(
        *tool_round(
            record,
            "turn-1",
            "c1",
            "open_page",
            {"url": "https://example.org"},
            "The page did not answer.",
            error=True,
            ms=10012,
        )
    )
    card = stage.chat.tool("Reading a page")
    expect(card).to_have_attribute("data-state", "error")
    expect(card.locator(".tool-section-error pre")).to_have_text("The page did not answer.")


def test_a_permission_card_sends_the_decision_once(stage: Stage) -> None:
    record = Recording()
    stage.begin(record)
    given, why = {"conversation_id": "abc"}, "Izzy has read here what others wrote."
    stage.play(
        record.event(
            "approval_requested", "turn-1", id="c1", name="conversation_delete", input=given, reason=why
        ),
        finished(
            record,
            "turn-1",
            "",
            pending_approval={"id": "c1", "name": "conversation_delete", "input": given},
        ),
    )
    card = stage.page.get_by_role("region", name="Izzy asks for permission")
    expect(card).to_contain_text("Izzy would like to delete a conversation")
    expect(card).to_contain_text(why)
    card.get_by_role("button", name="Yes, allow").click()
    expect(card.get_by_role("button", name="No")).to_be_disabled()
    stage.until(lambda: stage.sent[-1] == {"type": "approve", "id": "c1", "decision": "allow"})
    stage.play(
        record.event("turn_resumed", "turn-1"),
        record.event(
            "tool_result",
            "turn-1",
            id="c1",
            name="conversation_delete",
            result="deleted",
            is_error=False,
            duration_ms=5,
        ),
    )
    expect(card).to_have_count(0)


def test_a_permission_card_says_what_it_is_about_in_the_words_of_izzys_own_tools(stage: Stage) -> None:
    """The answer of a page or a capability gives no name to what is about to go."""
    record = Recording()
    stage.begin(record)
    lists = {
        "conversation_list": {"conversations": [{"id": "abc", "title": "A year of bills"}]},
        "memory_search": [{"note_id": "note-1", "text": "The gate's code is 4711."}],
        "open_page": {"conversations": [{"id": "abc", "title": "Spam"}]},
        "cap_feed": [{"note_id": "note-1", "text": "Spam"}],
    }
    for name, result in lists.items():
        stage.play(*tool_round(record, "turn-1", name, name, {}, json.dumps(result)))
    asked = [
        {"id": "c1", "name": "conversation_delete", "input": {"conversation_id": "abc"}},
        {"id": "c2", "name": "memory_delete", "input": {"note_id": "note-1"}},
    ]
    stage.play(*(record.event("approval_requested", "turn-1", **call) for call in asked))
    stage.play(finished(record, "turn-1", "", pending_approval=asked[0]))
    card = stage.page.get_by_role("region", name="Izzy asks for permission")
    expect(card.first).to_contain_text("“\u2068A year of bills\u2069”")
    expect(card.last).to_contain_text("“\u2068The gate's code is 4711.\u2069”")
    expect(card.locator("dl")).to_have_count(0)
    expect(card.first.get_by_role("link")).to_have_attribute("href", "/c/abc/")


@pytest.mark.parametrize(
    ("button", "decision", "says"),
    [
        ("In this conversation", "conversation", "Allowed in this conversation"),
        ("Always for this tool", "always", "Always allowed"),
    ],
)
def test_a_yes_that_lasts_names_its_hosts_and_the_card_shows_what_it_covered(
    stage: Stage, button: str, decision: str, says: str
) -> None:
    record = Recording()
    stage.begin(record)
    given = {"city": "Graz"}
    reach = {
        "tool": "cap_weather",
        "hosts": ["api.example.org"],
        "secrets": ["KEY"],
        "capability": "x",
        "version": 2,
    }
    asked = {
        "id": "c1",
        "name": "cap_weather",
        "input": given,
        "reason": "May be behind.",
        "reach": reach,
    }
    stage.play(
        record.event("approval_requested", "turn-1", **asked),
        finished(record, "turn-1", "", pending_approval=asked),
    )
    card = stage.page.get_by_role("region", name="Izzy asks for permission")
    expect(card).to_contain_text("api.example.org, KEY and nothing else, and for version 2")
    expect(card).to_contain_text("Graz")
    expect(card.get_by_role("button", name="Yes, once")).to_be_visible()
    card.get_by_role("button", name=button).click()
    stage.until(lambda: stage.sent[-1] == {"type": "approve", "id": "c1", "decision": decision})
    stage.play(
        record.event("turn_resumed", "turn-1"),
        record.event("tool_start", "turn-1", id="c1", name="cap_weather", input=given, covered=decision),
    )
    expect(stage.chat.last).to_contain_text(f"{says}, with this:")
    expect(stage.chat.last.get_by_text("Graz", exact=True).first).to_be_visible()


def test_what_is_written_while_a_question_is_open_is_its_answer_until_the_server_has_it(
    stage: Stage,
) -> None:
    record = Recording()
    stage.begin(record)
    stage.play(
        record.event("question", "turn-1", id="c1", text="Which calendar?"),
        finished(record, "turn-1", "", pending_question={"id": "c1", "text": "Which calendar?"}),
    )
    expect(stage.page.get_by_text("Your answer to “\u2068Which calendar?\u2069”")).to_be_visible()
    expect(stage.chat.field).to_have_attribute("placeholder", "Your answer")
    stage.page.keyboard.type("the family one")
    stage.page.keyboard.press("Enter")
    expect(stage.chat.last.locator(".tool-answer")).to_have_text("You: the family one")
    expect(stage.chat.last.locator(".tool-status")).to_have_text("Sending…")
    expect(stage.page.get_by_text("Your answer to")).to_be_hidden()
    stage.until(lambda: stage.sent[-1]["type"] == "answer")
    first = stage.sent[-1]
    assert (first["id"], first["text"]) == ("c1", "the family one")

    stage.sockets[-1].close()
    stage.until(lambda: [frame for frame in stage.sent if frame["type"] == "answer"] == [first, first])
    again = record.event("turn_resumed", "turn-1")
    stage.play(again, *tool_round(record, "turn-1", "c1", "ask_user", {}, "the family one"))
    expect(stage.chat.last.locator(".tool-ok")).to_be_visible()
    # The first had been taken before the connection was lost: nothing is wrong.
    twice = {"type": "error", "code": "not_waiting", "message": "Nothing waits for this.", "extra": {}}
    stage.play(twice | {"client_id": first["client_id"]})
    stage.play(*streamed(record, "turn-1", [("Noted.", 1000, "<p>Noted.</p>")]))
    expect(stage.chat.last.locator(".prose")).to_have_text("Noted.")
    assert stage.page.locator(".toast").count() == 0
    stage.sockets[-1].close()
    stage.until(lambda: len(stage.sockets) == 3 and stage.sent[-1]["type"] == "open")
    stage.play(finished(record, "turn-1", "", usage={}))
    stage.chat.wait_for(stage.chat.last, "done")
    assert [frame for frame in stage.sent if frame["type"] == "answer"] == [first, first]


def test_an_answer_that_is_refused_comes_back_and_the_question_is_open_again(stage: Stage) -> None:
    record = Recording()
    stage.begin(record)
    stage.play(
        record.event("question", "turn-1", id="c1", text="Which calendar?"),
        finished(record, "turn-1", "", pending_question={"id": "c1", "text": "Which calendar?"}),
    )
    expect(stage.page.get_by_text("Your answer to “\u2068Which calendar?\u2069”")).to_be_visible()
    stage.page.keyboard.type("that one")
    stage.page.keyboard.press("Enter")
    stage.until(lambda: stage.sent[-1]["type"] == "answer")
    refused = {
        "type": "error",
        "code": "unavailable",
        "message": "The database did not answer.",
        "extra": {},
    }
    stage.play(refused | {"client_id": stage.sent[-1]["client_id"]})
    expect(stage.chat.field).to_have_value("that one")
    expect(stage.page.get_by_text("Your answer to “\u2068Which calendar?\u2069”")).to_be_visible()
    expect(stage.page.get_by_role("region", name="Izzy asks a question")).to_be_visible()


@pytest.mark.parametrize("error", [False, True])
def test_an_answer_that_another_tab_was_faster_with_is_said_and_comes_back(
    stage: Stage, error: bool
) -> None:
    record = Recording()
    stage.begin(record)
    stage.play(
        record.event("question", "turn-1", id="c1", text="Which calendar?"),
        finished(record, "turn-1", "", pending_question={"id": "c1", "text": "Which calendar?"}),
    )
    expect(stage.page.get_by_text("Your answer to “\u2068Which calendar?\u2069”")).to_be_visible()
    stage.page.keyboard.type("that one")
    stage.page.keyboard.press("Enter")
    stage.until(lambda: stage.sent[-1]["type"] == "answer")
    late = {"type": "error", "code": "not_waiting", "message": "Nothing waits for this.", "extra": {}}
    stage.play(late | {"client_id": stage.sent[-1]["client_id"]})
    result = "It was stopped." if error else "the other one"
    stage.play(
        record.event("turn_resumed", "turn-1"),
        *tool_round(record, "turn-1", "c1", "ask_user", {}, result, error=error),
        finished(record, "turn-1", "", usage={}),
    )
    expect(stage.chat.field).to_have_value("that one")
    said = "was no longer waiting" if error else "was answered elsewhere first"
    expect(stage.page.locator(".toast")).to_contain_text(said)
    expect(stage.page.locator(".toast")).to_have_count(1)
    answer = stage.chat.last.locator(".tool-answer")
    if error:
        expect(answer).to_be_hidden()
    else:
        expect(answer).to_have_text("You: the other one")


def test_a_refused_message_comes_back_into_the_field_before_what_was_written_since(stage: Stage) -> None:
    pending = stage.chat.send("this will be refused")
    expect(pending.get_by_text("Sending…")).to_be_visible()
    stage.until(lambda: len(stage.sent) > 0)
    stage.chat.field.fill("and this was next")
    stage.play(
        {
            "type": "error",
            "code": "conflict",
            "message": "Wait for the answer.",
            "extra": {},
            "client_id": stage.sent[-1]["client_id"],
        }
    )
    expect(stage.chat.field).to_have_value("this will be refused\n\nand this was next")
    expect(stage.chat.turns).to_have_count(0)
    expect(stage.page.locator(".toast")).to_contain_text("Wait for the answer.")


def test_an_edit_of_what_another_window_replaced_comes_back_as_a_new_message(stage: Stage) -> None:
    record, page = Recording(), stage.page
    stage.begin(record, "first")
    stage.play(finished(record, "turn-1", "Yes."))
    stage.chat.wait_for(stage.chat.last, "done")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_text("Sending makes a new version")).to_be_visible()
    stage.chat.field.fill("my careful rewrite")
    stage.play(record.queued("another", replaces=("message-1", "answer-turn-1")))
    stage.play(finished(record, "turn-2", "Well."))
    stage.chat.wait_for(stage.chat.last, "done")
    stage.chat.field.press("Enter")
    stage.until(lambda: stage.sent[-1].get("replaces") == "message-1")
    refused = {"type": "error", "code": "not_found", "message": "There is no message.", "extra": {}}
    stage.play(refused | {"client_id": stage.sent[-1]["client_id"]})
    expect(stage.chat.field).to_have_value("my careful rewrite")
    expect(page.get_by_text("Sending makes a new version")).to_be_hidden()
    expect(page.locator(".toast")).to_contain_text("no longer there")
    stage.chat.field.press("Enter")
    stage.until(
        lambda: stage.sent[-1].get("text") == "my careful rewrite" and "replaces" not in stage.sent[-1]
    )


def test_trying_again_names_the_message_and_brings_its_answer_back_where_it_is_not_the_newest(
    stage: Stage,
) -> None:
    record = Recording()
    stage.begin(record)
    stage.play(
        *streamed(record, "turn-1", [("Yes.", 0, "<p>Yes.</p>")]), finished(record, "turn-1", "Yes.")
    )
    stage.chat.wait_for(stage.chat.last, "done")
    stage.chat.last.hover()
    stage.chat.last.get_by_role("button", name="Try again").click()
    stage.until(lambda: stage.sent[-1]["type"] == "retry")
    assert stage.sent[-1]["replaces"] == "message-1"
    expect(stage.chat.last.locator(".prose")).to_have_count(0)
    refused = {"type": "error", "code": "not_newest", "message": "Another was sent.", "extra": {}}
    stage.play(refused | {"client_id": stage.sent[-1]["client_id"]})
    expect(stage.chat.last.locator(".prose")).to_have_text("Yes.")
    expect(stage.page.locator(".toast")).to_contain_text("Another was sent.")


def test_a_message_not_confirmed_is_sent_again_after_reconnecting(stage: Stage) -> None:
    stage.chat.send("are you there?")
    stage.until(lambda: len(stage.sent) > 0)
    first = stage.sent[-1]
    stage.sockets[-1].close()
    stage.until(lambda: [frame for frame in stage.sent if frame["type"] == "message"] == [first, first])
    assert len(stage.sockets) == 2


def test_after_a_lost_connection_it_asks_for_what_came_after(stage: Stage) -> None:
    record = Recording()
    stage.begin(record)
    stage.play(record.event("text_delta", "turn-1", text="Before"))
    expect(stage.chat.last.locator(".prose")).to_have_text("Before")
    stage.sockets[-1].close()
    again = {"type": "open", "conversation": record.conversation, "seq": record.seq}
    stage.until(lambda: stage.sent[-1] == again)
    stage.play(record.event("text_delta", "turn-1", text=" and after"))
    expect(stage.chat.last.locator(".prose")).to_have_text("Before and after")


def test_the_log_follows_new_text_only_while_the_reader_is_at_its_end(stage: Stage) -> None:
    record = Recording()
    stage.begin(record)
    long = "".join(f"<p>Line {number}</p>" for number in range(60))
    stage.play(record.event("text_delta", "turn-1", text="x"), record.html("turn-1", 0, long))
    scroller = stage.page.locator("#chat-scroll")
    expect(stage.chat.last).to_contain_text("Line 59")
    stage.page.wait_for_function(AT_END)
    scroller.hover()
    stage.page.mouse.wheel(0, -900)
    jump = stage.page.get_by_role("button", name="Jump to latest")
    expect(jump).to_be_visible()
    before = scroller.evaluate(AT_REST)
    stage.play(record.event("text_delta", "turn-1", text="y"), record.html("turn-1", 1, long))
    stage.page.wait_for_timeout(300)
    assert scroller.evaluate("element => element.scrollTop") == before
    jump.click()
    expect(jump).to_be_hidden()
    stage.page.wait_for_function(AT_END)


def test_surfaced_memories_stand_beside_the_answer(stage: Stage) -> None:
    record = Recording()
    stage.page.set_viewport_size({"width": 1500, "height": 800})
    stage.begin(record)
    stage.play(
        record.event(
            "memory_context",
            "turn-1",
            items=[
                memory_item("Allergic to shellfish."),
                memory_item("Bob is vegetarian.", "0199a000-0000-7000-8000-0000000000ab"),
            ],
            tokens=20,
        )
    )
    stage.play(*streamed(record, "turn-1", [("x", 0, "<p>An answer</p>")]))
    aside = stage.page.get_by_role("note", name="Memories used for this answer")
    expect(aside).to_contain_text("2 memories used")
    expect(aside.locator(".memory-card")).to_have_count(2)
    reason = aside.locator(".memory-reason").first
    expect(reason).to_have_text("Has the word ‘paella’.")
    expect(reason).to_have_attribute("title", "meaning 0.7 · words 0.2")
    box, text = aside.bounding_box(), stage.chat.last.locator(".prose").bounding_box()
    assert box is not None
    assert text is not None
    assert box["x"] >= text["x"] + text["width"]


def test_who_is_asked_whether_a_memory_may_go_reads_which(stage: Stage) -> None:
    record = Recording()
    stage.begin(record)
    items = [
        memory_item("The user has a cat."),
        memory_item("The user has a dog.", NOTE[:-1] + "b", "n2"),
    ]
    asked = {"id": "c1", "name": "memory_delete", "input": {"note_id": "n2"}}
    stage.play(
        record.event("memory_context", "turn-1", items=items, tokens=20),
        record.event("approval_requested", "turn-1", **asked),
        finished(record, "turn-1", "", pending_approval=asked),
    )
    card = stage.page.get_by_role("region", name="Izzy asks for permission")
    expect(card).to_contain_text("“\u2068You have a dog.\u2069”")
    expect(card).not_to_contain_text("cat")


def test_screen_readers_hear_an_answer_once_when_it_is_finished(stage: Stage) -> None:
    record = Recording()
    stage.begin(record)
    announcer = stage.page.locator("#announcer")
    expect(announcer).to_have_text("Izzy is answering")
    stage.play(*streamed(record, "turn-1", [("Half", 0, "<p>Half</p>")]))
    expect(announcer).to_have_text("Izzy is answering")
    stage.play(
        *streamed(record, "turn-1", [(" done", 0, "<p>Half done</p>")]),
        finished(record, "turn-1", "Half done"),
    )
    expect(announcer).to_have_text("Izzy: Half done")
    expect(stage.page.locator("#log")).to_have_attribute("aria-live", "off")


def test_enter_while_an_input_method_composes_does_not_send(stage: Stage) -> None:
    stage.chat.field.fill("にほん")
    stage.chat.field.evaluate(
        "field => field.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', isComposing: true, bubbles: true, cancelable: true}))"
    )
    stage.page.wait_for_timeout(100)
    assert [frame for frame in stage.sent if frame["type"] == "message"] == []
    expect(stage.chat.field).to_have_value("にほん")


def test_shift_enter_makes_a_new_line_and_the_field_grows(stage: Stage) -> None:
    before = stage.chat.field.bounding_box()
    stage.chat.field.press_sequentially("one")
    stage.chat.field.press("Shift+Enter")
    stage.chat.field.press_sequentially("two")
    expect(stage.chat.field).to_have_value("one\ntwo")
    after = stage.chat.field.bounding_box()
    assert before is not None
    assert after is not None
    assert after["height"] > before["height"] + 10


def test_a_draft_outlives_a_reload(stage: Stage) -> None:
    stage.chat.field.fill("half a thou")
    stage.page.reload()
    expect(stage.chat.field).to_have_value("half a thou")


def test_code_blocks_have_a_copy_button_and_copied_text_is_the_code_alone(stage: Stage) -> None:
    record = Recording()
    stage.begin(record)
    stage.play(
        *streamed(
            record,
            "turn-1",
            [
                (
                    "x",
                    0,
                    '<pre><code class="language-python"><span class="k">print</span>(1)\n</code></pre>',
                )
            ],
        )
    )
    block = stage.chat.last.locator(".code-block")
    expect(block.locator(".code-head")).to_contain_text("python")
    stage.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    block.get_by_role("button", name="Copy code").click()
    stage.until(lambda: stage.page.evaluate("navigator.clipboard.readText()") == "print(1)\n")


def test_ids_can_be_made_where_the_browser_has_no_random_uuid(stage: Stage) -> None:
    made = stage.page.evaluate("""async () => {
      const { uuid } = await import("/static/js/core/ids.js");
      const original = Object.getOwnPropertyDescriptor(Crypto.prototype, "randomUUID");
      Object.defineProperty(Crypto.prototype, "randomUUID", { value: undefined, configurable: true });
      const ids = [uuid(), uuid()];
      Object.defineProperty(Crypto.prototype, "randomUUID", original);
      return ids;
    }""")
    assert len(set(made)) == 2
    for one in made:
        assert len(one) == 36
        assert one[14] == "4"
        assert one[19] in "89ab"


def test_opening_a_card_at_the_end_leaves_it_where_it_is(stage: Stage) -> None:
    record = Recording()
    stage.begin(record)
    long = "".join(f"<p>Line {number}</p>" for number in range(40))
    stage.play(record.event("text_delta", "turn-1", text="x"), record.html("turn-1", 0, long))
    result = "\n".join(f"row {number}" for number in range(40))
    stage.play(*tool_round(record, "turn-1", "c1", "memory_search", {"query": "x"}, result))
    stage.play(finished(record, "turn-1", ""))
    summary = stage.chat.last.locator(".tool summary")
    expect(summary).to_be_visible()
    stage.page.wait_for_function(AT_END)
    before = summary.bounding_box()
    summary.click()
    expect(stage.chat.last.locator(".tool-body")).to_contain_text("row 39")
    stage.page.wait_for_timeout(200)
    after = summary.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(after["y"] - before["y"]) < 2


def test_a_page_lets_go_of_what_is_far_above_and_brings_it_back(stage: Stage) -> None:
    record, asked = Recording(), []

    def earlier(route: Route) -> None:
        asked.append(int(route.request.url.split("before=message-")[1].split("&")[0]))
        number = asked[-1] - 1
        said = {"id": f"message-{number}", "turn": f"turn-{number}", "role": "user", "text": "Before"}
        route.fulfill(json={"results": [said], "next": None})

    stage.page.route("**/messages/?before=*", earlier)
    stage.begin(record, "Question 1")
    for number in range(1, 121):
        turn = f"turn-{number}"
        if number > 1:
            stage.play(record.queued(f"Question {number}"), record.event("turn_started", turn))
        html = f"<p>Answer {number}</p>"
        stage.play(*streamed(record, turn, [(f"Answer {number}", 0, html)]))
        stage.play(finished(record, turn, f"Answer {number}"))
    expect(stage.chat.last.locator(".prose")).to_have_text("Answer 120")
    stage.chat.wait_for(stage.chat.last, "done")
    shown = stage.chat.turns.count()
    assert 50 <= shown <= 80
    assert asked == []
    assert stage.page.evaluate(AT_END)
    first = 121 - shown
    expect(stage.chat.turns.first.locator(".bubble")).to_have_text(f"Question {first}")
    stage.page.locator("#chat-scroll").evaluate("element => element.scrollTo(0, 0)")
    expect(stage.chat.turns).to_have_count(shown + 1)
    assert asked == [first]
    expect(stage.chat.turns.first.locator(".bubble")).to_have_text("Before")


def opened(record: Recording) -> Frame:
    """The conversation of a recording as it is sent to who opens it."""
    message = {"id": "message-1", "turn": "turn-1", "role": "user", "text": "hello", "created_at": None}
    place = {"conversation": record.conversation, "seq": record.seq, "title": "Food"}
    return {"type": "snapshot", **place, "messages": [message | {"state": "done"}], "turn": None}


def test_a_conversation_that_comes_late_does_not_take_the_place_of_a_new_one(stage: Stage) -> None:
    record, page = Recording(), stage.page
    stage.begin(record)
    stage.play(finished(record, "turn-1", "Hi."))
    stage.chat.wait_for(stage.chat.last, "done")
    page.locator("#new-chat").click()
    expect(stage.chat.turns).to_have_count(0)
    page.go_back()
    stage.until(lambda: stage.sent[-1] == {"type": "open", "conversation": record.conversation})
    page.locator("#new-chat").click()
    stage.play(opened(record), {"type": "error", "code": "x", "message": "All came.", "extra": {}})
    expect(page.locator(".toast")).to_contain_text("All came.")
    expect(stage.chat.turns).to_have_count(0)


def test_a_message_whose_conversation_was_left_before_it_was_confirmed_is_shown_once(
    stage: Stage,
) -> None:
    record, page = Recording(), stage.page
    stage.begin(record)
    stage.play(finished(record, "turn-1", "Hi."))
    stage.chat.wait_for(stage.chat.last, "done")
    stage.chat.send("and then?")
    stage.until(lambda: stage.sent[-1].get("text") == "and then?")
    sent = stage.sent[-1]
    page.locator("#new-chat").click()
    expect(stage.chat.turns).to_have_count(0)
    page.go_back()
    stage.until(lambda: stage.sent[-1] == {"type": "open", "conversation": record.conversation})
    queued, whole = record.queued("and then?", client_id=sent["client_id"]), opened(record)
    whole["messages"].append({**queued["message"], "turn": "turn-2", "state": "done"})
    stage.play(whole)
    stage.until(lambda: stage.sent[-1] == sent)
    assert len(stage.sockets) == 1, "it does not wait for the next reconnect"
    stage.play(queued)
    expect(stage.chat.turns.locator(".bubble")).to_have_text(["hello", "and then?"])
    expect(page.get_by_text("Sending…")).to_have_count(0)


def test_a_first_message_that_is_taken_late_does_not_change_the_address_of_what_was_opened_since(
    stage: Stage,
) -> None:
    record, page = Recording(), stage.page
    stage.begin(record)
    stage.play(finished(record, "turn-1", "Hi."))
    stage.chat.wait_for(stage.chat.last, "done")
    address = page.url
    page.locator("#new-chat").click()
    expect(stage.chat.turns).to_have_count(0)
    stage.chat.send("something new")
    stage.until(lambda: stage.sent[-1]["type"] == "message")
    client_id = stage.sent[-1]["client_id"]
    page.go_back()
    stage.until(lambda: stage.sent[-1] == {"type": "open", "conversation": record.conversation})
    other = Recording("0199a000-0000-7000-8000-000000000002")
    stage.play(other.queued("something new", client_id=client_id), opened(record))
    expect(stage.chat.last).to_contain_text("hello")
    assert page.url == address
