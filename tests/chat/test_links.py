"""Where the links in an answer lead, and what its reader sees of that."""

import re
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from apps.agent.models import ToolCall
from apps.chat.conversations.links import through
from apps.chat.conversations.markdown import render
from apps.chat.models import Conversation
from apps.chat.turns.scheduler import scheduler as runners
from apps.core.db.pool import in_db
from tests.chat.client import connected
from tests.chat.obeying import opens
from tests.chat.rows import conversation
from tests.peers.anthropic_server import AnthropicServer, reply
from tests.peers.web_pages import WebPages

pytestmark = pytest.mark.django_db(transaction=True)

HREF = re.compile(r'href="([^"]*)"')


def shown(text: str) -> str:
    """Returns what a reader sees."""
    return re.sub(r"<[^>]*>", "", render(text))


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("[your bank](https://evil.example/x)", "your bank (evil.example)"),
        ("[https://bank.example](https://evil.example)", "https://bank.example (evil.example)"),
        ("[bank.example](https://bank.example.evil.test/)", "bank.example (bank.example.evil.test)"),
        ("[bank.example](https://bank.example@evil.test/)", "bank.example (evil.test)"),
        ("https://bank.example@evil.test/x", "https://bank.example@evil.test/x (evil.test)"),
        ("[evil.test is not it](https://evil.test)", "evil.test is not it (evil.test)"),
        ("[**bank** `x`](http://evil.test:8080/x)", "bank x (evil.test:8080)"),
        ("[bank][1]\n\n[1]: //evil.test/x", "bank (evil.test)"),
        ("![a picture](https://evil.test/p.png)", "a picture (evil.test)"),
        ("[![a picture](https://a.example/p.png)](https://evil.test/)", "a picture (evil.test)"),
        ("[bank](https:evil.test)", "bank (evil.test)"),
        ("[bank.example](https://bаnk.example)", "bank.example (xn--bnk-6cd.example)"),
        ("[me](mailto:mallory@evil.test?subject=x)", "me (mallory@evil.test)"),
        ("[evil.test](https://evil.test/any?x=1)", "evil.test"),
        ("[https://www.evil.test/any](https://evil.test/any?x=1)", "https://www.evil.test/any"),
        ("See https://evil.test/any?x=1.", "See https://evil.test/any?x=1."),
        ("<https://evil.test/any>", "https://evil.test/any"),
        ("ada@home.example", "ada@home.example"),
        ("[my notes](/memory/)", "my notes"),
    ],
)
def test_a_link_shows_its_host_where_its_text_does_not(text: str, reads: str) -> None:
    assert shown(text) == reads


@pytest.mark.parametrize(
    "text", ["[x](https:evil.test)", "[x](https:///evil.test)", "[x](//evil.test)", "[x](///evil.test)"]
)
def test_an_address_is_written_as_browsers_read_it(text: str) -> None:
    assert HREF.findall(render(text)) == ["https://evil.test"]


async def answered(user: User, text: str, *, place: str | None = None) -> tuple[list[str], list[str]]:
    """One turn; the links of its answer as it came, and as it is shown later."""
    place = place or await conversation(user)
    async with connected(user) as page:
        await page.say(text, conversation=place)
        await page.ended()
        await runners().idle()
        live = "".join(frame["html"] for frame in page.seen if frame["type"] == "html")
        frame = await page.snapshot(place)
    return HREF.findall(live), HREF.findall(frame["messages"][-1]["html"])


async def test_before_others_words_were_read_a_link_leads_where_it_says(
    alice: User, model: AnthropicServer
) -> None:
    model.add(reply("[Here](https://any.example/x?y=1)"))

    assert (await answered(alice, "Where is it?"))[1] == ["https://any.example/x?y=1"]


async def test_afterwards_one_of_the_models_own_making_leads_through_a_page_that_shows_it(
    alice: User, bob: User, model: AnthropicServer, web: WebPages, sign_in: Any
) -> None:
    place = await conversation(alice)
    evil = "https://evil.example/collect?bank=Triodos"
    named, typed, found = web.url("/soil?kind=loam"), "https://mine.example/a?b=1", web.url("/")
    model.add(
        opens(web.url("/article")),
        reply(
            f"[Tomatoes]({evil}), [soil]({named}), [yours]({typed}), [front]({found}), {evil} [x]({named}#Triodos)"
        ),
    )

    live, later = await answered(alice, f"How do I grow tomatoes? Not as on {typed}", place=place)

    through_us = through(UUID(place), evil)
    assert later == [
        through_us,
        named,
        typed,
        found,
        through_us,
        through(UUID(place), f"{named}#Triodos"),
    ]
    assert evil not in live
    page = await in_db(lambda: sign_in(alice).get(through_us))
    text = page.content.decode()
    assert page.status_code == 200
    assert "https://<strong>evil.example</strong>/collect?bank=Triodos" in text
    assert f'href="{evil}" rel="noopener noreferrer nofollow"' in text
    assert await in_db(lambda: sign_in(bob).get(through_us).status_code) == 404
    assert await in_db(lambda: Client().get(through_us).status_code) == 302


def test_nobody_else_can_make_such_a_page(alice: User, sign_in: Any) -> None:
    """Nor is one of another conversation taken for it."""
    client: Client = sign_in(alice)
    one, two = [Conversation.objects.create(user=alice, title="A talk") for _ in range(2)]
    token = through(one.pk, "https://evil.example/").split("/")[-2]
    for place, given, status in [
        (one.pk, token, 200),
        (two.pk, token, 404),
        (uuid4(), token, 404),
        (one.pk, token[:-1] + ("A" if token[-1] != "A" else "B"), 404),
        (one.pk, "https:evil.example", 404),
        (one.pk, "x:y", 404),
    ]:
        assert client.get(reverse("chat:link", args=[place, given])).status_code == status


def test_a_user_shares_no_named_addresses_with_another(alice: User, bob: User) -> None:
    from apps.chat.conversations.links import ConversationLinks

    place = Conversation.objects.create(user=alice, title="A talk").pk
    for user, url in [(alice, "https://a.example/x"), (bob, "https://b.example/x")]:
        ToolCall.objects.create(
            user=user, conversation_id=place, turn_id=uuid4(), round=1, position=0, name="open_page", state="done",
            input={"url": url}, result=f"[x]({url})", untrusted=True,
        )  # fmt: skip
    leads = ConversationLinks(alice.pk, place)
    assert leads("https://a.example/x") == "https://a.example/x"
    assert leads("https://b.example/x") == through(place, "https://b.example/x")
