"""Pages list what the user allowed for more than one call, and take it back."""

from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.agent.services import grant_add, grants_for
from apps.core.ids import uuid7

pytestmark = pytest.mark.django_db

REACH = {
    "tool": "cap_my_weather",
    "hosts": ["api.example.org"],
    "secrets": ["KEY"],
    "capability": "",
    "version": 2,
}


@pytest.fixture
def place(alice: User) -> UUID:
    """A conversation of Alice's with a yes of its own, beside one that holds always, and one for elsewhere."""
    place = uuid7()
    for where, tool in ((place, "cap_my_weather"), (None, "open_page"), (uuid7(), "cap_elsewhere")):
        grant_add(user_id=alice.pk, reach=REACH | {"tool": tool}, conversation_id=where)
    return place


def listed(client: Client, query: str = "") -> str:
    return client.get(f"/grants/{query}").content.decode()


def test_the_settings_list_all_of_it_and_a_conversation_its_own(
    alice: User, bob: User, place: UUID, sign_in: Any
) -> None:
    client = sign_in(alice)
    assert "/grants/" in client.get("/settings/").content.decode()
    everything, here = listed(client), listed(client, f"?conversation={place}")
    assert "my weather 2 (api.example.org, KEY): allowed in one conversation until" in everything
    assert "my weather 2 (api.example.org, KEY): allowed in this conversation until" in here
    assert "open page 2 (api.example.org, KEY): always allowed" in everything
    assert ["elsewhere" in text for text in (everything, here)] == [True, False]
    assert "weather" not in listed(sign_in(bob), f"?conversation={place}")
    assert client.get("/grants/?conversation=nothing").status_code == 404


def test_it_is_taken_back_on_either_page(alice: User, bob: User, place: UUID, sign_in: Any) -> None:
    first, second, third = grants_for(alice.pk)
    assert sign_in(bob).post(f"/grants/{first.pk}/remove/").status_code == 404
    client = sign_in(alice)
    left = client.post(
        f"/grants/{first.pk}/remove/", {"conversation": place}, HTTP_HX_REQUEST="true"
    ).content.decode()
    assert "open page" in left
    assert "weather" not in left
    assert client.post(f"/grants/{first.pk}/remove/").status_code == 404
    assert client.post(f"/grants/{second.pk}/remove/").headers["Location"] == "/settings/"
    assert list(grants_for(alice.pk)) == [third]
