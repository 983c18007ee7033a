"""The chat page against a server that speaks the Messages API: streaming, stop, permission, questions, failures."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chat import Chat
from tests.browser.model import Model
from tests.browser.server import Server
from tests.browser.voices import ENGINES
from tests.peers.anthropic_server import failure, reply, text, tool


@pytest.fixture
def chat(model: Model, model_server: Server, open_page: Callable[..., Page]) -> Chat:
    return Chat(open_page(model_server.url, state=model_server.owner))


def test_there_is_no_offline_banner(chat: Chat) -> None:
    expect(chat.page.locator("#banner-offline")).to_have_count(0)


def test_text_appears_while_the_model_still_writes(chat: Chat, model: Model) -> None:
    answer = reply(text("One two three **four** five six seven eight."), hold_after=5)
    model.add(answer)
    turn = chat.send("count")
    expect(turn.locator(".prose")).to_contain_text("One")
    expect(turn).to_have_attribute("data-state", "running")
    answer.release.set()
    chat.wait_for(turn, "done")
    expect(turn.locator(".prose strong")).to_have_text("four")
    usage = turn.locator(".usage").inner_text()
    assert "tokens read" in usage
    chat.page.reload()
    expect(chat.page.locator(".turn .usage")).to_have_text(usage)


def test_stop_keeps_what_was_written(chat: Chat, model: Model) -> None:
    answer = reply(text("The beginning of a very long story about a fox."), hold_after=6)
    model.add(answer)
    turn = chat.send("tell me a story")
    expect(turn.locator(".prose")).to_contain_text("The")
    chat.page.get_by_role("button", name="Stop the answer").click()
    chat.wait_for(turn, "stopped")
    expect(chat.field).to_be_focused()
    answer.release.set()
    kept = chat.answer(turn)
    assert kept.startswith("The")
    expect(turn).to_contain_text("You stopped this answer.")
    chat.page.reload()
    expect(chat.last.locator(".prose")).to_have_text(kept)
    expect(chat.last).to_have_attribute("data-state", "stopped")


def test_escape_stops_too(chat: Chat, model: Model) -> None:
    answer = reply(text("Word after word after word."), hold_after=4)
    model.add(answer)
    turn = chat.send("go")
    expect(turn.locator(".prose")).to_contain_text("Word")
    chat.page.keyboard.press("Escape")
    chat.wait_for(turn, "stopped")
    answer.release.set()


def test_a_reload_in_the_middle_finds_the_answer_under_way(chat: Chat, model: Model) -> None:
    answer = reply(text("Alpha beta gamma delta epsilon zeta."), hold_after=5)
    model.add(answer)
    turn = chat.send("greek")
    expect(turn.locator(".prose")).to_contain_text("Alpha")
    chat.page.reload()
    expect(chat.last.locator(".prose")).to_contain_text("Alpha")
    expect(chat.last).to_have_attribute("data-state", "running")
    answer.release.set()
    chat.wait_for(chat.last, "done")
    expect(chat.last.locator(".prose")).to_have_text("Alpha beta gamma delta epsilon zeta.")


def test_a_question_waits_for_its_answer_across_a_reload(chat: Chat, model: Model) -> None:
    model.add(reply(tool("ask_user", {"question": "Red or green?"})), reply(text("Green it is.")))
    turn = chat.send("paint it")
    chat.wait_for(turn, "waiting")
    chat.page.reload()
    expect(chat.page.get_by_text("Your answer to “\u2068Red or green?\u2069”")).to_be_visible()
    expect(chat.field).to_be_focused()
    chat.page.keyboard.type("green")
    chat.page.keyboard.press("Enter")
    chat.wait_for(chat.last, "done")
    for _ in range(2):
        assert chat.answer() == "Green it is."
        expect(chat.last.locator(".tool-answer")).to_have_text("You: green")
        expect(chat.last.locator(".tool-failed")).to_have_count(0)
        chat.page.reload()
        chat.wait_for(chat.last, "done")
    assert "green" in str(model.asked[-1]["messages"][-1])


@pytest.mark.parametrize(
    ("button", "outcome"),
    [
        ("Yes, allow", "Deleted a conversation"),
        ("No", "Deleting a conversation: not done"),
        ("Always for this tool", "Deleted a conversation"),
    ],
)
def test_a_permission_card_decides_whether_the_tool_runs(
    chat: Chat, model: Model, button: str, outcome: str
) -> None:
    model.add(reply(text("Noted.")))
    chat.say("a conversation to throw away")
    doomed = chat.page.url.rstrip("/").split("/")[-1]
    chat.page.locator("#new-chat").click()
    model.add(reply(tool("conversation_delete", {"conversation_id": doomed})), reply(text("All right.")))
    turn = chat.send("delete the other conversation")
    chat.wait_for(turn, "waiting")
    card = chat.page.get_by_role("region", name="Izzy asks for permission")
    look = card.get_by_role("link", name="Look at the conversation")
    expect(look).to_have_attribute("href", f"/c/{doomed}/")
    card.get_by_role("button", name=button, exact=True).click()
    chat.wait_for(turn, "done")
    assert chat.tools(turn) == [outcome]
    expect(turn.locator(".tool-failed")).to_have_count(0)
    expect(turn.locator(".tool-status")).to_contain_text("declined" if button == "No" else "ms")
    expect(chat.field).to_be_focused()
    status = chat.page.request.get(chat.page.url.split("/c/")[0] + f"/c/{doomed}/").status
    assert status == (200 if button == "No" else 404)


def test_what_was_always_allowed_is_not_asked_again_and_is_set_where_it_can_be_taken_back(
    chat: Chat, model: Model, model_server: Server, open_page: Callable[..., Page]
) -> None:
    page = open_page(model_server.url, state=model_server.someone())
    mine = Chat(page)
    given = {"conversation_id": "0199a000-0000-7000-8000-000000000001"}
    model.add(reply(tool("conversation_delete", given)), reply(text("There is none.")))
    turn = mine.send("delete it")
    page.get_by_role("button", name="Always for this tool").click()
    mine.wait_for(turn, "done")
    model.add(reply(tool("conversation_delete", given)), reply(text("There is still none.")))
    mine.say("once more")
    page.goto(f"{model_server.url}/settings/")
    expect(page.locator('select[name*="conversation_delete"]')).to_have_value("allow")


def test_a_new_message_declines_what_was_asked(chat: Chat, model: Model) -> None:
    model.add(reply(tool("ask_user", {"question": "Which one?"})), reply(text("Never mind then.")))
    turn = chat.send("choose")
    chat.wait_for(turn, "waiting")
    chat.page.get_by_role("button", name="Say something else").click()
    expect(
        chat.page.get_by_text("Goes on without an answer to “\u2068Which one?\u2069”")
    ).to_be_visible()
    chat.say("forget it, something else")
    expect(chat.page.get_by_role("region", name="Izzy asks a question")).to_have_count(0)
    expect(chat.page.get_by_text("Goes on without an answer")).to_be_hidden()
    assert chat.answer() == "Never mind then."


def test_a_failing_model_says_so_and_trying_again_helps(chat: Chat, model: Model) -> None:
    model.add(failure(400, "invalid_request_error"), reply(text("Now it works.")))
    turn = chat.send("hello")
    chat.wait_for(turn, "failed")
    expect(turn.locator(".notice-danger")).not_to_be_empty()
    turn.locator(".notice-danger").get_by_role("button", name="Try again").click()
    expect(chat.field).to_be_focused()
    chat.wait_for(chat.last, "done")
    expect(chat.turns).to_have_count(1)
    assert chat.answer() == "Now it works."


def test_while_the_model_is_asked_again_the_page_says_so_and_when(chat: Chat, model: Model) -> None:
    busy = failure(529, "overloaded_error", retry_after="15")
    model.add(busy, reply(text("Here I am.")))
    turn = chat.send("are you there?")
    shown = re.compile(r"The model service is overloaded right now\.\s*Trying again in \d+ s")
    expect(turn.locator(".turn-status")).to_have_text(shown)
    chat.page.reload()
    expect(chat.last.locator(".turn-status")).to_have_text(shown)
    chat.wait_for(chat.last, "done")
    expect(chat.last.locator(".turn-status")).to_be_empty()
    assert chat.answer() == "Here I am."


def test_two_messages_at_once_queue_up(chat: Chat, model: Model) -> None:
    first = reply(text("First answer here."), hold_after=1)
    model.add(first, reply(text("Second answer.")))
    one = chat.send("first")
    chat.wait_for(one, "running")
    two = chat.send("second")
    chat.wait_for(two, "queued")
    # Who waits for several seconds is told what for.
    expect(one.locator(".turn-status")).to_contain_text(re.compile(r"Waiting for the model, \d+ s"))
    expect(two.locator(".turn-status")).to_contain_text("the answer before it is still being written")
    first.release.set()
    chat.wait_for(one, "done")
    chat.wait_for(two, "done")
    assert [chat.answer(one), chat.answer(two)] == ["First answer here.", "Second answer."]


def test_parallel_tools_each_have_a_card(chat: Chat, model: Model) -> None:
    calls = [
        tool("memory_search", {"query": "tea"}),
        tool("think", {"thought": "hm"}),
        tool("memory_search", {"top_k": 3}),
    ]
    model.add(reply(*calls), reply(text("Done.")))
    turn = chat.say("look around")
    assert sorted(chat.tools(turn)) == ["Searched memories", "Searching memories: failed", "Thought"]


def test_markup_from_model_and_tools_is_inert(chat: Chat, model: Model) -> None:
    evil = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script><svg onload="window.hacked=1"> [a](javascript:window.hacked=1) <form action="/sign-out/"><button hx-post="/sign-out/">x</button></form>'
    model.add(
        reply(tool("memory_save", {"content": evil}), tool("memory_search", {"query": evil})),
        reply(text(f"Look: {evil}\n\n```html\n{evil}\n```")),
    )
    turn = chat.say(evil)
    for card in turn.locator(".tool summary").all():
        card.click()
    chat.page.wait_for_timeout(300)
    assert chat.page.evaluate("window.hacked") is None
    assert (
        turn.locator(
            ".prose script, .prose img, .prose form, .prose [onerror], .prose [hx-post], .prose a[href^='javascript']"
        ).count()
        == 0
    )
    expect(turn.locator(".bubble")).to_contain_text("<script>")


def test_another_user_of_the_same_server_sees_nothing_of_it(
    chat: Chat, model: Model, model_server: Server, open_page: Callable[..., Page]
) -> None:
    model.add(reply(text("A secret answer.")))
    chat.say("my secret")
    bob = model_server.someone()
    page = open_page(model_server.url, state=bob)
    expect(page.get_by_text("Your conversations will be listed here.")).to_be_visible()
    assert page.request.get(chat.page.url).status == 404


def test_python_of_an_answer_runs_and_a_footnote_is_found(chat: Chat, model: Model) -> None:
    code = "```python\nprint(6 * 7)\n```"
    model.add(reply(text(f"So $x^2$ grows.[^1]\n\n{code}\n\n- [x] done\n\n[^1]: A note of mine.")))
    turn = chat.say("word " * 400)
    expect(turn.locator("math")).to_have_count(1)
    turn.get_by_role("button", name="Footnote 1", exact=True).click()
    expect(turn.locator(".footnotes li")).to_be_focused()
    turn.get_by_role("button", name="Back to the text from footnote 1").click()
    expect(turn.get_by_role("button", name="Footnote 1", exact=True)).to_be_focused()
    turn.get_by_role("button", name="Run", exact=True).click()
    expect(turn.locator(".code-output pre, .code-output-failed").first).to_be_visible()
    expect(turn.locator(".code-output")).to_contain_text("42")
    whole = turn.get_by_role("button", name="Show the whole message")
    whole.focus()
    chat.page.keyboard.press("Enter")
    expect(turn.locator(".bubble[data-folded]")).to_have_count(0)


def test_what_is_not_rendered_yet_is_not_spoken(chat: Chat) -> None:
    heard = """async () => {
      const { sentencesOf } = await import("/static/js/voice/sentences.js");
      const prose = document.createElement("div");
      const heard = () => sentencesOf(prose, "en").join(" ");
      prose.innerHTML = "<span class='tail'>Fine.\\n\\n```py\\n1</span>";
      const before = heard();
      prose.innerHTML = "<div class='prose-block'><p>Fine.</p></div><div class='prose-block'><pre>1</pre></div>";
      return [before, heard()];
    }"""
    assert chat.page.evaluate(heard) == ["", "Fine. There is code on the page."]


def test_a_spoken_question_is_sent_and_answered_by_voice(chat: Chat, model: Model) -> None:
    page = chat.page
    page.add_init_script(ENGINES)
    page.goto(page.url + "settings/")
    page.get_by_label("Language spoken").select_option("en-GB")
    page.get_by_label("How fast").select_option("Faster")
    page.get_by_label("Send by itself what I dictate").select_option("After 2 seconds of silence")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Your preferences are saved.")).to_be_visible()
    page.get_by_role("link", name="Izzy", exact=True).click()
    page.wait_for_selector("#composer[data-ready]")
    slow = reply(text("Rain comes. Take **your** coat. It is `cold` outside."), hold_after=8)
    asks = tool("ask_user", {"question": "Red or green coat?"})
    model.add(slow, reply(text("Fine.\n\n```py\n1\n```"), asks), reply(text("Green it is.")))
    bar, said = page.locator("[data-voice]"), "spoken.map((words) => words.text).join(' ')"

    page.keyboard.down("Alt")
    page.keyboard.down("v")
    expect(bar).to_contain_text("Listening… Let go when you are done.")
    page.evaluate("listening.hear('what about the weather')")
    page.wait_for_timeout(450)  # longer than a short press
    page.keyboard.up("v")
    page.keyboard.up("Alt")
    expect(bar).to_contain_text("Sends in")
    expect(bar).to_contain_text("Izzy is speaking")
    expect(chat.last).to_have_attribute("data-state", "running")
    begun = page.evaluate(said)
    assert begun.startswith("Rain comes."), begun
    assert "outside" not in begun
    assert page.evaluate("[spoken[0].lang, spoken[0].rate, listening.lang]") == ["en-GB", 1.5, "en-GB"]
    slow.release.set()
    chat.wait_for(chat.last, "done")
    assert page.evaluate(said) == "Rain comes. Take your coat. It is cold outside."
    page.evaluate("spoken.at(-1).onend()")
    expect(bar).to_be_hidden()
    assert "said this aloud" in str(model.asked[-1]["messages"][-1])

    page.evaluate("spoken.length = 0")
    page.get_by_role("button", name="Dictate").click()
    page.evaluate("listening.hear('and my coat')")
    chat.field.press("Enter")
    chat.wait_for(chat.last, "waiting")
    expect(bar).to_contain_text("Izzy is speaking")
    assert page.evaluate(said) == "Fine. There is code on the page. Red or green coat?"
    page.get_by_role("button", name="Dictate").click()  # who speaks silences the voice
    expect(bar).to_contain_text("Listening")
    assert page.evaluate("silenced") > 1
    page.evaluate("spoken.length = 0; listening.hear('green')")
    page.keyboard.press("Escape")
    expect(bar).to_be_hidden()
    expect(chat.field).to_have_value("green")
    chat.field.press("Enter")
    chat.wait_for(chat.last, "done")
    assert page.evaluate(said) == "Green it is."
    page.keyboard.press("Escape")
    expect(bar).to_be_hidden()

    page.evaluate("spoken.length = 0")
    model.add(reply(text("Typed, so in silence.")))
    chat.say("thanks")
    assert page.evaluate("spoken.length") == 0
    assert "said this aloud" not in str(model.asked[-1]["messages"][-1]["content"])
