"""A request as the SDK sends it."""

from typing import Any

from apps.agent.canonical import canonical
from apps.agent.client import ModelRequest
from apps.agent.endpoint import Endpoint
from apps.agent.server_blocks import sendable
from apps.agent.tools.registry import typed_definitions
from apps.agent.valid import valid_messages
from apps.agent.web.choice import own_tools

MARKER = {"type": "ephemeral"}


def parameters(request: ModelRequest, endpoint: Endpoint) -> dict[str, Any]:
    """Canonical; toward Anthropic's own endpoint alone with cache markers and typed tools.

    The marker on the last system block (or tool) keeps what never changes; the top-level one lets the endpoint mark
    the last block of the conversation, so that no message changes from one request to the next.
    """
    system = [{"type": "text", "text": request.system}] if isinstance(request.system, str) else request.system
    ours = request.ours | own_tools()
    tools = typed_definitions(request.tools, ours) if endpoint.is_anthropic else request.tools
    searches = any(str(tool.get("type", "")).startswith("web_search") for tool in tools)
    fixed: dict[str, Any] = {
        "tools": canonical(tools),
        "system": canonical([block for block in system if block["text"].strip()]),
    }
    fixed = {name: value for name, value in fixed.items() if value}
    if request.tool_choice:
        fixed["tool_choice"] = request.tool_choice
    if endpoint.is_anthropic:
        last = fixed.get("system") or fixed.get("tools")
        if last:
            last[-1]["cache_control"] = MARKER
        fixed["cache_control"] = MARKER
    messages = canonical(sendable(valid_messages(request.messages), known=searches))
    return fixed | {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "messages": messages,
        "stream": True,
    }
