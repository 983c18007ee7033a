"""Where the model comes from and what the instance says about it."""

from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from apps.accounts.models import User
from apps.accounts.secrets import secret_set
from apps.agent import status
from apps.agent.model.client import current_endpoint, model_for
from apps.agent.models import ModelCall
from apps.agent.turn.events import Response
from apps.core.db.pool import in_db
from apps.core.health import CheckResult, State
from apps.core.registries import choices, connection_tests
from tests.agent.turns import Turn
from tests.peers.anthropic_server import AnthropicServer, failure, reply


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("key", "url", "kind", "base"),
    [
        ("", "", "offline", ""),
        ("sk-1", "", "anthropic", "https://api.anthropic.com"),
        ("sk-1", "https://api.anthropic.com/", "anthropic", "https://api.anthropic.com"),
        ("", "http://127.0.0.1:11434/", "custom", "http://127.0.0.1:11434"),
        ("sk-1", "https://proxy.example.org/anthropic", "custom", "https://proxy.example.org/anthropic"),
    ],
)
def test_the_endpoint_follows_the_environment(
    settings: Any, key: str, url: str, kind: str, base: str
) -> None:
    settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL = key, url
    endpoint = current_endpoint()
    assert (endpoint.kind, endpoint.base_url) == (kind, base)


@pytest.mark.django_db
def test_what_the_superuser_set_counts_where_the_environment_is_silent(settings: Any) -> None:
    settings.ANTHROPIC_API_KEY = settings.ANTHROPIC_BASE_URL = ""
    secret_set(name="anthropic_api_key", value="sk-stored")
    assert current_endpoint().api_key == "sk-stored"
    settings.ANTHROPIC_API_KEY = "sk-environment"
    assert current_endpoint().api_key == "sk-environment"


@pytest.mark.django_db(transaction=True)
def test_a_password_in_the_address_is_shown_to_nobody(admin: User, settings: Any) -> None:
    settings.ANTHROPIC_BASE_URL = "http://izzy:hunter2pw@127.0.0.1:9/v1?key=hunter2pw"
    assert current_endpoint().server == "http://127.0.0.1:9/v1"
    for result in (status.check_model(), status.test_connection()):
        assert "http://127.0.0.1:9/v1" in result.message
        assert "hunter2pw" not in f"{result}"


@pytest.mark.django_db(transaction=True)
async def test_a_key_set_while_running_is_used_by_the_next_call(
    alice: User, peer: AnthropicServer, settings: Any
) -> None:
    settings.ANTHROPIC_API_KEY = ""
    await Turn(alice).run()
    await in_db(secret_set, name="anthropic_api_key", value="sk-new")
    await Turn(alice).run()
    sent = [request.headers["authorization"] for request in peer.requests]
    assert sent == ["Bearer none-needed", "Bearer sk-new"]


def test_each_purpose_has_its_model(settings: Any) -> None:
    settings.IZZY_CHAT_MODEL, settings.IZZY_FAST_MODEL = "big", "small"
    settings.IZZY_BUILDER_MODEL, settings.IZZY_EXTRACT_MODEL = "builder", "extractor"
    assert [model_for(purpose) for purpose in ("chat", "fast", "builder", "extract")] == [
        "big",
        "small",
        "builder",
        "extractor",
    ]
    assert choices["models"]() == [(name, name) for name in ("big", "small", "builder", "extractor")]


@pytest.mark.django_db(transaction=True)
def test_the_connection_test_asks_for_one_token(admin: User, settings: Any) -> None:
    with AnthropicServer.in_thread() as server:
        settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL = "sk-1", server.url
        server.add(reply("OK", stop_reason="max_tokens"))
        result = connection_tests["model"]()
        assert result == CheckResult(True, f"claude-sonnet-5-5 at {server.url} answers.")
        assert server.messages[0]["max_tokens"] == 1
    call = ModelCall.objects.for_user(admin).get()
    assert call.purpose == "connection_test"


@pytest.mark.django_db(transaction=True)
def test_the_connection_test_says_what_is_wrong(admin: User, settings: Any) -> None:
    with AnthropicServer.in_thread() as server:
        settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL = "sk-1", server.url
        server.add(failure(401, "authentication_error"))
        result = status.test_connection()
        assert not result.ok
        assert "does not accept the API key" in result.message
    gone = status.test_connection()
    assert not gone.ok
    assert "cannot be reached" in gone.message


@pytest.mark.django_db
def test_the_connection_test_needs_a_model_and_somebody_to_account_it_to(settings: Any) -> None:
    settings.ANTHROPIC_API_KEY = settings.ANTHROPIC_BASE_URL = ""
    assert "Offline mode" in status.test_connection().message
    settings.ANTHROPIC_API_KEY = "sk-1"
    assert status.test_connection().message == "There is no superuser yet."


@pytest.mark.django_db
def test_a_model_whose_last_call_was_refused_is_broken_until_one_succeeds(
    alice: User, settings: Any
) -> None:
    settings.ANTHROPIC_API_KEY = "sk-1"
    call = partial(ModelCall.objects.create, user=alice, purpose="chat", model="m", endpoint="anthropic")
    call(error_code="model_auth")
    result = status.check_model()
    assert result.state == State.BROKEN
    assert "model_auth" in result.message
    call(error_code="overloaded")
    assert status.check_model().ok


@pytest.mark.django_db
def test_it_says_that_no_model_is_connected_and_how_to_connect_one(settings: Any) -> None:
    settings.ANTHROPIC_API_KEY = settings.ANTHROPIC_BASE_URL = ""
    assert status.check_model().state == State.NOT_SET_UP
    assert "ANTHROPIC_API_KEY" in status.check_model().hint
    assert status.test_connection().state == State.NOT_SET_UP
    settings.ANTHROPIC_API_KEY = "sk-1"
    assert status.check_model().ok
    assert "claude-sonnet-5-5" in status.check_model().message


@pytest.mark.django_db(transaction=True)
async def test_offline_answers_without_any_server_and_costs_nothing(alice: User, offline: None) -> None:
    turn = Turn(alice, words="help")
    events = await turn.run()
    assert isinstance(events[-1], Response)
    assert "offline mode" in events[-1].text
    call = await in_db(lambda: ModelCall.objects.for_user(alice).get())
    assert call.endpoint == "offline"
    assert call.cost_usd == Decimal(0)
    assert (call.model, call.input_tokens, call.output_tokens) == ("offline", 0, 0)


def test_the_preferences_are_offered_every_tool_and_toolset() -> None:
    assert ("ask_user", "Ask you a question") in choices["tools"]()
    chosen = dict(choices["toolsets"]())
    assert "notes" in chosen
    assert not {"conversations", "attachments"} & chosen.keys()  # these are there whatever one ticks
