"""Markdown with YAML in front, and what stands in it: title, tags, links, observations."""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import yaml

from .fields import entries_in, fields_in, first_moment, first_text, tags_of

MAX_FRONT_CHARS = 64_000
MAX_DEPTH = 50
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"^(?:([A-Za-z_][\w -]*?)[ \t]*:(?:[ \t]+(.*))?|[ \t]*-[ \t]+(.*))$", re.MULTILINE)
_CODE = re.compile(
    r"^[ \t]*(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)|`[^`\n]+`", re.DOTALL | re.MULTILINE
)
_LINK = re.compile(r"(!?)\[\[([^\[\]|#^\n]+)(?:[#^][^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]")
_TAG = re.compile(r"(?<![\w/&#\[(])#([^\W\d_][\w/-]*|\d+[^\W\d][\w/-]*)")
_OBSERVATION = re.compile(r"^[ \t]*[-*+][ \t]+\[([^\[\]()\n]{2,60})\][ \t]+(\S.*)$", re.MULTILINE)
_RELATION = re.compile(
    r"^[ \t]*[-*+][ \t]+(?:\"([^\"\n]+)\"|'([^'\n]+)'|([^\s\[\]\"']+))[ \t]+\[\[([^\[\]|#^\n]+)[^\]\n]*\]\][ \t]*(\([^()\n]*\))?[ \t]*$",
    re.MULTILINE,
)
_PICTURE = re.compile(r"\.(png|jpe?g|gif|webp|svg|pdf|mp3|mp4|mov|wav|canvas|base)$", re.IGNORECASE)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Gives every value as it is written: a day that cannot be, `no` or `007` costs nobody anything."""

    yaml_implicit_resolvers = {
        sign: [(tag, written) for tag, written in found if tag.endswith((":null", ":merge"))]
        for sign, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


@dataclass(frozen=True, slots=True)
class Markdown:
    """A text without its front matter, and the front matter: {} where there is none."""

    front: dict[str, Any]
    body: str
    line: int  # where the body begins, from 1

    def first(self, *names: str) -> str:
        """The text of the first of these fields."""
        lowered = {str(name).casefold(): value for name, value in self.front.items()}
        return first_text(lowered, *names)

    def moment(self, *names: str) -> datetime | None:
        lowered = {str(name).casefold(): value for name, value in self.front.items()}
        return first_moment(lowered, *names)


def markdown_of(text: str) -> Markdown:
    """Parses the front matter; where it is no YAML (`title: Plan: part two`), the lines that read `name: value` count."""
    found = _FRONT.match(text[: MAX_FRONT_CHARS + 8])
    if not found:
        return Markdown({}, text.strip("\n"), 1)
    try:
        _check_depth(found[1])
        front = fields_in(yaml.load(found[1], Loader=_Loader))  # noqa: S506 - the loader is a safe one
    except (
        yaml.YAMLError,
        ValueError,
        OverflowError,
        RecursionError,
        TypeError,
        KeyError,
        AttributeError,
    ):
        front = _lines(found[1])
    return Markdown(front, text[found.end() :].strip("\n"), found[0].count("\n") + 1)


def _check_depth(text: str) -> None:
    """YAMLError for what is nested so deeply that loading it could end the process."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(
            event, yaml.CollectionEndEvent
        )
        if depth > MAX_DEPTH:
            raise yaml.YAMLError("nested too deeply")


def _lines(text: str) -> dict[str, Any]:
    """The fields of lines `name: value` and `name: [one, two]`, and of lists below a name."""
    front: dict[str, Any] = {}
    above = ""
    for name, value, item in _FIELD.findall(text):
        above = name or above
        listed = re.fullmatch(r"\[(.*)\]", value.strip())
        if item and above:
            front[above] = [*entries_in(front.get(above)), item.strip().strip("\"'")]
        elif name:
            parts = [part.strip().strip("\"'") for part in (listed[1] if listed else value).split(",")]
            front[name] = parts if listed else value.strip().strip("\"'")
    return front


@dataclass(frozen=True, slots=True)
class Observation:
    """A line `- [category] text #tag (context)`; `line` counts within the body, from 0."""

    category: str
    text: str
    tags: list[str]
    line: int


@dataclass(slots=True)
class Marks:
    """The prose of a body, and the observations, relations and tags beside it."""

    prose: str
    observations: list[Observation] = field(default_factory=list)
    relations: list[tuple[str, str]] = field(default_factory=list)  # relation, target
    stated: list[tuple[str, str]] = field(default_factory=list)  # those of them that the prose lacks
    tags: list[str] = field(default_factory=list)


def marks_of(body: str) -> Marks:
    """Observations, relations (links too, as `links_to`) and tags; what stands in code is none of them."""
    visible = _CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), body)
    begins = [0, *(found.end() for found in re.finditer("\n", body))]

    def line_at(place: int) -> int:
        return bisect_right(begins, place) - 1

    marks = Marks(body)
    gone, related = set[int](), set[int]()  # lines that the prose lacks, and of relations
    for found in _OBSERVATION.finditer(visible):
        if (
            found[1].strip().lower() in {"x", "-", "!", "?", "/", ">"}
            or visible[found.end(1) + 1 : found.end(1) + 2] == "("
        ):
            continue
        text = body[found.start(2) : found.end(2)].strip()
        said = re.sub(r"\s{2,}", " ", _TAG.sub("", text)).strip() or text
        line = line_at(found.start())
        marks.observations.append(Observation(found[1].strip(), said, _TAG.findall(found[2]), line))
        gone.add(line)
    for found in _RELATION.finditer(visible):
        relation = (found[1] or found[2] or found[3]).strip(), found[4].strip()
        marks.relations.append(relation)
        related.add(line_at(found.start()))
        if not found[5]:
            marks.stated.append(relation)
            gone.add(line_at(found.start()))
    for found in _LINK.finditer(visible):
        if line_at(found.start()) not in related and not _PICTURE.search(found[2]):
            marks.relations.append(("links_to", found[2].strip()))
    marks.tags = tags_of(_TAG.findall(_without(visible, gone)))
    marks.prose = _without(body, gone).strip()
    return marks


def _without(text: str, gone: set[int]) -> str:
    return "\n".join(line for number, line in enumerate(text.split("\n")) if number not in gone)
