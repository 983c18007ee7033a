"""The tool `web_search` where Izzy itself asks the engine."""

from typing import Any

from django.conf import settings

from apps.agent.tools.base import ToolContext, ToolFailure
from apps.agent.web.choice import HOW_TO, LABELS, Engine, own_engine
from apps.agent.web.engines import Query, brave, searxng

DEFAULT_COUNT = 8
ENGINES = {Engine.SEARXNG: searxng, Engine.BRAVE: brave}


async def web_search(context: ToolContext, args: dict[str, Any]) -> dict[str, Any]:
    """`{query, engine, results: [{title, url, text, age}]}`, best first."""
    if settings.IZZY_WEB_SEARCH == "off":
        raise ToolFailure("Web search is turned off on this instance. Do without it, and tell the user so.")
    engine = own_engine()
    if engine not in ENGINES:
        raise ToolFailure(
            f"No search engine is configured. Tell the user: {HOW_TO} Pages whose address is known can be opened."
        )
    query = Query(
        words=" ".join(args["query"].split()),
        count=args.get("count", DEFAULT_COUNT),
        recency=args.get("recency", ""),
    )
    if not query.words:
        raise ToolFailure("The query is empty. Say what to look for.")
    await context.emit({"status": "searching", "query": query.words, "engine": LABELS[engine]})
    found = await ENGINES[engine](query)
    await context.emit({"status": "found", "count": len(found)})
    return {"query": query.words, "engine": LABELS[engine], "results": [hit.to_json() for hit in found]}
