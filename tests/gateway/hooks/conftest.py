"""Clients that send the events of their hooks."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User
from tests.memory.conftest import note as note

Send = Callable[..., dict[str, Any]]
Api = Callable[..., Client]


@pytest.fixture
def send(api: Api) -> Send:
    """`send(alice, "UserPromptSubmit", prompt="…")`: the answer to an event of Claude Code's, in session `s1`."""

    def sent(user: User, event: str, client: str = "claude-code", **fields: Any) -> dict[str, Any]:
        body = {"session_id": "s1", "hook_event_name": event, **fields}
        response = api(user).post(f"/api/v1/hooks/{client}/", body, content_type="application/json")
        assert response.status_code == 200, response.content
        answer: dict[str, Any] = response.json()
        return answer

    return sent


def context_of(answer: dict[str, Any]) -> str:
    """The text that the client puts before its model."""
    text = answer.get("hookSpecificOutput", {}).get("additionalContext", "")
    return str(text or answer.get("additional_context", ""))
