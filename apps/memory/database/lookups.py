"""SQL that Django's ORM has no word for."""

import re
from functools import reduce
from operator import or_

from django.db import connection
from django.db.models import BooleanField, Func, Q, Value


class AnyTag(Func):
    """Whether one of a JSON list of texts meets a condition on `value`."""

    output_field = BooleanField()
    template = "EXISTS (SELECT 1 FROM json_each(%(expressions)s))"

    def __init__(self, field: str, text: str) -> None:
        super().__init__(field, Value(text))


class TagIs(AnyTag):
    """Whether one tag is the text; SQLite folds the case of ASCII letters alone."""

    arg_joiner = ") WHERE LOWER(value) = LOWER("


class TagContains(AnyTag):
    """Whether the text occurs in one tag, `%` and `_` standing for themselves."""

    template = "EXISTS (SELECT 1 FROM json_each(%(expressions)s) ESCAPE '\\')"
    arg_joiner = ") WHERE LOWER(value) LIKE LOWER("

    def __init__(self, field: str, text: str) -> None:
        super().__init__(field, f"%{connection.ops.prep_for_like_query(text)}%")


def has_tag(tag: str) -> Q:
    """Notes with a tag, however it is written."""
    return reduce(or_, (Q(TagIs("tags", written)) for written in _cases(tag)))


def mentions(word: str) -> Q:
    """Notes with a word, or part of one, in their text or tags, however it is written."""
    # SQLite's LIKE folds the case of ASCII letters alone.
    text = Q(content__icontains=word) if word.isascii() else Q(content__iregex=re.escape(word))
    return reduce(or_, (Q(TagContains("tags", written)) for written in _cases(word)), text)


def _cases(text: str) -> set[str]:
    """The ways of writing a text that matter where the database folds ASCII letters alone."""
    return {text} if text.isascii() else {text, text.lower(), text.upper(), text.capitalize(), text.title()}
