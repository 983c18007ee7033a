"""The description of the REST interface speaks to people who write programs: plain sentences, no source code."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.site.test_bad_input import described

NOISE = re.compile(
    r"::|:(class|meth|func|ref|param|returns?):|\*\*|\bself\b|\bNone\b|\bTrue\b|`(GET|POST|PATCH|DELETE) |\bREST\b"
)


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in described()["paths"].items():
        for method, operation in methods.items():
            yield f"{method} {path}", operation


def texts(node: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Every description in the document, with where it stands."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name in {"description", "summary"} and isinstance(value, str):
                yield f"{place}/{name}", value
            else:
                yield from texts(value, f"{place}/{name}")
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from texts(value, f"{place}/{number}")


def test_each_operation_says_in_a_line_what_it_does() -> None:
    summaries = {name: operation.get("summary", "") for name, operation in operations()}
    assert {
        name: text
        for name, text in summaries.items()
        if not re.fullmatch(r"[A-Z][^`\n]{8,110}[^.`]", text)
    } == {}
    assert len(set(summaries.values())) == len(summaries)


def test_no_description_shows_how_the_source_is_written() -> None:
    assert [(place, text) for place, text in texts(described()) if NOISE.search(text)] == []


def test_line_breaks_of_the_source_are_not_those_of_the_text() -> None:
    said = [operation.get("description", "") for _, operation in operations()]
    assert [text for text in said if re.search(r"[^\n]\n[^\n]", text)] == []


@pytest.mark.parametrize("kind", ["get", "post"])
def test_the_builds_are_described_as_what_they_are(kind: str) -> None:
    assert described()["paths"]["/api/v1/builds/"][kind]["summary"] in {
        "List builds, newest first",
        "Have a capability built or changed",
    }
