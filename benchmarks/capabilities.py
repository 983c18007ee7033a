"""How large a request is by the number of capabilities, and how often the right one is found among a thousand."""

import statistics
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.core.files.storage import storages

from apps.accounts.models import User
from apps.capabilities.catalog.drafts import Draft
from apps.capabilities.catalog.matching import ABOUT_THIS, capabilities_matching
from apps.capabilities.catalog.versions import capability_create
from apps.capabilities.models import Capability
from apps.chat.prompt import LISTED_CAPABILITIES, NAMED
from apps.core.text import estimate_tokens
from benchmarks._capability_requests import others, targets
from benchmarks._scratch import make_user, scratch_database
from benchmarks.prompt import converse, sent_parts
from benchmarks.report import Report, Section, timed

MOST_GROWTH = 1.05
AIM_FOUND = 0.95
FIRST = 3
SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "What to work on."},
        "limit": {"type": "integer", "minimum": 1, "description": "At most so many results."},
    },
    "required": ["text"],
}
MAIN = 'def run(args: dict) -> str:\n    return args["text"]\n'


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--sizes", type=int, nargs="+", default=[0, 30, 31, 100, 1000])


def run(options: dict[str, Any]) -> Report:
    """A user for every size, in a database of their own; requests go through the real runner and SDK to a recording server."""
    sizes = sorted({*options["sizes"], LISTED_CAPABILITIES})
    report = Report("capabilities", settings={"sizes": sizes, "embedder": settings.IZZY_EMBEDDER})
    with _fresh():
        users = {size: make_user(f"has {size}") for size in sizes}
        for size, user in users.items():
            make_capabilities(user, size)
        _prompt_sizes(report, users)
        measure_found(report, users[max(sizes)], max(sizes))
    return report


def make_capabilities(user: User, count: int) -> None:
    """Returns that many of the catalog, those that are asked for first."""
    asked = [(target.name, target.description, target.tags) for target in targets()]
    for name, description, tags in [*asked, *others()][:count]:
        draft = Draft(description=description, input_schema=SCHEMA, main=MAIN, tags=tags)
        capability_create(user_id=user.pk, name=name, draft=draft)


@contextmanager
def _fresh() -> Iterator[None]:
    """An empty database, with a folder of its own for the files."""
    storage: Any = storages["capabilities"]
    kept = storage._location
    with scratch_database(), TemporaryDirectory(prefix="izzy-benchmark-") as folder:
        _move(storage, folder)
        try:
            yield
        finally:
            _move(storage, kept)


def _move(storage: Any, place: Any) -> None:
    storage._location = place
    for name in ("base_location", "location"):
        storage.__dict__.pop(name, None)


def _prompt_sizes(report: Report, users: dict[int, User]) -> None:
    table = report.section(
        "A first request, in estimated tokens",
        ["capabilities", "tools", "system", "messages", "all", "to 30", "named in the turn"],
    )
    said = ["Do I need an umbrella in Hamburg tomorrow?"]
    bodies, counts = converse(
        [(user, said) for user in users.values()], lambda _: [{"type": "text", "text": "I will see."}]
    )
    first_requests = [bodies[start] for start in (0, *counts[:-1])]
    measured = {size: _measured(body) for size, body in zip(users, first_requests, strict=True)}
    base = sum(measured[LISTED_CAPABILITIES][:3])
    for size, (tools, system, messages, named) in measured.items():
        whole = tools + system + messages
        table.add(size, tools, system, messages, whole, whole / base, named)
    largest = max(sum(measured[size][:3]) / base for size in users if size >= LISTED_CAPABILITIES)
    report.aims[f"never more than {MOST_GROWTH:.0%} of a request with 30 capabilities"] = (
        largest <= MOST_GROWTH
    )
    beyond = [sum(measured[size][:3]) for size in users if size > LISTED_CAPABILITIES]
    if len(beyond) > 1:
        report.aims["flat beyond 30: within 5 % of each other"] = max(beyond) <= MOST_GROWTH * min(
            beyond
        )


def _measured(body: bytes) -> tuple[int, int, int, int]:
    """The tokens of tools, system and messages of a request, and how many capabilities it names in its turn."""
    sent = sent_parts(body)
    named = sent.messages.partition("<capabilities>")[2].partition("</capabilities>")[0].count("\\n- ")
    tools, system, messages = map(estimate_tokens, astuple(sent))
    return tools, system, messages, named


def measure_found(report: Report, user: User, count: int) -> None:
    """Asks for each tool in other words; the baseline counts the words of the request in name and description."""
    asked = targets()[:count]
    table = report.section(
        f"The right one of {count:,}",
        [
            "asked",
            "requests",
            "first, %",
            f"first {FIRST}, %",
            "named in the turn, %",
            f"by words, first {FIRST}, %",
            "ms",
        ],
    )
    plain = _row(
        table, report, user, "in other words", [(target.name, target.request) for target in asked]
    )
    _row(table, report, user, "obliquely", [(target.name, target.oblique) for target in asked])
    report.aims[f"the right one among the first {FIRST} for {AIM_FOUND:.0%} of the requests"] = (
        plain >= AIM_FOUND
    )


def _row(table: Section, report: Report, user: User, how: str, asked: list[tuple[str, str]]) -> float:
    """One line of the table; the share of requests that have the right tool among the first."""
    places, named, times = [], 0, []
    for name, request in asked:
        hits, took = timed(partial(capabilities_matching, user.pk, request, top_k=NAMED))
        times.append(took)
        names = [capability.name for _, capability in hits]
        places.append(names.index(name) + 1 if name in names else 0)
        named += any(capability.name == name and hit.score >= ABOUT_THIS for hit, capability in hits)
        if how == "in other words" and not 1 <= places[-1] <= FIRST:
            report.notes.append(f"missed {name}: “{request}” → {', '.join(names[:FIRST]) or 'nothing'}")
    share = sum(1 <= place <= FIRST for place in places) / len(asked)
    first = sum(place == 1 for place in places) / len(asked)
    shares = (first, share, named / len(asked), _by_words(user, asked) / len(asked))
    table.add(how, len(asked), *(100 * each for each in shares), statistics.median(times))
    return share


def _by_words(user: User, asked: list[tuple[str, str]]) -> int:
    """How often counting the request's words in name and description has the right one among the first."""
    rows = [
        (row.name, f"{row.name.replace('_', ' ')} {row.description}".lower())
        for row in Capability.objects.for_user(user).order_by("name")
    ]
    found = 0
    for name, request in asked:
        words = {word for word in request.lower().replace("?", " ").split() if len(word) > 3}
        ranked = sorted(rows, key=lambda row: -sum(word in row[1] for word in words))
        found += name in [row[0] for row in ranked[:FIRST]]
    return found
