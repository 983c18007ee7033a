"""Names of conversations."""

import pytest

from apps.accounts.models import User
from apps.chat.conversations.services import conversation_rename
from apps.chat.models import Conversation
from apps.chat.titles import TITLE_CHARS, clean_title, heuristic_title
from apps.chat.turns.scheduler import scheduler
from apps.core.db.pool import in_db
from tests.chat.client import connected
from tests.peers.anthropic_server import AnthropicServer, failure, reply


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("what is the capital of Peru?", "What is the capital of Peru?"),
        ("Hi Izzy, please plan a trip. Somewhere warm.", "Izzy, please plan a trip"),
        ("**Bold** `code` https://example.org/x words", "Bold code words"),
        ("…", "New conversation"),
        ("!!! ???", "!!! ???"),
        ("hello", "Hello"),
        ("第一行。第二行", "第一行。第二行"),
        ("https://example.org/x", "New conversation"),
    ],
)
def test_the_first_words_make_a_title(text: str, title: str) -> None:
    assert heuristic_title(text) == title


def test_a_long_sentence_is_cut_at_a_word() -> None:
    title = heuristic_title("word " * 50)
    assert len(title) <= TITLE_CHARS + 1
    assert title.endswith("word…")
    assert len(heuristic_title("x" * 500)) <= TITLE_CHARS + 1


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("“A trip to Porto”\n", "A trip to Porto"),
        ("Title: Figs.", "Figs"),
        ("", ""),
        ("x" * 100, ""),
        (" \n ", ""),
    ],
)
def test_what_the_model_says_is_taken_for_a_title_or_not(said: str, title: str) -> None:
    assert clean_title(said) == title


async def title_of(user: User) -> str:
    return await in_db(lambda: Conversation.objects.for_user(user).get().title)


async def test_the_fast_model_names_a_conversation_after_its_first_turn(
    alice: User, model: AnthropicServer
) -> None:
    model.add(reply("Porto is lovely."), reply("A trip to Porto"), reply("Yes."))
    async with connected(alice) as page:
        queued = await page.say("where shall we go?")
        assert queued["title"] == "Where shall we go?"
        assert (await page.until("title"))["title"] == "A trip to Porto"
        await page.say("Sure?", conversation=queued["conversation"])
        await page.ended()
        await scheduler().idle()
    assert await title_of(alice) == "A trip to Porto"
    assert [request["model"] for request in model.messages] == [
        "claude-sonnet-5-5",
        "claude-haiku-5-5",
        "claude-sonnet-5-5",
    ]
    assert "<context>" not in str(model.messages[1]["messages"])


async def test_without_an_answer_for_a_title_the_first_words_stay(
    alice: User, model: AnthropicServer
) -> None:
    model.add(reply("Porto."), failure(400, "invalid_request_error"))
    async with connected(alice) as page:
        await page.say("where shall we go?")
        await page.ended()
        await scheduler().idle()
    assert await title_of(alice) == "Where shall we go?"


async def test_a_title_of_the_users_own_is_left_alone(alice: User, model: AnthropicServer) -> None:
    held = reply("Porto", hold_after=2)
    model.add(held, reply("A trip"))
    async with connected(alice) as page:
        queued = await page.say("where shall we go?")
        place = queued["conversation"]
        await in_db(lambda: conversation_rename(user_id=alice.id, conversation_id=place, title="Mine"))
        held.release.set()
        await page.ended()
        await scheduler().idle()
    assert await title_of(alice) == "Mine"
    assert len(model.messages) == 1


async def test_other_first_words_make_another_title(alice: User, model: AnthropicServer) -> None:
    model.add(reply("Porto is lovely."), reply("A trip to Porto"), reply("Figs."), reply("Figs at home"))
    async with connected(alice) as page:
        queued = await page.say("where shall we go?")
        await page.until("title")
        place, first = queued["conversation"], queued["message"]["id"]
        anew = await page.say("What grows here?", conversation=place, replaces=first)
        assert anew["title"] == "What grows here?"
        assert (await page.until("title"))["title"] == "Figs at home"
        await scheduler().idle()
        model.add(reply("Figs and more."), reply("More."), reply("Much more."))
        await page.send(type="retry", conversation=place)
        await page.ended()
        later = await page.say("Which ones?", conversation=place)
        await page.ended()
        await page.say("How many?", conversation=place, replaces=later["message"]["id"])
        await page.ended()
        await scheduler().idle()
    assert await title_of(alice) == "Figs at home"


async def test_a_title_that_comes_late_names_nothing_that_has_given_way(
    alice: User, model: AnthropicServer
) -> None:
    late = reply("A trip to Porto", hold_after=2)
    model.add(reply("Porto is lovely."), late, reply("Figs."), reply("Figs at home"))
    async with connected(alice) as page:
        queued = await page.say("where shall we go?")
        await page.ended()
        place, first = queued["conversation"], queued["message"]["id"]
        await page.say("What grows here?", conversation=place, replaces=first)
        assert (await page.until("title"))["title"] == "Figs at home"
        late.release.set()
        await scheduler().idle()
    assert await title_of(alice) == "Figs at home"


async def test_offline_the_first_words_are_the_title(alice: User, runner: None) -> None:
    async with connected(alice) as page:
        await page.say("list my memories")
        await page.ended()
        await scheduler().idle()
    assert await title_of(alice) == "List my memories"
