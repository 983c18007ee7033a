"""Which search engine is used."""

from enum import StrEnum

from django.conf import settings

from apps.agent.endpoint import Endpoint, current_endpoint, without_user
from apps.core.health import CheckResult, not_set_up

WEB_SEARCH = "web_search"
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


def own_tools() -> frozenset[str]:
    """The tools that are never left to the endpoint, by the settings."""
    return frozenset() if settings.IZZY_WEB_SEARCH in {"auto", "anthropic"} else frozenset({WEB_SEARCH})


def own_engine() -> Engine:
    """The engine that Izzy itself asks."""
    wish = settings.IZZY_WEB_SEARCH
    if settings.SEARXNG_URL and wish in {"auto", "anthropic", "searxng"}:
        return Engine.SEARXNG
    if settings.BRAVE_API_KEY and wish in {"auto", "anthropic", "brave"}:
        return Engine.BRAVE
    return Engine.NONE


def engine_for(endpoint: Endpoint) -> Engine:
    """The engine that serves a conversation with this endpoint."""
    if endpoint.is_anthropic and WEB_SEARCH not in own_tools():
        return Engine.ANTHROPIC
    return own_engine()


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
