"""A conversation's own model and instructions, and the page about it."""

import re
from collections.abc import Callable
from functools import partial

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.accounts.services import preferences_update
from apps.chat.conversations.services import MAX_INSTRUCTIONS, conversation_change
from apps.chat.models import Conversation
from apps.chat.turns.scheduler import scheduler
from apps.core.db.pool import in_db
from apps.memory.models import Origin, Trust
from apps.memory.notes.creation import memory_create
from apps.memory.notes.revisions import Change
from tests.chat.client import connected
from tests.chat.rows import conversation, turn
from tests.peers.anthropic_server import AnthropicServer


@pytest.fixture
def browser(alice: User, sign_in: Callable[[User], Client]) -> Client:
    return sign_in(alice)


def talk(user: User, summary: str = "") -> Conversation:
    return Conversation.objects.create(
        user=user, title="Plans", summary=summary, summary_until=int(bool(summary))
    )


async def test_they_hold_from_the_next_message_on_behind_what_all_conversations_begin_with(
    alice: User, model: AnthropicServer
) -> None:
    await in_db(lambda: preferences_update(user_id=alice.id, instructions="Be brief.", model="model-a"))
    async with connected(alice) as page:
        place = await conversation(alice)
        for own in ("", "Talk like a pirate."):
            change = partial(conversation_change, user_id=alice.id, conversation_id=place)
            if own:
                await in_db(partial(change, model="model-b", instructions=own))
            queued = await page.say("Hello", conversation=place)
            await page.ended()
            await scheduler().idle()
        assert (await page.snapshot(place))["model"] == "model-b"
    first, second = model.messages[0], model.messages[-1]
    assert (first["model"], second["model"]) == ("model-a", "model-b")
    assert (await turn(queued["turn"])).model == "model-b"
    assert [block["text"] for block in second["system"][:-1]] == [
        block["text"] for block in first["system"]
    ]
    assert "Talk like a pirate." in second["system"][-1]["text"]
    assert "Talk like a pirate." not in str(first["system"])


def test_the_page_shows_what_it_is_and_saves_what_holds_in_it(alice: User, browser: Client) -> None:
    place = talk(alice, "It was about <b>figs</b>.")
    change = Change(actor=Origin.USER, trust=Trust.USER, conversation_id=place.pk)
    memory_create(user_id=alice.pk, content="The user likes <i>figs</i>.", change=change)
    url = f"/c/{place.pk}/about/"
    page = browser.get(url).content.decode()
    assert "It was about &lt;b&gt;figs&lt;/b&gt;." in page
    assert "You like &lt;i&gt;figs&lt;/i&gt;." in page
    given = {"model": " model-b ", "instructions": "One\r\nTwo"}
    assert browser.post(url, given)["Location"] == url
    place.refresh_from_db()
    assert (place.model, place.instructions) == ("model-b", "One\nTwo")
    assert '<option value="model-b" selected>model-b</option>' in browser.get(url).content.decode()
    nameless = browser.post(url, {"model": "another", "other_model": " ", "instructions": "Kept"})
    assert nameless.status_code == 422
    assert "Give the name of the model." in nameless.content.decode()
    assert ">\nKept</textarea>" in nameless.content.decode()
    given = {"model": "another", "other_model": " <b>own</b> ", "instructions": "One\nTwo"}
    assert browser.post(url, given).status_code == 302
    shown = '<option value="&lt;b&gt;own&lt;/b&gt;" selected>&lt;b&gt;own&lt;/b&gt;</option>'
    assert shown in browser.get(url).content.decode()
    browser.post(url, {"model": "model-b", "instructions": "One\nTwo"})
    refused = browser.post(url, {"model": "m", "instructions": "x" * (MAX_INSTRUCTIONS + 1)})
    assert refused.status_code == 422
    assert (
        'aria-describedby="id_instructions_helptext id_instructions_error"' in refused.content.decode()
    )
    place.refresh_from_db()
    assert (place.model, place.instructions) == ("model-b", "One\nTwo")
    chat = browser.get(f"/c/{place.pk}/")
    assert (chat.context["snapshot"]["model"], chat.context["snapshot"]["instructions"]) == (
        "model-b",
        True,
    )


def test_what_was_left_as_the_page_showed_it_keeps_what_was_changed_elsewhere(
    alice: User, browser: Client
) -> None:
    place = talk(alice, "Figs.")
    conversation_change(
        user_id=alice.pk, conversation_id=place.pk, model="model-b", instructions="One\nTwo"
    )
    url = f"/c/{place.pk}/about/"
    shown = dict(re.findall(r'name="(initial-\w+)" value="([^"]*)"', browser.get(url).content.decode()))
    assert shown == {"initial-model": "model-b", "initial-instructions": "One\nTwo"}
    crlf = {name: value.replace("\n", "\r\n") for name, value in shown.items()}
    conversation_change(user_id=alice.pk, conversation_id=place.pk, instructions="Elsewhere")
    browser.post(url, crlf | {"model": "model-a", "instructions": "One\r\nTwo"})
    place.refresh_from_db()
    assert (place.model, place.instructions) == ("model-a", "Elsewhere")
    browser.post(url, crlf | {"model": "model-b", "instructions": "Three"})
    place.refresh_from_db()
    assert (place.model, place.instructions) == ("model-a", "Three")


def test_a_program_sets_them_and_nobody_elses(
    alice: User, bob: User, api: Callable[[User], Client]
) -> None:
    place = talk(alice)
    path, kind = f"/api/v1/conversations/{place.pk}/", "application/json"
    body = {"model": "model-b", "instructions": "Be kind."}
    assert api(bob).patch(path, body, content_type=kind).status_code == 404
    changed = api(alice).patch(path, body, content_type=kind).json()
    assert (changed["model"], changed["instructions"]) == ("model-b", "Be kind.")
    wrong = api(alice).patch(path, {"instructions": "x" * (MAX_INSTRUCTIONS + 1)}, content_type=kind)
    assert wrong.status_code == 413
    assert api(alice).patch(path, {"model": ""}, content_type=kind).json()["model"] == ""
    assert api(alice).get(path).json()["instructions"] == "Be kind."
