"""Bob and everything that is Alice's: whatever he asks, it is as if it did not exist."""

import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.chat.turns.scheduler import scheduler
from apps.core.errors import NotFound
from tests.chat.client import connected, program_of
from tests.chat.rows import conversation, messages, turn
from tests.peers.anthropic_server import AnthropicServer, reply, tool
from tests.tools import Tools


async def test_no_frame_reaches_another_users_conversation(
    alice: User, bob: User, model: AnthropicServer
) -> None:
    model.add(reply(tool("ask_user", {"question": "Which?"})))
    async with connected(alice) as hers, connected(bob) as his:
        place = await conversation(alice)
        queued = await hers.say("My secret plan", conversation=place)
        asked = (await hers.ended())["pending_question"]["id"]
        await scheduler().idle()
        before = await messages(place)
        for frame in (
            {"type": "open", "conversation": place},
            {"type": "open", "conversation": place, "seq": 1},
            {"type": "message", "text": "hi", "conversation": place},
            {
                "type": "message",
                "text": "hi",
                "conversation": place,
                "replaces": queued["message"]["id"],
            },
            {"type": "retry", "conversation": place},
            {"type": "stop", "conversation": place},
            {"type": "answer", "id": asked, "text": "mine"},
            {"type": "approve", "id": asked, "decision": "allow"},
        ):
            await his.send(**frame)
            refused = await his.next()
            assert (refused["type"], refused["code"]) == ("error", "not_found"), frame
        await his.send("close", conversation=place)
        await his.send("ping")
        assert await his.next() == {"type": "pong"}
    assert await messages(place) == before
    assert (await turn(queued["turn"])).state == "waiting"


async def test_the_same_client_id_of_another_user_is_another_message(
    alice: User, bob: User, model: AnthropicServer
) -> None:
    async with connected(alice) as hers, connected(bob) as his:
        one = await hers.say("Hello", client_id="same")
        two = await his.say("Good morning", client_id="same")
        await hers.ended()
        await his.ended()
        await scheduler().idle()
    assert one["conversation"] != two["conversation"]
    assert two["message"]["text"] == "Good morning"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("get", "conversations/{id}/", None),
        ("patch", "conversations/{id}/", {"title": "Mine"}),
        ("delete", "conversations/{id}/", None),
        ("get", "conversations/{id}/messages/", None),
        ("post", "conversations/{id}/answer/", {"text": "x"}),
        ("post", "conversations/{id}/approve/", {"decision": "allow"}),
        ("post", "conversations/{id}/stop/", {}),
        ("post", "conversations/{id}/retry/", {}),
        ("post", "chat/", {"message": "hi", "conversation": "{id}"}),
        ("post", "chat/", {"message": "hi", "conversation": "{id}", "stream": True}),
    ],
)
@pytest.mark.parametrize("which", ["foreign", "unknown", "malformed"])
async def test_rest_answers_404_for_what_is_not_ones_own(
    alice: User,
    bob: User,
    model: AnthropicServer,
    method: str,
    path: str,
    body: dict[str, object] | None,
    which: str,
) -> None:
    hers = await conversation(alice)
    wanted = {
        "foreign": hers,
        "unknown": "01890000-0000-7000-8000-000000000000",
        "malformed": "x' or 1=1",
    }[which]
    client = await program_of(bob)
    sent = json.loads(json.dumps(body).replace("{id}", wanted)) if body is not None else None
    response = await client.send(method, path.replace("{id}", quote(wanted, safe="")), sent)
    assert response.status_code == 404
    assert set(response.json()) == {"code", "message", "extra"}
    assert await messages(hers) == []
    assert model.requests == []


async def test_lists_and_searches_hold_ones_own_alone(
    alice: User, bob: User, model: AnthropicServer
) -> None:
    model.fallback = lambda request: reply("The boat is called Albatross.")
    async with connected(alice) as page:
        await page.say("What is my boat called?", conversation=await conversation(alice))
        await page.ended()
        await scheduler().idle()
    client = await program_of(bob)
    for query in ("", "?q=boat", "?q=Albatross", "?channel=chat"):
        assert (await client.get(f"conversations/{query}")).json()["count"] == 0
    tools = Tools(user_id=bob.id)
    assert (await tools.call("conversation_list"))["count"] == 0


async def test_the_tools_of_one_user_do_not_reach_another(
    alice: User, bob: User, model: AnthropicServer
) -> None:
    place = await conversation(alice)
    tools = Tools(user_id=bob.id)
    with pytest.raises(NotFound):
        await tools.call("conversation_read", conversation_id=place)
    with pytest.raises(NotFound):
        await tools.call("conversation_delete", conversation_id=place)
    assert (await Tools(user_id=alice.id).call("conversation_list"))["count"] == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "/c/{id}/"),
        ("get", "/c/{id}/rename/"),
        ("post", "/c/{id}/rename/"),
        ("post", "/c/{id}/delete/"),
    ],
)
def test_no_page_shows_another_users_conversation(
    alice: User, bob: User, sign_in: Callable[[User], Client], method: str, path: str
) -> None:
    from apps.chat.conversations.services import conversation_create

    hers = conversation_create(user_id=alice.id, title="Hers")
    response = getattr(sign_in(bob), method)(path.replace("{id}", str(hers.id)), {"title": "Mine"})
    assert response.status_code == 404
    assert b"Hers" not in response.content
    assert b"Hers" not in sign_in(bob).get("/").content
    assert b"Hers" in sign_in(alice).get("/").content
