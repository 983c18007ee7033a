"""Admission to /mcp: host, origin, bearer token, scope, rate. The answers to those who may not."""

import json
from dataclasses import dataclass, field
from io import BytesIO
from types import SimpleNamespace
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest

from apps.accounts.access import authenticate_bearer, is_own_origin, require_scope
from apps.accounts.models import Scope
from apps.core.errors import Forbidden, InvalidInput, IzzyError, NotAuthenticated, Throttled
from apps.core.http.clients import base_url_of
from apps.core.http.drf import UserThrottle
from apps.core.http.middleware import came_plain

from .callers import Caller, scope_for
from .offering import tool_called

PATH = "/mcp"
METADATA = "/.well-known/oauth-protected-resource"
INVALID_REQUEST = -32600
MAX_BODY = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Refused(Exception):
    """A request that is not served; `id` is the JSON-RPC request's, where that is known."""

    error: IzzyError
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    id: Any = None

    async def answer(self, send: Any) -> None:
        error = {"code": INVALID_REQUEST, "message": self.error.message, "data": self.error.to_json()}
        body = json.dumps({"jsonrpc": "2.0", "id": self.id, "error": error}, default=str).encode()
        length = (b"content-length", str(len(body)).encode())
        headers = [(b"content-type", b"application/json"), length, *self.headers]
        await send({"type": "http.response.start", "status": self.error.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def admit(scope: dict[str, Any]) -> Caller:
    """The caller that a request's head names. Raises Refused. Synchronous."""
    request = ASGIRequest(scope, BytesIO())
    try:
        base = base_url_of(request)
        host = request.get_host()
    except DisallowedHost:
        raise Refused(InvalidInput("This host name is not known here.", code="unknown_host")) from None
    if settings.TLS and came_plain(request):
        raise Refused(Forbidden(f"Use {base}{PATH}: this came in the clear.", code="not_secure"))
    origin = request.headers.get("Origin", "")
    if origin and not is_own_origin(origin, host):
        raise Refused(Forbidden("Pages of other sites may not ask here.", code="foreign_origin"))
    header = request.headers.get("Authorization", "")
    try:
        token = authenticate_bearer(header)
    except NotAuthenticated as error:
        why = {"error": "invalid_token", "error_description": error.message} if header else {}
        raise Refused(error, challenge(base, **why)) from None
    caller = Caller.of_token(token, base)
    try:
        require_scope(token, Scope.READ)
    except Forbidden as error:
        raise insufficient(caller, Scope.READ, error) from None
    throttle: Any = UserThrottle()
    if not throttle.allow_request(SimpleNamespace(user=token.user), None):
        seconds = max(1, round(throttle.wait() or 1))
        retry = [(b"retry-after", str(seconds).encode())]
        raise Refused(Throttled(retry_after=seconds), retry)
    return caller


def check_scope(caller: Caller, body: bytes) -> None:
    """Raises Refused (403) where the body calls a tool that needs a scope which the token lacks. Synchronous."""
    try:
        message = json.loads(body)
        name = message["params"]["name"] if message["method"] == "tools/call" else ""
    except (ValueError, KeyError, TypeError, RecursionError):
        return  # the protocol's own errors say more of it
    tool = tool_called(caller.user_id, name) if isinstance(name, str) else None
    if tool is not None and scope_for(tool) == Scope.WRITE:
        error = Forbidden(f"This API token lacks the scope {Scope.WRITE}.", scope=str(Scope.WRITE))
        raise insufficient(caller, Scope.WRITE, error, message.get("id"))


def insufficient(caller: Caller, scope: Scope, error: Forbidden, id: Any = None) -> Refused:
    """The answer to a token that lacks a scope."""
    headers = challenge(caller.base_url, error="insufficient_scope", scope=str(scope))
    return Refused(error, headers, id)


def challenge(base_url: str, **more: str) -> list[tuple[bytes, bytes]]:
    """WWW-Authenticate, with the address of the metadata that says how to get in (RFC 9728)."""
    parts = {"realm": "izzy", **more, "resource_metadata": f"{base_url}{METADATA}{PATH}"}
    text = ", ".join(f'{name}="{value}"' for name, value in parts.items())
    return [(b"www-authenticate", f"Bearer {text}".encode())]


def resource_metadata(base_url: str) -> dict[str, Any]:
    """Protected resource metadata (RFC 9728). Tokens are made by hand: there is no authorization server."""
    return {
        "resource": f"{base_url}{PATH}",
        "resource_name": "Izzy",
        "bearer_methods_supported": ["header"],
        "scopes_supported": [str(Scope.READ), str(Scope.WRITE)],
        "resource_documentation": f"{base_url}/settings/tokens/",
    }
