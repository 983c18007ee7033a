"""The instance's model status: health check, connection test, choices of forms."""

import asyncio

from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model

from apps.agent.model.client import ModelError, ModelRequest, complete, current_endpoint, model_for
from apps.agent.model.sdk import default_client
from apps.agent.models import ModelCall
from apps.agent.tools.base import all_tools
from apps.core.health import CheckResult, not_set_up

TEST_SECONDS = 18
OFFLINE = "Offline mode: no language model is connected, so Izzy follows simple rules."
WITH_A_MODEL = "With a model Izzy converses freely, keeps what is worth remembering by itself and builds tools of any kind."
UNUSABLE = {
    "model_unavailable",
    "model_auth",
    "model_billing",
    "model_forbidden",
    "model_not_found",
    "bad_response",
}  # codes of failed calls that the next call will share, until somebody mends the cause
HOW_TO_CONNECT = "Set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a server of your own, or enter one on the instance page."
TOOLSETS = {
    "notes": "Memories: remember, find, correct and forget",
    "files": "Memory files",
    "web": "Web search and pages",
    "capabilities": "Capabilities",
    "classic": "Memories, under older tool names",
}
"""Those that a user chooses. The tools of past conversations and of attachments are there in any case."""


def check_model() -> CheckResult:
    """Which model is set, and whether the last call reached it; without asking it (a page must not wait for that)."""
    endpoint = current_endpoint()
    if endpoint.is_offline:
        return not_set_up(OFFLINE, gives=WITH_A_MODEL, how=HOW_TO_CONNECT)
    message = f"Chat uses {model_for('chat')} at {endpoint.server}."
    last = ModelCall.objects.unscoped().order_by("-id").first()
    if last is not None and last.endpoint == endpoint.kind and last.error_code in UNUSABLE:
        message += (
            f" The last call, at {last.created_at:%Y-%m-%d %H:%M} UTC, failed ({last.error_code})."
        )
        return CheckResult(
            False, message, "Test the connection on the instance page: it says what is wrong."
        )
    return CheckResult(True, message)


def test_connection() -> CheckResult:
    """Asks the chat model for one token. The call stands in the ledger of the first superuser."""
    endpoint = current_endpoint()
    if endpoint.is_offline:
        return not_set_up(OFFLINE, gives=WITH_A_MODEL, how=HOW_TO_CONNECT)
    owner = get_user_model().objects.filter(is_superuser=True).order_by("date_joined").first()
    if owner is None:
        return CheckResult(False, "There is no superuser yet.", "Finish the set-up first.")
    request = ModelRequest(
        user_id=owner.pk,
        purpose="connection_test",
        model=model_for("chat"),
        messages=[{"role": "user", "content": "Say OK."}],
        max_tokens=1,
    )

    async def ask() -> None:
        async with asyncio.timeout(TEST_SECONDS):
            await complete(default_client(), request)

    try:
        async_to_sync(ask)()
    except ModelError as error:
        return CheckResult(
            False, error.message, "Correct the key, the address or IZZY_CHAT_MODEL and test again."
        )
    except TimeoutError:
        message = f"{endpoint.server} did not answer within {TEST_SECONDS} seconds."
        return CheckResult(False, message, "Check that the server runs and that the address is right.")
    return CheckResult(True, f"{request.model} at {endpoint.server} answers.")


def tool_choices() -> list[tuple[str, str]]:
    """Every tool, for the preferences' approval list, in plain words."""
    return sorted(((tool.name, tool.title) for tool in all_tools()), key=lambda pair: pair[1])


def tool_defaults() -> list[tuple[str, str]]:
    """The default of each tool, where the user has chosen nothing: allow, ask or never."""
    return [(tool.name, tool.approval) for tool in all_tools()]


def toolset_choices() -> list[tuple[str, str]]:
    return list(TOOLSETS.items())


def model_choices() -> list[tuple[str, str]]:
    """The models that the settings name."""
    names = dict.fromkeys(model_for(purpose) for purpose in ("chat", "fast", "builder", "extract"))
    return [(name, name) for name in names]
