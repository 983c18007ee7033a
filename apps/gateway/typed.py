"""A person's typed words, separated from the rest of the text that a program hands on as the user's."""

import re

_TAG = re.compile(r"<(/?)([a-z][a-z0-9]*(?:[-_][a-z0-9]+)+)(?=[\s/>])[^<>]*?(/?)>", re.IGNORECASE)
"""A tag as programs write it: its name has a hyphen or an underscore, which no word of HTML has."""
_COMMAND = re.compile(r"/[\w:.-]+\Z")


def typed_text(text: str) -> str:
    """The text without what a program put into it: elements such as `<system-reminder>`, whatever they hold.

    In doubt words count as the program's. So they do before a closing tag that closes nothing, since others' words in an
    element may hold its closing tag, and in a text that begins and ends with the tags of one name. A name of a command alone
    (`/compact`) is nothing that was said. What a person pasted stays: `apps.core.quotes` tells it from their own words.
    """
    stripped = text.strip()
    tags = list(_TAG.finditer(stripped))
    if tags and _is_one_element(stripped, tags[0], tags[-1]):
        return ""
    kept = "".join(_outside(stripped, tags)).strip()
    return "" if _COMMAND.match(kept) else kept


def _is_one_element(text: str, first: re.Match[str], last: re.Match[str]) -> bool:
    surrounds = first.start() == 0 and last.end() == len(text)
    return surrounds and not first[1] and bool(last[1]) and first[2].lower() == last[2].lower()


def _outside(text: str, tags: list[re.Match[str]]) -> list[str]:
    """The parts of the text that no element holds. An element that is never closed goes on to the end where it stands at the
    beginning of a line; elsewhere it is a tag that somebody wrote about."""
    parts: list[str] = []
    place, open_name, depth = 0, "", 0
    closed = {tag[2].lower(): tag.start() for tag in tags if tag[1]}
    for tag in tags:
        name = tag[2].lower()
        if depth:
            if name == open_name:
                depth += -1 if tag[1] else 0 if tag[3] else 1
                place = tag.end()
        elif tag[1]:
            parts, place = [], tag.end()
        elif not tag[3] and (closed.get(name, -1) > tag.start() or _begins_line(text, tag)):
            parts.append(text[place : tag.start()])
            open_name, depth, place = name, 1, tag.end()
    if not depth:
        parts.append(text[place:])
    return parts


def _begins_line(text: str, tag: re.Match[str]) -> bool:
    line = text.rfind("\n", 0, tag.start()) + 1
    return not text[line : tag.start()].strip()
