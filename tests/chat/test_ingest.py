"""Taking in conversations that were held elsewhere."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.chat.conversations.ingest import messages_ingest
from apps.chat.models import Conversation, Message
from apps.core.errors import IzzyError
from apps.search.documents import Scope, Source
from apps.search.selectors import search

Api = Callable[..., Client]
SPOKEN = Scope(sources=frozenset({Source.CONVERSATION}))

TALK = [
    {
        "speaker": "Caroline",
        "content": "I adopted a kitten called Pixel.",
        "created_at": "2023-05-08T13:56:00",
    },
    {
        "role": "assistant",
        "content": "How lovely!",
        "external_id": "m2",
        "created_at": "2023-05-08T15:57:00+02:00",
    },
]


def ingest(client: Client, body: object) -> Any:
    return client.post("/api/v1/ingest/", data=body, content_type="application/json")


def test_what_was_ingested_is_searchable_when_the_call_returns(alice: User, api: Api) -> None:
    response = ingest(api(alice), {"session": "s1", "messages": TALK})
    assert response.status_code == 202
    assert (response.json()["added"], response.json()["repeated"]) == (2, 0)
    [hit, *_] = search(alice.id, "kitten Pixel", scope=SPOKEN)
    assert (str(hit.source_id), hit.speaker) == (response.json()["ids"][0], "Caroline")
    assert str(hit.conversation_id) == response.json()["conversation"]
    found = api(alice).post(
        "/api/v1/search/",
        {"query": "kitten", "sources": ["conversation"]},
        content_type="application/json",
    )
    assert found.json()["results"][0]["text"].endswith("I adopted a kitten called Pixel.")


def test_a_time_without_zone_is_utc(alice: User, api: Api) -> None:
    ingest(api(alice), {"session": "s1", "messages": TALK})
    times = Message.objects.for_user(alice).order_by("position").values_list("created_at", flat=True)
    assert [moment.isoformat() for moment in times] == [
        "2023-05-08T13:56:00+00:00",
        "2023-05-08T13:57:00+00:00",
    ]


def test_what_was_ingested_is_not_asked_again(alice: User, api: Api) -> None:
    place = ingest(api(alice), {"session": "s1", "messages": TALK}).json()["conversation"]
    again = api(alice).post(f"/api/v1/conversations/{place}/retry/", {}, content_type="application/json")
    assert (again.status_code, again.json()["code"]) == (409, "read_only")
    assert search(alice.id, "kitten Pixel", scope=SPOKEN)
    assert Message.objects.for_user(alice).filter(superseded_by=None).count() == 2


def test_an_external_id_comes_in_once_per_session_and_channel(alice: User, api: Api) -> None:
    client = api(alice)
    message = {"role": "user", "content": "Hello", "external_id": "m1"}
    first = ingest(client, {"session": "s1", "messages": [message, message]}).json()
    again = ingest(
        client, {"session": "s1", "messages": [message, {**message, "external_id": "m2"}]}
    ).json()
    assert (first["added"], first["repeated"], again["added"], again["repeated"]) == (1, 1, 1, 1)
    assert ingest(client, {"session": "s2", "messages": [message]}).json()["added"] == 1
    assert (
        ingest(client, {"session": "s1", "channel": "mail", "messages": [message]}).json()["added"] == 1
    )
    assert Conversation.objects.for_user(alice).count() == 3
    assert Message.objects.for_user(alice).count() == 4


def test_sessions_of_two_users_are_two_conversations(alice: User, bob: User, api: Api) -> None:
    message = {"role": "user", "content": "Hello there Albatross", "external_id": "m1"}
    hers = ingest(api(alice), {"session": "s1", "messages": [message]}).json()
    his = ingest(api(bob), {"session": "s1", "messages": [message]}).json()
    assert his["added"] == 1
    assert hers["conversation"] != his["conversation"]
    assert {str(hit.source_id) for hit in search(bob.id, "Albatross", scope=SPOKEN)} == set(his["ids"])


def test_messages_without_external_id_are_always_added(alice: User, api: Api) -> None:
    for _ in range(2):
        ingest(api(alice), {"session": "s1", "messages": [{"role": "user", "content": "Hello"}]})
    assert list(
        Message.objects.for_user(alice).order_by("position").values_list("position", flat=True)
    ) == [
        1,
        2,
    ]


def test_an_ingested_conversation_is_read_and_deleted_but_not_continued(alice: User, api: Api) -> None:
    client = api(alice)
    place = ingest(client, {"session": "Trip", "messages": TALK}).json()["conversation"]
    listed = client.get("/api/v1/conversations/?channel=api").json()["results"]
    assert [(row["title"], row["session"], row["messages"]) for row in listed] == [("Trip", "Trip", 2)]
    rows = client.get(f"/api/v1/conversations/{place}/messages/").json()["results"]
    assert [(row["speaker"], row["role"]) for row in rows] == [
        ("Caroline", "user"),
        ("assistant", "assistant"),
    ]
    body = {"message": "Go on", "conversation": place}
    refused = client.post("/api/v1/chat/", body, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (409, "read_only")
    assert client.delete(f"/api/v1/conversations/{place}/").status_code == 204
    assert search(alice.id, "kitten Pixel", scope=SPOKEN) == []


def test_a_program_finds_conversations_of_every_channel_or_of_one(alice: User, api: Api) -> None:
    client = api(alice)
    for channel in ("mail", "irc"):
        ingest(client, {"session": "Trip", "channel": channel, "messages": TALK})

    def found(**query: str) -> list[str]:
        rows = client.get("/api/v1/conversations/", query).json()["results"]
        return sorted(row["channel"] for row in rows)

    for words in ("trip", "kitten"):
        assert found(q=words) == ["irc", "mail"]
        assert found(q=words, channel="irc") == ["irc"]
        assert found(q=words, channel="chat") == []


def test_it_does_not_appear_among_ones_own_chats(
    alice: User, api: Api, sign_in: Callable[[User], Client]
) -> None:
    ingest(api(alice), {"session": "Imported trip", "messages": TALK})
    assert b"Imported trip" not in sign_in(alice).get("/").content


def one(**values: object) -> list[dict[str, object]]:
    return [{"role": "user", "content": "Hello", **values}]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ([], 400),
        ({"session": "s"}, 400),
        ({"session": "s", "messages": []}, 400),
        ({"session": "s", "messages": "hello"}, 400),
        ({"session": "s", "messages": ["hello"]}, 400),
        ({"session": "", "messages": one()}, 400),
        ({"session": 7, "messages": one()}, 400),
        ({"session": "x" * 201, "messages": one()}, 413),
        ({"session": "s", "channel": "chat", "messages": one()}, 400),
        ({"session": "s", "channel": "x" * 65, "messages": one()}, 413),
        ({"session": "s", "messages": one(role="robot")}, 400),
        ({"session": "s", "messages": one(role=["user"])}, 400),
        ({"session": "s", "messages": [{"content": "no role"}]}, 400),
        ({"session": "s", "messages": one(content="")}, 400),
        ({"session": "s", "messages": one(content=None)}, 400),
        ({"session": "s", "messages": one(content="x" * 100_001)}, 413),
        ({"session": "s", "messages": one(content="a\x00b")}, 400),
        ({"session": "s", "messages": one(speaker="x" * 101)}, 413),
        ({"session": "s", "messages": one(external_id=5)}, 400),
        ({"session": "s", "messages": one(created_at="yesterday")}, 400),
        ({"session": "s", "messages": one(created_at="2023-13-45T00:00:00Z")}, 400),
        ({"session": "s", "messages": one(created_at=1700000000)}, 400),
        ({"session": "s", "messages": one(created_at="0001-01-01T00:00:00+14:00")}, 400),
        ({"session": "s", "messages": one(created_at="0001-01-01T00:00:00Z")}, 400),
        ({"session": "s", "messages": one(created_at="9999-12-31T23:59:59Z")}, 400),
        ({"session": "s", "messages": one() * 1001}, 413),
        ({"session": "s", "messages": one(), "extract": "yes"}, 400),
    ],
)
def test_bad_input_is_refused_whole(alice: User, api: Api, body: object, status: int) -> None:
    if isinstance(body, dict) and isinstance(body.get("messages"), list) and body["messages"]:
        body = {**body, "messages": [*body["messages"][:1001]]}
    response = ingest(api(alice), body)
    assert response.status_code == status
    assert set(response.json()) == {"code", "message", "extra"}
    assert not Message.objects.for_user(alice).exists()
    assert not Conversation.objects.for_user(alice).exists()


def test_the_error_names_the_message_it_is_about(alice: User) -> None:
    with pytest.raises(IzzyError) as caught:
        messages_ingest(user_id=alice.id, session="s", messages=[*one(), *one(content="")])
    assert caught.value.extra["field"] == "messages[1].content"


def test_a_thousand_messages_take_few_queries(
    alice: User, django_assert_max_num_queries: Callable[..., Any]
) -> None:
    many = [
        {"role": "user", "content": f"Message number {number}.", "external_id": str(number)}
        for number in range(1000)
    ]
    messages_ingest(user_id=alice.id, session="warm", messages=many[:1])
    with django_assert_max_num_queries(80):
        done = messages_ingest(user_id=alice.id, session="s", messages=many)
    assert len(done.added) == 1000
