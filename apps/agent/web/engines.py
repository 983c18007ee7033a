"""The search engines that Izzy asks itself."""

import asyncio
import json
import re
from collections.abc import Iterable
from html import unescape
from typing import Any, TypeAlias
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


Hit: TypeAlias = dict[str, str]
"""`{title, url, text, age}` of a page that was found, without what is empty; `age` as the engine words it."""


async def searxng(words: str, count: int, recency: str) -> list[Hit]:
    """Asks the server of SEARXNG_URL, which may be in a private network: the operator named it."""
    parts = urlsplit(settings.SEARXNG_URL)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    params = {"q": words, "format": "json"} | ({"time_range": recency} if recency else {})
    answer = await _asked(
        f"{settings.SEARXNG_URL}/search",
        params,
        name="SearXNG",
        also=[PrivateHost(canonical_host(host), port)],
    )
    return _hits(answer.get("results"), count, text="content", age="publishedDate")


async def brave(words: str, count: int, recency: str) -> list[Hit]:
    """Asks Brave's web search."""
    params: dict[str, str] = {"q": words, "count": str(count), "text_decorations": "false"}
    params |= {"freshness": FRESHNESS[recency]} if recency else {}
    headers = {"X-Subscription-Token": settings.BRAVE_API_KEY}
    answer = await _asked(BRAVE_URL, params, name="Brave Search", headers=headers)
    web = answer.get("web")
    return _hits(
        web.get("results") if isinstance(web, dict) else None, count, text="description", age="age"
    )


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


def _hits(entries: Any, count: int, *, text: str, age: str) -> list[Hit]:
    """The first pages of an answer, each once; `text` and `age` are the engine's names for these fields."""
    found: dict[str, Hit] = {}
    for entry in entries if isinstance(entries, list) else []:
        url = str(entry.get("url") or "")[:2_000] if isinstance(entry, dict) else ""
        if url.startswith(("http://", "https://")):
            title, extract = _plain(entry.get("title"))[:200], _plain(entry.get(text))[:TEXT_CHARS]
            hit = {"title": title, "url": url, "text": extract, "age": _plain(entry.get(age))[:40]}
            found.setdefault(url, {name: value for name, value in hit.items() if value})
    return list(found.values())[:count]


def _plain(value: Any) -> str:
    """Without the marks that engines put around matches."""
    return " ".join(unescape(re.sub(r"<[^<>]{0,200}>", "", str(value or ""))).split())
