"""Markdown with YAML in front, and what stands in it: title, tags, links, observations."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import yaml

from .fields import fields_in, first_moment, tags_of, text_of

MAX_FRONT_CHARS = 64_000
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"^([A-Za-z_][\w -]*?)[ \t]*:[ \t]+(.*)$", re.MULTILINE)
_CODE = re.compile(
    r"^[ \t]*(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)|`[^`\n]+`", re.DOTALL | re.MULTILINE
)
_LINK = re.compile(r"(!?)\[\[([^\[\]|#^\n]+)(?:[#^][^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]")
_TAG = re.compile(r"(?<![\w/&#\[(])#([^\W\d_][\w/-]*|\d+[^\W\d][\w/-]*)")
_OBSERVATION = re.compile(r"^[ \t]*[-*+][ \t]+\[([^\[\]()\n]{2,60})\][ \t]+(\S.*)$", re.MULTILINE)
_RELATION = re.compile(
    r"^[ \t]*[-*+][ \t]+(?:\"([^\"\n]+)\"|'([^'\n]+)'|([^\s\[\]\"']+))[ \t]+\[\[([^\[\]|#^\n]+)[^\]\n]*\]\].*$",
    re.MULTILINE,
)
_PICTURE = re.compile(r"\.(png|jpe?g|gif|webp|svg|pdf|mp3|mp4|mov|wav|canvas|base)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Markdown:
    """A text without its front matter, and the front matter: {} where there is none."""

    front: dict[str, Any]
    body: str
    line: int  # where the body begins, from 1

    def first(self, *names: str) -> str:
        """The text of the first of these fields; a date is written as YAML has it."""
        lowered = {str(name).casefold(): value for name, value in self.front.items()}
        for name in names:
            value = lowered.get(name)
            if isinstance(value, datetime):
                return value.isoformat()
            if text := text_of(value):
                return text
        return ""

    def moment(self, *names: str) -> datetime | None:
        lowered = {str(name).casefold(): value for name, value in self.front.items()}
        return first_moment(lowered, *names)


def markdown_of(text: str) -> Markdown:
    """Parses the front matter; where it is no YAML (`title: Plan: part two`), the lines that read `name: value` count."""
    found = _FRONT.match(text[: MAX_FRONT_CHARS + 8])
    if not found:
        return Markdown({}, text.strip("\n"), 1)
    try:
        front = fields_in(yaml.load(found[1], Loader=_LOADER))  # noqa: S506 - the loader is a safe one
    except (
        yaml.YAMLError,
        ValueError,
        OverflowError,
        RecursionError,
        TypeError,
        KeyError,
        AttributeError,
    ):
        front = {name: value.strip().strip("\"'") for name, value in _FIELD.findall(found[1])}
    return Markdown(front, text[found.end() :].strip("\n"), found[0].count("\n") + 1)


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
    tags: list[str] = field(default_factory=list)


def marks_of(body: str) -> Marks:
    """Observations, relations (links too, as `links_to`) and tags; what stands in code is none of them."""
    visible = _CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), body)
    spans = []
    marks = Marks(body)
    for found in _OBSERVATION.finditer(visible):
        if (
            found[1].strip().lower() in {"x", "-", "!", "?", "/", ">"}
            or visible[found.end(1) + 1 : found.end(1) + 2] == "("
        ):
            continue
        text = body[found.start(2) : found.end(2)].strip()
        tags = _TAG.findall(found[2])
        said = re.sub(r"\s{2,}", " ", _TAG.sub("", text)).strip() or text
        marks.observations.append(
            Observation(found[1].strip(), said, tags, body.count("\n", 0, found.start()))
        )
        spans.append(found.span())
    for found in _RELATION.finditer(visible):
        marks.relations.append(((found[1] or found[2] or found[3]).strip(), found[4].strip()))
        spans.append(found.span())
    prose = visible
    for start, end in spans:
        prose = prose[:start] + " " * (end - start) + prose[end:]
    for found in _LINK.finditer(visible):
        inside = any(start <= found.start() < end for start, end in spans if "[[" in visible[start:end])
        is_relation = inside and any(target == found[2].strip() for _, target in marks.relations)
        if not is_relation and not _PICTURE.search(found[2]):
            marks.relations.append(("links_to", found[2].strip()))
    marks.tags = tags_of(_TAG.findall(prose))
    lines = body.split("\n")
    gone = {body.count("\n", 0, start) for start, _ in spans}
    marks.prose = "\n".join(line for number, line in enumerate(lines) if number not in gone).strip()
    return marks
