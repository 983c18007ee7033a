"""Searching the web where Izzy itself asks the engine."""

import asyncio

from apps.agent.endpoint import current_endpoint
from apps.agent.tools.base import ToolFailure
from apps.agent.web.choice import HOW_TO, LABELS, WITH_AN_ENGINE, Engine, engine_for, own_engine
from apps.core.health import CheckResult, not_set_up

OWN = (Engine.SEARXNG, Engine.BRAVE)


async def found_pages(engine: Engine, words: str, *, count: int, recency: str = "") -> list[dict[str, str]]:
    """`{title, url, text, age}` of each page that one of `OWN` finds, best first."""
    from apps.agent.web import engines  # at first use: HTTP takes a while to import

    ask = engines.searxng if engine == Engine.SEARXNG else engines.brave
    return [hit.to_json() for hit in await ask(engines.Query(words=words, count=count, recency=recency))]


def try_search() -> CheckResult:
    """Connection test: asks the engine for a word. Anthropic's cannot be asked by itself: the model's test stands for it."""
    endpoint = current_endpoint()
    if engine_for(endpoint) == Engine.ANTHROPIC:
        return CheckResult(True, "Anthropic searches inside its answers; test the model instead.")
    engine = own_engine()
    if engine not in OWN:
        return not_set_up("No search engine is configured.", gives=WITH_AN_ENGINE, how=HOW_TO)
    try:
        found = asyncio.run(found_pages(engine, "weather", count=5))
    except ToolFailure as error:
        return _for_the_operator(str(error))
    return CheckResult(True, f"{LABELS[engine]} answers: {len(found)} pages found.")


def _for_the_operator(failure: str) -> CheckResult:
    """The error without its advice to the model, which becomes the hint."""
    said, _, asked = failure.partition(" Tell the user that the operator must ")
    if asked:
        return CheckResult(False, said, asked[:1].upper() + asked[1:])
    said = said.partition(". ")[0].rstrip(".") + "."
    return CheckResult(False, said, "Check that it runs and that its address is right.")
