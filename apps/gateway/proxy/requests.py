"""A request on its way in: who asks, where it goes, and what memory has for it. Synchronous."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from apps.accounts.access import authenticate_bearer, has_scope
from apps.accounts.models import APIToken, Scope
from apps.core.db.writing import writing_for
from apps.core.errors import NotAuthenticated
from apps.gateway.proxy.body import MessagesBody, Unreadable, read_body
from apps.gateway.proxy.credentials import Credentials, readable
from apps.gateway.proxy.errors import ProxyError
from apps.gateway.proxy.ledger import limit_check
from apps.gateway.proxy.memory import Plan, plan_of
from apps.gateway.proxy.upstream import COUNT, MESSAGES, Upstream, upstream_of
from apps.gateway.proxy.words import is_side_request

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request as the web server gives it."""

    method: str
    path: str
    raw_path: bytes
    query: bytes
    headers: Mapping[bytes, bytes]  # of several of one name the first
    credentials: Credentials
    body: bytes


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request with its way: `plan` is None where it passes without memory."""

    token: APIToken
    upstream: Upstream
    plan: Plan | None
    counts: bool  # asks how many tokens it has
    model: str


def prepare(incoming: Incoming) -> Prepared:
    """Reads all that a request needs. ProxyError where it is refused; what fails in memory costs the request memory alone."""
    credentials = incoming.credentials
    try:
        token = authenticate_bearer(f"Bearer {credentials.token}")
    except NotAuthenticated as error:
        raise ProxyError(401, "authentication_error", error.message) from error
    if not credentials.own_key and not has_scope(token, Scope.PROXY):
        raise ProxyError(
            403,
            "permission_error",
            "This token may not use the key of this Izzy (scope proxy). Send your own key beside it in X-Izzy-Token.",
        )
    upstream = upstream_of(
        credentials, incoming.method, incoming.path, incoming.raw_path, incoming.query
    )
    if upstream.spends:
        limit_check(token)
    is_messages = incoming.method == "POST" and incoming.path in {MESSAGES, COUNT}
    body = _body(incoming.body) if is_messages else None
    model = body.fields.get("model") if body else ""
    with writing_for(token.user_id):
        plan = _plan(token, body, incoming.headers) if body else None
    counts = incoming.path == COUNT
    if upstream.spends or (plan is not None and not counts):
        upstream = replace(upstream, headers=readable(upstream.headers))
    return Prepared(token, upstream, plan, counts, model if isinstance(model, str) else "")


def _body(data: bytes) -> MessagesBody | None:
    try:
        return read_body(data)
    except Unreadable:  # the upstream says what is wrong with it
        return None


def _plan(token: APIToken, body: MessagesBody, headers: Mapping[bytes, bytes]) -> Plan | None:
    try:
        return None if is_side_request(body, headers) else plan_of(token, body, headers)
    except Exception:
        logger.exception("a request passes without memory")
        return None
