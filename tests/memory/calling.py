"""Shared by the tests of `/api/v1/memories/`."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User

Api = Callable[..., Client]
BASE = "/api/v1/memories/"


def send(client: Client, method: str, path: str, body: Any = None) -> Any:
    """The answer's JSON, with its status as `status_code` beside it."""
    return client.generic(method, path, json.dumps(body if body is not None else {}), "application/json")


def post(client: Client, path: str, body: Any = None) -> Any:
    return send(client, "POST", path, body)


@pytest.fixture
def alices(alice: User, api: Api) -> Client:
    return api(alice)
