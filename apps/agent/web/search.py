"""The search engine that is used, and searching where Izzy itself asks it."""

import asyncio
from enum import StrEnum

from django.conf import settings

from apps.agent.model.client import Endpoint, current_endpoint, without_user
from apps.agent.tools.base import ToolFailure
from apps.core.health import CheckResult, not_set_up

WITH_AN_ENGINE = "With a search engine Izzy looks things up on the web."
HOW_TO = "Set SEARXNG_URL to a SearXNG server of your own, or BRAVE_API_KEY; with Anthropic's API nothing is needed."


class Engine(StrEnum):
    """The search engine. `ANTHROPIC` searches inside its answer; Izzy asks the others."""

    ANTHROPIC = "anthropic"
    SEARXNG = "searxng"
    BRAVE = "brave"
    NONE = ""


LABELS = {
    Engine.ANTHROPIC: "Anthropic's web search",
    Engine.SEARXNG: "SearXNG",
    Engine.BRAVE: "Brave Search",
}


def own_engine() -> Engine:
    """The engine that Izzy itself asks."""
    setting = settings.IZZY_WEB_SEARCH
    if settings.SEARXNG_URL and setting in {"auto", "anthropic", "searxng"}:
        return Engine.SEARXNG
    if settings.BRAVE_API_KEY and setting in {"auto", "anthropic", "brave"}:
        return Engine.BRAVE
    return Engine.NONE


def engine_for(endpoint: Endpoint) -> Engine:
    """The engine that serves a conversation with this endpoint."""
    return Engine.ANTHROPIC if endpoint.searches_the_web else own_engine()


def check_search() -> CheckResult:
    """Health check: which engine is set, without asking it."""
    if settings.IZZY_WEB_SEARCH == "off":
        how = "Take IZZY_WEB_SEARCH=off away."
        return not_set_up("Web search is turned off (IZZY_WEB_SEARCH).", gives=WITH_AN_ENGINE, how=how)
    engine = engine_for(current_endpoint())
    if engine == Engine.NONE:
        message = "No search engine is configured. Pages can be opened all the same."
        return not_set_up(message, gives=WITH_AN_ENGINE, how=HOW_TO)
    place = f" at {without_user(settings.SEARXNG_URL)}" if engine == Engine.SEARXNG else ""
    return CheckResult(True, f"The web is searched with {LABELS[engine]}{place}.")


async def found_pages(
    engine: Engine, words: str, *, count: int, recency: str = ""
) -> list[dict[str, str]]:
    """`{title, url, text, age}` of each page that one of Izzy's own engines finds, best first."""
    from apps.agent.web import engines  # at first use: HTTP takes a while to import

    ask = engines.searxng if engine == Engine.SEARXNG else engines.brave
    return await ask(words, count, recency)


def try_search() -> CheckResult:
    """Connection test: asks the engine for a word. Anthropic's cannot be asked by itself: the model's test stands for it."""
    endpoint = current_endpoint()
    if engine_for(endpoint) == Engine.ANTHROPIC:
        return CheckResult(True, "Anthropic searches inside its answers; test the model instead.")
    engine = own_engine()
    if engine == Engine.NONE:
        return not_set_up("No search engine is configured.", gives=WITH_AN_ENGINE, how=HOW_TO)
    try:
        found = asyncio.run(found_pages(engine, "weather", count=5))
    except ToolFailure as error:  # its advice to the model becomes the hint
        message, _, asked = str(error).partition(" Tell the user that the operator must ")
        if asked:
            return CheckResult(False, message, asked[:1].upper() + asked[1:])
        message = message.partition(". ")[0].rstrip(".") + "."
        return CheckResult(False, message, "Check that it runs and that its address is right.")
    return CheckResult(True, f"{LABELS[engine]} answers: {len(found)} pages found.")
