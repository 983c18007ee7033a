"""Refusals of the proxy itself, in the shape in which Anthropic's API has them."""

import json
from collections.abc import Mapping


class ProxyError(Exception):
    """`kind` is one of the API's error types; `headers` go with the answer."""

    def __init__(
        self, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message
        self.headers = dict(headers or {})

    def body(self) -> bytes:
        """`{"type": "error", "error": {"type", "message"}}`."""
        error = {"type": self.kind, "message": self.message}
        return json.dumps({"type": "error", "error": error}).encode()
