"""The offline model at work: over the real SDK, the real loop and the real notes."""

import json
import re
from typing import Any

import pytest

from apps.accounts.models import User
from apps.agent import services
from apps.agent.offline import phrases
from apps.agent.offline.responder import respond
from apps.agent.tools.base import Tier, tools_for
from apps.agent.turn.events import Event, Question, Response, TextDelta, ToolStart
from apps.agent.turn.executor import executor_for
from apps.core.db.pool import in_db
from apps.memory.models import Memory
from apps.memory.notes.creation import memory_create
from tests.agent.turns import Turn, a_tool, answering

pytestmark = pytest.mark.django_db(transaction=True)


class Conversation:
    """Turn after turn of one user with the offline model; the history grows as in chat."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.history: list[dict[str, Any]] = []
        self.turn: Turn | None = None

    async def say(self, words: str) -> str:
        """The answer to the words, or the question that they led to."""
        turn = self.turn = Turn(self.user, tools_for({"notes"}))
        turn.executor = await in_db(
            executor_for,
            user_id=self.user.pk,
            conversation_id=turn.state.conversation_id,
            turn_id=turn.turn_id,
            use_memory=True,
        )
        context = {"type": "text", "text": "<context>\nNow: Saturday\n</context>"}
        self.history.append({"role": "user", "content": [context, {"type": "text", "text": words}]})
        turn.state.messages = self.history
        return said(await turn.run())

    async def answer(self, words: str) -> str:
        """The answer to a question goes to the call that waits for it, and the turn goes on."""
        assert self.turn is not None
        call_id = self.turn.of(Question)[-1].id
        await in_db(services.toolcall_answer, user_id=self.user.pk, tool_call_id=call_id, text=words)
        return said(await self.turn.run())

    @property
    def used(self) -> list[str]:
        """The tools of the newest turn, in order."""
        assert self.turn is not None
        return [event.name for event in self.turn.of(ToolStart)]

    async def notes(self) -> list[str]:
        return await in_db(
            lambda: sorted(Memory.objects.for_user(self.user).values_list("content", flat=True))
        )


def said(events: list[Event]) -> str:
    last = events[-1]
    assert isinstance(last, Response)
    return str(last.pending_question["text"]) if last.pending_question else last.text


@pytest.fixture
def talk(alice: User, offline: None) -> Conversation:
    return Conversation(alice)


async def test_izzy_remembers_finds_corrects_and_forgets(talk: Conversation) -> None:
    assert (
        await talk.say("remember that I'm allergic to shellfish")
        == "I'll remember that you are allergic to shellfish."
    )
    assert talk.used == ["memory_save"]
    assert "You are allergic to shellfish." in await talk.say("what do you know about food?")
    assert talk.used == ["memory_search"]
    before = await in_db(lambda: Memory.objects.for_user(talk.user).get().pk)
    assert "prawns" in await talk.say("actually I'm only allergic to prawns")
    assert talk.used == ["memory_search", "memory_update"]
    note = await in_db(lambda: Memory.objects.for_user(talk.user).get())
    assert (note.pk, note.content) == (before, "The user is only allergic to prawns.")
    assert "forgotten" in await talk.say("forget my allergy")
    assert talk.used == ["memory_search", "memory_delete"]
    assert await talk.notes() == []


async def test_equally_good_notes_are_asked_about(talk: Conversation) -> None:
    await talk.say("remember that I'm allergic to nuts")
    await talk.say("remember that my sister is allergic to cats")
    question = await talk.say("forget my allergy")
    assert "Which note shall I forget?" in question
    number = re.search(r"(\d)\. Your sister", question)
    assert number is not None
    await talk.answer(f"number {number[1]}, please")
    assert await talk.notes() == ["The user is allergic to nuts."]


async def test_none_of_them_leaves_all_of_them(talk: Conversation) -> None:
    await talk.say("remember that I'm allergic to nuts")
    await talk.say("remember that my sister is allergic to cats")
    await talk.say("forget my allergy")
    assert await talk.answer("none") == "Good, I left your notes as they are."
    assert len(await talk.notes()) == 2


async def test_a_word_of_the_note_is_an_answer_too(talk: Conversation) -> None:
    await talk.say("remember that I'm allergic to nuts")
    await talk.say("remember that my sister is allergic to cats")
    await talk.say("actually I'm allergic to walnuts")
    await talk.answer("the one with nuts")
    assert "The user is allergic to walnuts." in await talk.notes()


async def test_a_value_can_be_changed(talk: Conversation) -> None:
    await talk.say("My favourite colour is blue")
    assert "green" in await talk.say("change my favourite colour to green")
    assert await talk.notes() == ["The user's favourite colour is green."]
    await talk.say("replace green with dark red")
    assert await talk.notes() == ["The user's favourite colour is dark red."]


@pytest.mark.parametrize(
    ("note", "said", "now"),
    [
        (
            "Harbour bridge: the client contact is Tom Weller",
            "Actually the client contact is Priya",
            "Harbour bridge: the client contact is Priya.",
        ),
        (
            "Harbour bridge: the client contact is Dr. Weller. The budget is 2M",
            "Actually the client contact is Priya",
            "Harbour bridge: the client contact is Priya. The budget is 2M.",
        ),
        (
            "the client contact for the harbour bridge is Tom",
            "no, the client contact is Priya",
            "The client contact for the harbour bridge is Priya.",
        ),
        (
            "I am allergic to shellfish and I have a cat",
            "actually I'm only allergic to prawns",
            "The user is only allergic to prawns and the user has a cat.",
        ),
        (
            "my favourite colour is blue and my dog is Rex",
            "change my favourite colour to green",
            "The user's favourite colour is green and the user's dog is Rex.",
        ),
    ],
)
async def test_a_correction_changes_the_part_of_a_note_that_it_names(
    note: str, said: str, now: str, talk: Conversation
) -> None:
    await talk.say(f"remember that {note}")
    await talk.say(said)
    assert await talk.notes() == [now]


async def test_where_it_is_not_sure_which_part_is_meant_the_user_is_asked(talk: Conversation) -> None:
    await talk.say("remember that I'm allergic to walnuts, peanuts and shellfish")
    question = await talk.say("actually I'm only allergic to prawns")
    assert "1. You are only allergic to prawns, peanuts and shellfish." in question
    assert "2. You are only allergic to prawns." in question
    assert await talk.notes() == ["The user is allergic to walnuts, peanuts and shellfish."]
    await talk.answer("2")
    assert await talk.notes() == ["The user is only allergic to prawns."]


async def test_a_note_that_a_correction_would_empty_stays_where_the_user_wants_it(
    talk: Conversation,
) -> None:
    note = "Tom is the client contact for the harbour bridge."
    await talk.say(f"remember that {note}")
    await talk.say("actually the client contact is Priya")
    assert await talk.answer("none") == "Good, I left your notes as they are."
    assert await talk.notes() == [note]
    await talk.say("actually the client contact is Priya")
    await talk.answer("2")
    assert await talk.notes() == ["The client contact is Priya.", note]


async def test_a_note_of_which_only_a_part_was_found_is_not_replaced_by_it(talk: Conversation) -> None:
    whole = "The client contact is Tom. " + "The bridge has many rivets. " * 100
    await in_db(memory_create, user_id=talk.user.pk, content=whole)
    assert "too long" in await talk.say("actually the client contact is Priya")
    assert await talk.notes() == [whole.strip()]


async def test_a_correction_of_nothing_becomes_a_note(talk: Conversation) -> None:
    await talk.say("actually, my name is SG")
    assert await talk.notes() == ["The user's name is SG."]


async def test_that_means_the_note_that_was_just_saved(talk: Conversation) -> None:
    await talk.say("I live in Lisbon")
    await talk.say("hello")
    await talk.say("forget that")
    assert await talk.notes() == []


async def test_everything_about_something_goes_at_once(talk: Conversation) -> None:
    await talk.say("remember that I fly to Lisbon in May")
    await talk.say("remember that the hotel in Lisbon is paid")
    await talk.say("remember that I like tea")
    answer = await talk.say("forget everything about Lisbon")
    assert answer.count("~~") == 4
    assert await talk.notes() == ["The user likes tea."]


async def test_the_notes_can_be_listed(talk: Conversation) -> None:
    assert "no notes yet" in await talk.say("list my memories")
    await talk.say("remember that I like tea")
    await talk.say("remember the boat is called tulip")
    listed = await talk.say("what do you know about me?")
    assert "You like tea." in listed
    assert "The boat is called tulip." in listed


async def test_a_question_is_answered_from_the_notes(talk: Conversation) -> None:
    await talk.say("remember that my sister's name is Ana")
    assert "Ana" in await talk.say("What is my sister's name?")


async def test_what_is_not_there_is_not_invented(talk: Conversation) -> None:
    assert "found nothing about “cars”" in await talk.say("what do you know about cars?")
    assert "found nothing about" in await talk.say("forget my car")
    assert "offline mode" in await talk.say("Who won the war of the roses?")
    assert "offline mode" in await talk.say("write a poem about rain")


async def test_it_says_that_it_is_no_language_model(talk: Conversation) -> None:
    assert "no language model is connected" in await talk.say("help")


async def test_text_comes_word_by_word(talk: Conversation) -> None:
    await talk.say("help")
    assert talk.turn is not None
    assert len(talk.turn.of(TextDelta)) > 50


async def test_one_user_never_hears_of_anothers_notes(talk: Conversation, bob: User) -> None:
    await talk.say("remember that I'm allergic to shellfish")
    assert "shellfish" not in await Conversation(bob).say("what do you know about food?")


def request(words: str, *tools: str, calls: list[tuple[str, str, bool]] | None = None) -> dict[str, Any]:
    """A request as the SDK would send it, with earlier calls of the turn: (tool, result, is_error)."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": words}]
    for number, (name, result, is_error) in enumerate(calls or []):
        block = {
            "type": "tool_use",
            "id": f"t{number}",
            "name": name,
            "input": {"content": "x", "note_id": "n"},
        }
        outcome = {
            "type": "tool_result",
            "tool_use_id": f"t{number}",
            "content": result,
            "is_error": is_error,
        }
        messages += [{"role": "assistant", "content": [block]}, {"role": "user", "content": [outcome]}]
    return {
        "messages": messages,
        "tools": [a_tool(name, answering(""), Tier.READ_ONLY).definition() for name in tools],
    }


