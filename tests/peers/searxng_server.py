"""Loopback search engines: SearXNG's and Brave's JSON, as far as a search needs them."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.peers.web_pages import Asked, WebPages


class SearchServer(WebPages):
    """`results` are the entries that either engine answers with; `queries` what was asked, in order.

    SearXNG stands at `/search`, Brave at `/res/v1/web/search`. `status` other than 200 refuses.
    """

    def __init__(self) -> None:
        super().__init__("127.0.0.1")
        self.results: list[dict[str, Any]] = [
            {
                "title": "Tomatoes",
                "url": "https://garden.test/tomatoes",
                "content": "Sun and water.",
                "age": "2 days ago",
            },
            {"title": "Beans", "url": "https://garden.test/beans", "content": "Poles.", "age": ""},
        ]
        self.status = 200
        self.answers["/search"] = self._searxng
        self.answers["/res/v1/web/search"] = self._brave

    @property
    def queries(self) -> list[dict[str, str]]:
        return [
            {name: values[0] for name, values in parse_qs(urlsplit(asked.path).query).items()}
            for asked in self.asked
        ]

    async def _searxng(self, asked: Asked, writer: Any) -> None:
        entries = [{**entry, "publishedDate": entry.get("age")} for entry in self.results]
        await self._json(
            writer, {"query": "", "results": entries, "answers": [], "number_of_results": 0}
        )

    async def _brave(self, asked: Asked, writer: Any) -> None:
        if asked.headers.get("x-subscription-token") != "key-of-the-tests":
            await self._json(writer, {"type": "ErrorResponse"}, status=422)
            return
        entries = [{**entry, "description": entry.get("content")} for entry in self.results]
        await self._json(writer, {"type": "search", "web": {"type": "search", "results": entries}})

    async def _json(self, writer: Any, body: dict[str, Any], *, status: int = 0) -> None:
        headers = {"content-type": "application/json"}
        await self.send(writer, json.dumps(body).encode(), status=status or self.status, **headers)
