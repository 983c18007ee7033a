"""Markdown as it is read where it is not rendered. The command line has this file as well (`izzy_cli/unmarked.py`)."""

import re

_RULE = re.compile(r"^[ :|-]*-{3,}[ :|-]*\n?|^ *={3,} *\n?|^ *```.*\n?", re.MULTILINE)
_ROW = re.compile(r"^ *\|(.*)\| *$", re.MULTILINE)
_ITEM = re.compile(r"^([ \t]{0,20})[-*+] (?:\[([ xX])\] )?(?=\S)", re.MULTILINE)
_BOLD_OR_CODE = re.compile(r"\*\*\*?(?=\S)(.+?)\*\*\*?|`([^`\n]+)`")
_ITALICS = re.compile(
    r"(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])|(?<![\w_])_(?=\S)([^_\n]+?)(?<=\S)_(?![\w_])"
)
_LINK = re.compile(r"!?\[([^\[\]\n]{1,300})\]\((?:https?:|mailto:)[^()\s]{1,2000}\)")
_HEADING = re.compile(r"^#{1,6} +", re.MULTILINE)


def unmarked(text: str) -> str:
    """The text without the signs for bold, italics, code, headings and tables, links by their words and list marks as bullets."""
    text = _RULE.sub("", text)
    text = _ROW.sub(lambda row: ", ".join(filter(None, map(str.strip, row[1].split("|")))), text)
    text = _ITEM.sub(
        lambda item: f"{item[1]}{'•' if item[2] is None else '☐' if item[2] == ' ' else '☑'} ", text
    )
    text = _BOLD_OR_CODE.sub(_within, text)
    text = _ITALICS.sub(_within, text)
    return _HEADING.sub("", _LINK.sub(r"\1", text))


def _within(mark: re.Match[str]) -> str:
    return str(mark[mark.lastindex or 0])