def asked(words: str, found: list[dict[str, Any]], *, beside: str = "") -> str:
    """The answer to words for which search has found these notes; `beside` is the line of the note that Izzy put beside them."""
    context = f"<context>\nNow: Saturday\n<memories>\n{beside}\n</memories>\n</context>"
    call = {"type": "tool_use", "id": "a", "name": "memory_search", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": json.dumps(found)}
    said = [{"type": "text", "text": context}, {"type": "text", "text": words}]
    messages = [
        {"role": "user", "content": said},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    return str(respond({"messages": messages, "tools": [{"name": "memory_search"}]})[0]["text"])


@pytest.mark.parametrize("words", ["what is 2+2", "tell me a joke", "why is the sky blue?"])
def test_a_question_that_no_note_bears_on_is_not_answered_from_one(words: str) -> None:
    note = "note-0199a000-0000-7000-8000-000000000001"
    found = [{"note_id": note, "text": "The user's sister Anna lives in Graz.", "score": 0.6}]
    assert asked(words, found) == phrases.NOT_A_MODEL
    line = "The user's sister Anna lives in Graz."
    for beside in (f"- n7: {line}", f"- n7 (faded, 2026-11-20): {line}"):
        assert "Anna lives in Graz" in asked(words, found, beside=beside)
    assert asked(words, found, beside=f"- n7 (standing): {line}") == phrases.NOT_A_MODEL
    assert "Anna lives in Graz" in asked("where does my sister live?", found)


def test_without_memory_it_says_so() -> None:
    (block,) = respond(request("remember that I like tea"))
    assert "without memory" in block["text"]


def test_a_failed_tool_is_reported_with_its_reason() -> None:
    (block,) = respond(
        request("remember I like tea", "memory_save", calls=[("memory_save", "Too long.", True)])
    )
    assert block["text"] == "That did not work: Too long."


def test_what_the_user_declined_is_acknowledged_in_words_for_them() -> None:
    declined = [("conversation_delete", services.DECLINED, True)]
    [block] = respond(
        request("delete the conversation about trains", "conversation_delete", calls=declined)
    )
    assert block["text"] == "All right, I have not done it. Tell me if you want something else instead."


@pytest.mark.parametrize("result", ["", "no JSON", "[1, null]", '{"a": 1}', '[{"text": "x"}]', "[]"])
@pytest.mark.parametrize(
    "words", ["what do you know about tea?", "forget tea", "actually I like tea", "list my notes", "search our chats for tea", "delete the chat about tea", "list our conversations"]
)  # fmt: skip
def test_odd_results_do_not_break_it(words: str, result: str) -> None:
    names = (
        "memory_search",
        "memory_save",
        "memory_delete",
        "memory_update",
        "conversation_list",
        "conversation_delete",
    )
    for name in ("memory_search", "conversation_list"):
        assert respond(request(words, *names, calls=[(name, result, False)]))


@pytest.mark.parametrize(
    "words", ["", " ", "?", "...", "\u202e", "🙂", "remember", "forget", "actually", "change to"]
)
def test_odd_words_get_some_answer(words: str) -> None:
    assert respond(request(words, "memory_search", "memory_save"))


def test_a_request_without_messages_gets_some_answer() -> None:
    assert respond({})


def test_conversations_are_listed_searched_and_deleted() -> None:
    found = '{"count": 2, "conversations": [{"id": "c1", "title": "Trip to Lisbon"}, {"id": "c2", "title": "Tea"}]}'
    listed = respond(
        request(
            "list our conversations", "conversation_list", calls=[("conversation_list", found, False)]
        )
    )
    assert "- Trip to Lisbon" in listed[0]["text"]
    tools = ("conversation_list", "conversation_delete")
    (call,) = respond(
        request(
            "delete the conversation about Lisbon", *tools, calls=[("conversation_list", found, False)]
        )
    )
    assert (call["name"], call["input"]) == ("conversation_delete", {"conversation_id": "c1"})
    (searched,) = respond(request("search our conversations for Lisbon", "memory_search"))
    assert searched["input"] == {"query": "Lisbon", "top_k": 10, "include_conversation": True}


@pytest.mark.parametrize(
    "titles",
    [
        [("c1", "Trip to Lisbon", False), ("c2", "Delete the conversation about Lisbon", True)],
        [("c1", "Lisbon", False), ("c2", "Lisbon by night", False)],
    ],
)
def test_a_conversation_to_delete_is_told_from_the_one_under_way_and_from_longer_titles(
    titles: list[tuple[str, str, bool]],
) -> None:
    listed = [
        {"id": key, "title": title, **({"current": True} if now else {})}
        for key, title, now in reversed(titles)
    ]
    found = json.dumps({"count": 2, "conversations": listed})
    tools = ("conversation_list", "conversation_delete")
    (call,) = respond(
        request(
            "delete the conversation about Lisbon", *tools, calls=[("conversation_list", found, False)]
        )
    )
    assert (call["name"], call["input"]) == ("conversation_delete", {"conversation_id": "c1"})
