"""The search engines that Izzy asks itself."""

import asyncio
import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from html import unescape
from typing import Any
from urllib.parse import urlsplit

import httpx
from django.conf import settings

from apps.agent.tools.base import ToolFailure
from apps.agent.web.http import ACCEPTED, checked_client, decoded
from apps.core.http.addresses import AddressRefused, NameNotFound, PrivateHost, canonical_host

BRAVE_URL = "https://api.search.brave.com/res/v1/web/search"
SECONDS = 15.0
ANSWER_BYTES = 2_000_000
TEXT_CHARS = 500
FRESHNESS = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A web search."""

    words: str
    count: int
    recency: str = ""  # day, week, month, year or "" for any time


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One page that was found; `age` as the engine words it."""

    title: str
    url: str
    text: str
    age: str = ""

    def to_json(self) -> dict[str, str]:
        """Without what is empty."""
        return {name: value for name, value in asdict(self).items() if value}


async def searxng(query: Query) -> list[Hit]:
    """Asks the server of SEARXNG_URL, which may be in a private network: the operator named it."""
    parts = urlsplit(settings.SEARXNG_URL)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    params = {"q": query.words, "format": "json"} | ({"time_range": query.recency} if query.recency else {})
    answer = await _asked(
        f"{settings.SEARXNG_URL}/search",
        params,
        name="SearXNG",
        also=[PrivateHost(canonical_host(host), port)],
    )
    found = [
        _hit(entry, text=entry.get("content"), age=entry.get("publishedDate"))
        for entry in _list(answer.get("results"))
    ]
    return _distinct(found, query.count)


async def brave(query: Query) -> list[Hit]:
    """Asks Brave's web search."""
    params: dict[str, str] = {"q": query.words, "count": str(query.count), "text_decorations": "false"}
    params |= {"freshness": FRESHNESS[query.recency]} if query.recency else {}
    headers = {"X-Subscription-Token": settings.BRAVE_API_KEY}
    answer = await _asked(BRAVE_URL, params, name="Brave Search", headers=headers)
    web = answer.get("web")
    entries = _list(web.get("results")) if isinstance(web, dict) else []
    found = [_hit(entry, text=entry.get("description"), age=entry.get("age")) for entry in entries]
    return _distinct(found, query.count)


async def _asked(
    url: str,
    params: dict[str, str],
    *,
    name: str,
    headers: dict[str, str] | None = None,
    also: Iterable[PrivateHost] = (),
) -> dict[str, Any]:
    try:
        async with asyncio.timeout(SECONDS), checked_client(seconds=SECONDS, also=also) as client:
            wanted = {"Accept": "application/json", "Accept-Encoding": ACCEPTED}
            request = client.stream("GET", url, params=params, headers=wanted | (headers or {}))
            async with request as response:
                return await _answer(response, name)
    except (TimeoutError, httpx.HTTPError, AddressRefused, NameNotFound) as error:
        raise ToolFailure(
            f"{name} cannot be reached. Tell the user, or go on without a search; try again later."
        ) from error


async def _answer(response: httpx.Response, name: str) -> dict[str, Any]:
    if response.status_code != httpx.codes.OK:
        raise ToolFailure(_refused(name, response.status_code))
    body = bytearray()
    async for piece in decoded(response.aiter_raw(), response.headers.get("content-encoding", "")):
        body += piece
        if len(body) > ANSWER_BYTES:
            raise ToolFailure(f"{name} answered with far too much. Search for something narrower.")
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise ToolFailure(_refused(name, 0)) from error
    return answer if isinstance(answer, dict) else {}


def _refused(name: str, status: int) -> str:
    if status == 429:
        return f"{name} asks to slow down. Go on without a search, or try again in a minute."
    if name == "SearXNG" and status in {0, 403}:
        return (
            "SearXNG does not answer in JSON. Tell the user that the operator must add `json` to `search.formats` in "
            "its settings.yml."
        )
    if status in {401, 403, 422}:
        return f"{name} does not accept the key. Tell the user that the operator must look at BRAVE_API_KEY."
    return f"{name} failed (HTTP {status}). Go on without a search, or try again later."


def _list(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _hit(entry: dict[str, Any], *, text: Any, age: Any) -> Hit:
    return Hit(
        title=_plain(entry.get("title"))[:200],
        url=str(entry.get("url") or "")[:2_000],
        text=_plain(text)[:TEXT_CHARS],
        age=_plain(age)[:40],
    )


def _plain(value: Any) -> str:
    """Without the marks that engines put around matches."""
    return " ".join(unescape(re.sub(r"<[^<>]{0,200}>", "", str(value or ""))).split())


def _distinct(found: Iterable[Hit], count: int) -> list[Hit]:
    pages = {hit.url: hit for hit in reversed(list(found)) if hit.url.startswith(("http://", "https://"))}
    return list(reversed(pages.values()))[:count]
