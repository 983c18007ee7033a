"""Sessions of the earlier protocol where several web processes share a port: each lives in the process that began it, its id names
that process, and another that gets a request of it asks there."""

from typing import Any

from apps.core.http.siblings import own_name

HEADER = b"mcp-session-id"


def process_of(scope: dict[str, Any]) -> str:
    """The other process that the request's session lives in; "" where it is this one, or none is named."""
    session = dict(scope["headers"]).get(HEADER, b"").decode("latin-1")
    name = session.rpartition("-")[2] if "-" in session else ""
    return "" if name == own_name() else name


def named_here(scope: dict[str, Any]) -> dict[str, Any]:
    """The request with its session's id as this process knows it."""
    ending = f"-{own_name()}".encode()
    if not own_name():
        return scope
    headers = [
        (name, value.removesuffix(ending) if name == HEADER else value)
        for name, value in scope["headers"]
    ]
    return {**scope, "headers": headers}


def naming(send: Any) -> Any:
    """`send` of a request that adds this process to the session's id."""
    own = own_name()
    if not own:
        return send

    async def send_named(message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = [
                (name, value + f"-{own}".encode() if name.lower() == HEADER else value)
                for name, value in message["headers"]
            ]
            message = {**message, "headers": headers}
        await send(message)

    return send_named
