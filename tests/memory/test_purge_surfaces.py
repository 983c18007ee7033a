"""Purging over REST and on its pages."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.chat.models import Message, Turn
from apps.memory.models import Memory
from tests.memory.conftest import MakeNote, found
from tests.memory.purged import TEXT, WORD
from tests.memory.purged import talk as talk

pytestmark = pytest.mark.django_db


class TestRest:
    def test_purge_and_receipts(self, alice: User, note: MakeNote, api: Callable[..., Client]) -> None:
        made, client = note(alice, TEXT), api(alice)
        url = f"/api/v1/memories/{made.note_id}/purge/"
        assert client.get(url).json()["source_messages"] == []
        receipt = client.post(url, data="{}", content_type="application/json").json()
        assert receipt["memory_id"] == str(made.pk)
        assert (receipt["state"], receipt["left"], receipt["disk"]["state"]) == ("done", [], "scheduled")
        assert client.post(url, data="{}", content_type="application/json").status_code == 404
        listed = client.get("/api/v1/memory-purges/").json()
        assert [entry["id"] for entry in listed["results"]] == [receipt["id"]]
        assert client.get(f"/api/v1/memory-purges/{receipt['id']}/").json() == receipt

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            ({"redact": "all"}, 400),
            ({"also": {}}, 400),
            ({"also": ["x"]}, 404),
            ({"redact": ["018f0000-0000-7000-8000-000000000000"]}, 404),
            ({"also": ["018f0000-0000-7000-8000-000000000000"] * 101}, 413),
            ({"force": True}, 400),
        ],
    )
    def test_bad_input_changes_nothing(
        self, alice: User, note: MakeNote, api: Callable[..., Client], body: dict[str, Any], status: int
    ) -> None:
        made = note(alice, TEXT)
        url = f"/api/v1/memories/{made.pk}/purge/"
        assert api(alice).post(url, data=body, content_type="application/json").status_code == status
        assert found(alice, WORD) == [made.pk]

    def test_a_token_that_may_only_read_may_not_purge(
        self, alice: User, note: MakeNote, api: Callable[..., Client]
    ) -> None:
        made = note(alice, TEXT)
        client = api(alice, "read")
        url = f"/api/v1/memories/{made.pk}/purge/"
        assert client.get(url).status_code == 200
        assert client.post(url, data={}, content_type="application/json").status_code == 403


class TestPages:
    def test_the_page_asks_and_shows_the_receipt(
        self, alice: User, talk: tuple[Memory, Message, Message], sign_in: Callable[[User], Client]
    ) -> None:
        made, said, answer = talk
        browser = sign_in(alice)
        page = browser.get(f"/memory/{made.pk}/purge/").content.decode()
        assert TEXT in page
        assert f'value="{said.pk}"' in page
        after = browser.post(
            f"/memory/{made.pk}/purge/", {"redact": [str(said.pk), str(answer.pk)]}, follow=True
        )
        shown = after.content.decode()
        assert "Nothing of it is left" in shown
        assert WORD not in shown
        assert "Deleted for good" in browser.get("/memory/purges/").content.decode()

    def test_while_an_answer_uses_it_the_page_says_so(
        self, alice: User, talk: tuple[Memory, Message, Message], sign_in: Callable[[User], Client]
    ) -> None:
        made, _, _ = talk
        Turn.objects.for_user(alice).update(state="running")
        answer = sign_in(alice).post(f"/memory/{made.pk}/purge/")
        assert answer.status_code == 409
        assert "Stop the answer" in answer.content.decode()
