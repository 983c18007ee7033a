"""Pages that no article can be found in are read all the same: as they are, in bounded time, whatever they are made of."""

import re

import pytest

from apps.agent.web.page_parts import recent_pages
from apps.agent.web.reader import documents
from apps.agent.web.reader.documents import whole_text
from apps.agent.web.tools import PART_CHARS
from tests.agent.web import Caller
from tests.peers.web_pages import WebPages

URL = "https://example.org/"
CHARS = 4_900_000


def filled(piece: str) -> str:
    return f"<html><title>Huge</title><body><p>First words.</p>{piece * (CHARS // len(piece))}"


async def test_a_huge_flat_page_is_read_in_parts(web: WebPages) -> None:
    recent_pages.clear()
    text = await Caller().open(web.page("/huge", filled("<p>some words here for you</p>"), "text/html"))
    assert text.startswith(
        f'<page url="{web.url("/huge")}" title="Huge">\nFirst words.\nsome words here for you\n'
    )
    assert len(text) > PART_CHARS * 3 // 4
    assert "The document is longer than what is read; the end is missing." in text
    assert "of 2,000,000." in text
    assert "For the next part call open_page" in text


@pytest.mark.parametrize(
    "piece",
    [
        "<!-- c -->word ",
        "<b>word ",
        "<div>word ",
        "<script>x()</script>word ",
        "<a",
        "<!--",
        "</p",
        "<script>",
    ],
)
def test_no_shape_of_a_page_takes_more_than_its_length(piece: str) -> None:
    (title, found) = documents.read_html(filled(piece).encode(), charset="utf-8", url=URL)
    assert title == {"title": "Huge"}
    words = found["text"].split()
    assert words[:2] == ["First", "words."]
    assert (
        words.count("word") in {0, CHARS // len(piece)}
        if "word" not in piece
        else words.count("word") > 1000
    )


def test_what_cannot_be_interrupted_is_ended_and_the_page_given_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def tangled(source: str, url: str) -> str:
        re.match(r"(a+)+$", "a" * 60 + "b")  # years, in C
        return "never"

    monkeypatch.setattr(documents, "_extracted", tangled)
    monkeypatch.setattr(documents, "ARTICLE_SECONDS", 1)
    page = "<body><h1>Head</h1><p>Words and <a href='/more'>more</a></p><script>no()</script>"
    (_, found) = documents.read_html(page.encode(), charset="utf-8", url=URL)
    assert found["text"] == "# Head\nWords and [more](https://example.org/more)"


def test_an_article_that_kills_its_process_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(source: str, url: str) -> str:
        raise MemoryError

    monkeypatch.setattr(documents, "_extracted", broken)
    (_, found) = documents.read_html(b"<body><p>Words", charset="utf-8", url=URL)
    assert found["text"] == "Words"


def test_a_page_nested_too_deeply_for_parsers_keeps_its_end() -> None:
    """Forums of former times never closed their <font>."""
    posts = "".join(f"<table><tr><td><font><b>Post {number} &amp; more" for number in range(2000))
    text, cut_short = whole_text(f"<body>{posts}<style>p {{}}</style><!-- <p>no -->The end", URL)
    assert cut_short
    lines = text.splitlines()
    assert lines[0] == "Post 0 & more"
    assert lines[-1] == "Post 1999 & moreThe end"
    (_, found) = documents.read_html(f"<body>{posts}".encode(), charset="utf-8", url=URL)
    assert "Post 1999 & more" in found["text"]
